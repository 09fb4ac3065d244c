// Package server serves what a process in a cluster shows of itself: health to
// everybody; metrics on loopback, or to those whom Kubernetes permits to read
// them; profiles on loopback only, because they expose the contents of memory.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/pprof"
	"net/url"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Options select what is served, and the addresses.
type Options struct {
	healthAddress, metricsAddress, profilingAddress string // not served if empty

	certFile, keyFile string // for metrics; both empty for a self-signed certificate
}

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.healthAddress, "health-probe-bind-address", "",
		"The `address` that serves /livez and /readyz over HTTP, such as :8081. If empty, health checks are not served.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", "",
		"The `address` that serves /metrics: "+
			"over HTTP on a loopback address, "+
			"such as 127.0.0.1:8080; over HTTPS with Kubernetes authentication and authorization on any other address, "+
			"such as :8443. If empty, metrics are not served.")
	flags.StringVar(&o.certFile, "tls-cert-file", "",
		"The `path` to the certificate that serves metrics. Defaults to a self-signed certificate generated at startup.")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "", "The `path` to the private key of -tls-cert-file.")
	flags.StringVar(&o.profilingAddress, "profiling-bind-address", "",
		"Loopback `address` that serves profiles under /debug/pprof/, such as 127.0.0.1:6060. "+
			"If empty, profiles are not served.")
}

// Validate returns an error that names the flag with an invalid value.
func (o Options) Validate() error {
	switch {
	case (o.certFile == "") != (o.keyFile == ""):
		return errors.New("-tls-cert-file and -tls-private-key-file must be set together")
	case o.profilingAddress != "" && !isLoopback(o.profilingAddress):
		return fmt.Errorf("-profiling-bind-address is %q: it must be a loopback address, such as 127.0.0.1:6060, "+
			"because profiles expose the contents of memory", o.profilingAddress)
	}
	return errors.Join(
		checkAddress("-health-probe-bind-address", o.healthAddress),
		checkAddress("-metrics-bind-address", o.metricsAddress),
	)
}

// checkAddress returns what is wrong with an address to listen on.
func checkAddress(flag, address string) error {
	if address == "" {
		return nil
	}
	if _, err := net.ResolveTCPAddr("tcp", address); err != nil {
		return fmt.Errorf("%s is %q: it must be an address and a port, such as 127.0.0.1:8080, or :8080 for all addresses",
			flag, address)
	}
	return nil
}

// isLoopback reports whether an address can be reached from this machine (or pod) only.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && IsLoopback(host)
}

// IsLoopback reports whether a host is this machine (or pod). The only name that counts is
// localhost.
func IsLoopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

// IsForLoopback reports whether a request names this machine as its host. A web page of
// another site cannot: its own name may lead to this machine (DNS rebinding).
func IsForLoopback(request *http.Request) bool {
	return IsLoopback((&url.URL{Host: request.Host}).Hostname())
}

// onlyForLoopback rejects requests that name another host than this machine.
func onlyForLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !IsForLoopback(r) {
			http.Error(w, "this is served to this machine only: use http://127.0.0.1 or http://localhost with its port",
				http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ServeHealth serves health checks in the background until the context ends.
func (o Options) ServeHealth(ctx context.Context, health *Health) error {
	return Endpoint{"health", "/readyz", "-health-probe-bind-address", o.healthAddress, nil, health.handler()}.Serve(ctx)
}

// ServeProfiles serves profiles in the background until the context ends.
func (o Options) ServeProfiles(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return Endpoint{"profiles", "/debug/pprof/", "-profiling-bind-address", o.profilingAddress, nil, mux}.Serve(ctx)
}

// ServeMetrics serves metrics in the background until the context ends: over plain
// HTTP to everybody on loopback, and elsewhere over HTTPS to those whom Kubernetes
// permits to get /metrics.
func (o Options) ServeMetrics(ctx context.Context, metrics http.Handler, client kubernetes.Interface) error {
	endpoint, err := o.metricsEndpoint(metrics, client)
	if err != nil {
		return err
	}
	return endpoint.Serve(ctx)
}

func (o Options) metricsEndpoint(metrics http.Handler, client kubernetes.Interface) (e Endpoint, err error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	e = Endpoint{"metrics", "/metrics", "-metrics-bind-address", o.metricsAddress, nil, mux}
	if o.metricsAddress != "" && !isLoopback(o.metricsAddress) {
		e.TLS, err = servingCertificate(o.certFile, o.keyFile)
		e.Handler = newAuthorizer(client, mux, clock.RealClock{})
	}
	return e, err
}

// Endpoint serves something at an address.
type Endpoint struct {
	Name    string
	Path    string // one that is served
	Flag    string // that sets the address
	Address string // not served if empty
	TLS     *tls.Config
	Handler http.Handler
}

// Serve serves it in the background until the context ends. Strangers may be among the clients,
// on loopback those whose pages somebody has open in a browser.
func (e Endpoint) Serve(ctx context.Context) error {
	if e.Address == "" {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", e.Address)
	if err != nil {
		return fmt.Errorf("listening on %s %s to serve %s: %w", e.Flag, e.Address, e.Name, err)
	}
	handler := e.Handler
	if isLoopback(e.Address) {
		handler = onlyForLoopback(handler)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true) // one connection has one request at a time, so that their limit is one of requests, too
	server := &http.Server{
		Handler:           withoutBodies(handler),
		Protocols:         &protocols,
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      2 * time.Minute, // a CPU profile takes half a minute
		IdleTimeout:       time.Minute,     // scrapers return sooner, and keep their connection
		ConnState:         boundConnections(),
		MaxHeaderBytes:    1 << 14,
		ErrorLog:          log.New(io.Discard, "", 0), // strangers could fill the log
	}
	scheme := "http"
	if e.TLS != nil {
		scheme, listener = "https", tls.NewListener(listener, e.TLS)
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "Server stopped", "server", e.Name)
		}
	}()
	klog.FromContext(ctx).Info("Serving "+e.Name, "url", scheme+"://"+listener.Addr().String()+e.Path)
	return nil
}

// servingCertificate returns the certificate to serve with: the files, which are
// read again for each connection because they are renewed, or else a self-signed
// certificate.
func servingCertificate(certFile, keyFile string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if certFile != "" {
		config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(certFile, keyFile)
			return &pair, err
		}
		if _, err := config.GetCertificate(nil); err != nil {
			return nil, fmt.Errorf("-tls-cert-file, -tls-private-key-file: %w", err)
		}
		return config, nil
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("generating a certificate for metrics: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("using the certificate for metrics: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"

	"github.com/samplecrd/network-controller/pkg/metrics"
)

// What the program serves: health to everybody, which tells nothing else;
// metrics to those whom Kubernetes allows it, or on loopback; profiles on
// loopback only, since they show what is in memory.

// servingOptions say what is served, and where.
type servingOptions struct {
	healthAddress, metricsAddress, profilingAddress string // nothing is served where they are empty

	certFile, keyFile string // for metrics; both empty for a certificate of our own
}

func (o *servingOptions) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.healthAddress, "health-probe-bind-address", "", "`address` at which /livez and /readyz are served over HTTP, such as :8081. Without it, they are not.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", "", "`address` at which /metrics is served: over HTTP on loopback, such as 127.0.0.1:8080; elsewhere, such as :8443, over HTTPS to those whom Kubernetes allows it. Without it, metrics are not served.")
	flags.StringVar(&o.certFile, "tls-cert-file", "", "`path` of the certificate that metrics are served with. By default, one of its own that nobody knows.")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "", "`path` of the private key of -tls-cert-file.")
	flags.StringVar(&o.profilingAddress, "profiling-bind-address", "", "Loopback `address` at which profiles are served under /debug/pprof/, such as 127.0.0.1:6060. Without it, they are not.")
}

// check says which flag has a value that cannot be.
func (o servingOptions) check() error {
	switch {
	case (o.certFile == "") != (o.keyFile == ""):
		return errors.New("-tls-cert-file and -tls-private-key-file belong together: give both or none")
	case o.profilingAddress != "" && !isLoopback(o.profilingAddress):
		return fmt.Errorf("-profiling-bind-address is %q: it must be a loopback address, such as 127.0.0.1:6060, since profiles show what is in memory", o.profilingAddress)
	}
	return errors.Join(
		checkAddress("-health-probe-bind-address", o.healthAddress),
		checkAddress("-metrics-bind-address", o.metricsAddress),
	)
}

// endpoint is an address at which something is served.
type endpoint struct {
	name    string // what is served there
	path    string // of it, or some of it
	flag    string
	address string // nothing is served where it is empty
	tls     *tls.Config
	handler http.Handler
}

// serve serves in the background until the context ends.
func (e endpoint) serve(ctx context.Context) error {
	if e.address == "" {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", e.address)
	if err != nil {
		return fmt.Errorf("serving %s at %s %s: %w", e.name, e.flag, e.address, err)
	}
	server := &http.Server{
		Handler:           e.handler,
		ReadHeaderTimeout: 10 * time.Second,
		WriteTimeout:      2 * time.Minute, // a CPU profile takes half a minute
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    1 << 14,
		TLSConfig:         e.tls,
		ErrorLog:          log.New(io.Discard, "", 0), // of what others send: anybody could fill the log
	}
	serve, url := server.Serve, "http://"+listener.Addr().String()+e.path
	if e.tls != nil {
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
		url = "https://" + listener.Addr().String() + e.path
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "Serving ended", "what", e.name)
		}
	}()
	klog.FromContext(ctx).Info("Serving "+e.name, "url", url)
	return nil
}

// checkAddress says what is wrong with an address to listen at.
func checkAddress(flag, address string) error {
	if address == "" {
		return nil
	}
	if _, err := net.ResolveTCPAddr("tcp", address); err != nil {
		return fmt.Errorf("%s is %q: it must be an address and a port, such as 127.0.0.1:8080, or :8080 for all addresses", flag, address)
	}
	return nil
}

// isLoopback reports whether only this machine (or pod) reaches an address: of
// names, localhost alone is believed to.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// profiling serves pprof.
func profiling() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// metricsEndpoint serves metrics: on loopback, over plain HTTP to everybody;
// elsewhere, over HTTPS to those whom Kubernetes allows to get /metrics.
func metricsEndpoint(o servingOptions, kubeClient kubernetes.Interface) (endpoint, error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler())
	e := endpoint{name: "metrics", path: "/metrics", flag: "-metrics-bind-address", address: o.metricsAddress, handler: mux}
	if o.metricsAddress == "" || isLoopback(o.metricsAddress) {
		return e, nil
	}
	var err error
	e.handler = newGate(kubeClient, mux)
	e.tls, err = servingCertificate(o.certFile, o.keyFile)
	return e, err
}

// servingCertificate returns what to serve with: the files, which are read anew
// for each connection, since they are renewed; or else a certificate of its own.
func servingCertificate(certFile, keyFile string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if certFile != "" {
		config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(certFile, keyFile)
			return &pair, err
		}
		_, err := config.GetCertificate(nil)
		if err != nil {
			err = fmt.Errorf("-tls-cert-file, -tls-private-key-file: %w", err)
		}
		return config, err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey(controllerName, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for metrics: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("using a certificate for metrics: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// gate lets requests through whose bearer token Kubernetes knows, and whose
// user it allows what they ask for (a nonResourceURL in RBAC).
type gate struct {
	client kubernetes.Interface
	next   http.Handler
	// limit bounds what strangers can make us ask the API server.
	limit *rate.Limiter

	mu    sync.Mutex
	known map[[sha256.Size]byte]ruling // by token and what was asked for
}

// ruling is what Kubernetes said of a request, and for how long that is good.
type ruling struct {
	status int
	until  time.Time
}

// rulingLife and refusalLife are how long a ruling is good: a scraper comes every
// few seconds.
// maxRulings bounds how many are kept.
const (
	rulingLife  = time.Minute
	refusalLife = 10 * time.Second
	maxRulings  = 1000
)

func newGate(client kubernetes.Interface, next http.Handler) *gate {
	return &gate{client: client, next: next, limit: rate.NewLimiter(5, 50), known: map[[sha256.Size]byte]ruling{}}
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		http.Error(w, "a bearer token is needed: of a user or ServiceAccount that may get the nonResourceURL "+r.URL.Path, http.StatusUnauthorized)
		return
	}
	status, err := g.ask(r.Context(), token, r.URL.Path)
	switch {
	case err != nil:
		klog.FromContext(r.Context()).Error(err, "Asking Kubernetes whether metrics may be read (RBAC: system:auth-delegator)")
		http.Error(w, "Kubernetes could not be asked whether this is allowed: see the log", http.StatusInternalServerError)
	case status != http.StatusOK:
		http.Error(w, http.StatusText(status), status)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// ask asks Kubernetes, or what it has said a moment ago. Those who were let in
// before need not stand in line with strangers.
func (g *gate) ask(ctx context.Context, token, path string) (status int, err error) {
	about := sha256.Sum256([]byte(path + "\n" + token))
	g.mu.Lock()
	last := g.known[about]
	g.mu.Unlock()
	switch {
	case time.Now().Before(last.until):
		return last.status, nil
	case last.status != http.StatusOK && !g.limit.Allow():
		return http.StatusTooManyRequests, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if status, err = g.review(ctx, token, path); err != nil {
		return 0, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.known) >= maxRulings {
		maps.DeleteFunc(g.known, func(_ [sha256.Size]byte, r ruling) bool { return r.status != http.StatusOK })
	}
	if len(g.known) >= maxRulings {
		clear(g.known)
	}
	life := rulingLife
	if status != http.StatusOK { // which may be a passing failure
		life = refusalLife
	}
	g.known[about] = ruling{status, time.Now().Add(life)}
	return status, nil
}

func (g *gate) review(ctx context.Context, token, path string) (status int, err error) {
	who, err := g.client.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing a token: %w", err)
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user, extra := who.Status.User, map[string]authorizationv1.ExtraValue{}
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	may, err := g.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing what %s may do: %w", user.Username, err)
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

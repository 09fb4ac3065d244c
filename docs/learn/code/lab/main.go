// Command lab runs what a controller needs, without a controller: a local Kubernetes
// and a Neutron in memory. Both outlive the controllers that a lesson starts, stops and
// kills. The lab prints each request that changes something in Neutron.
//
//	go run ./docs/learn/code/lab
//
// It also makes trouble, with curl -X POST http://127.0.0.1:9696/lab/hold and others:
//
//	hold                keep the next request that creates a network unanswered
//	release             execute the request that is kept
//	outage              answer all requests with 503
//	slow                answer each request for a network after half a second
//	recovery            end both
//	restart-kubernetes  restart the API server, so that all watches break
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/launch"
)

func main() {
	log.SetFlags(log.Ltime)
	log.SetOutput(os.Stdout)
	address := flag.String("neutron-address", "127.0.0.1:9696", "loopback `address` of Neutron")
	flag.Parse()
	ctx, _ := launch.Signals()
	if err := run(ctx, *address); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

// run runs Kubernetes and Neutron until the context ends.
func run(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("starting Neutron: %w", err)
	}
	log.Print("Starting a local Kubernetes.")
	cluster, err := launch.StartCluster(ctx, controlplane.Options{Apply: []string{"crd"}, ControllerManager: true})
	if err != nil {
		return err
	}
	l := &lab{cluster: cluster, neutron: embedded.New(embedded.Options{}), release: func() {}, recover: func() {}}
	server := &http.Server{Handler: l.routes(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	log.Printf("Ready: export KUBECONFIG=%s. Neutron is at http://%s. Ctrl-C ends both.",
		cluster.Kubeconfig(), listener.Addr())

	<-ctx.Done()
	_ = server.Close()
	return cluster.Stop()
}

// lab is a Kubernetes and a Neutron, and the trouble that they have.
type lab struct {
	cluster *launch.Cluster
	neutron *embedded.Server

	mu      sync.Mutex
	held    <-chan struct{} // nil unless the next create of a network is to be kept
	release func()
	recover func()
}

func (l *lab) routes() http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("/", l.serveNeutron)
	for name, trouble := range map[string]func() error{
		"hold":               l.hold,
		"release":            func() error { l.release(); return nil },
		"outage":             l.inject(embedded.Fault{Status: http.StatusServiceUnavailable}),
		"slow":               l.inject(embedded.Fault{Path: "/v2.0/networks", Delay: time.Second / 2}),
		"recovery":           func() error { l.recover(); return nil },
		"restart-kubernetes": l.restartKubernetes,
	} {
		routes.HandleFunc("POST /lab/"+name, func(w http.ResponseWriter, _ *http.Request) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if err := trouble(); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			log.Printf("Lab: %s", name)
		})
	}
	return routes
}

func (l *lab) hold() error {
	l.release()
	held := make(chan struct{})
	l.held, l.release = held, sync.OnceFunc(func() { close(held) })
	return nil
}

// inject returns a function that makes Neutron's answers faulty until the recovery.
func (l *lab) inject(fault embedded.Fault) func() error {
	return func() error {
		l.recover()
		l.recover = l.neutron.Inject(fault)
		return nil
	}
}

func (l *lab) restartKubernetes() error {
	if err := l.cluster.StopAPIServer(); err != nil {
		return err
	}
	return l.cluster.StartAPIServer(context.Background()) // a request may end before it
}

// serveNeutron prints a request that changes something, and passes it to Neutron. A
// request that it keeps is executed after the release, even if its client has died.
func (l *lab) serveNeutron(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		log.Printf("Neutron: %s %s", r.Method, r.URL.Path) //nolint:gosec // the clients are on this machine
		body, err := io.ReadAll(r.Body)                    // later, the client may be gone
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if held := l.keep(r); held != nil {
		log.Print("Neutron: … is kept until the release")
		<-held
	}
	l.neutron.ServeHTTP(w, r)
}

// keep returns what a request has to wait for, or nil.
func (l *lab) keep(r *http.Request) <-chan struct{} {
	if r.Method != http.MethodPost || r.URL.Path != "/v2.0/networks" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.held
	l.held = nil
	return held
}

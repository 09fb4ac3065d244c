package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"sync"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/test/controlplane"
)

// lab is a Kubernetes and a Neutron, and the trouble that they have.
type lab struct {
	cluster *controlplane.Cluster
	neutron *embedded.Server

	mu      sync.Mutex
	held    <-chan struct{} // nil unless the next create of a network is to be kept
	release func()
	recover func()
}

func (l *lab) routes() http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("/", l.serveNeutron)
	for name, trouble := range map[string]func(context.Context) error{
		"hold":               l.holdCreate,
		"release":            func(context.Context) error { l.release(); return nil },
		"outage":             l.startOutage,
		"recovery":           func(context.Context) error { l.recover(); return nil },
		"restart-kubernetes": l.restartKubernetes,
	} {
		routes.HandleFunc("POST /lab/"+name, func(w http.ResponseWriter, r *http.Request) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if err := trouble(r.Context()); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			log.Printf("Lab: %s", name)
		})
	}
	return routes
}

func (l *lab) holdCreate(context.Context) error {
	l.release()
	held := make(chan struct{})
	l.held, l.release = held, sync.OnceFunc(func() { close(held) })
	return nil
}

func (l *lab) startOutage(context.Context) error {
	l.recover()
	l.recover = l.neutron.Inject(embedded.Fault{Status: http.StatusServiceUnavailable})
	return nil
}

func (l *lab) restartKubernetes(ctx context.Context) error {
	if err := l.cluster.StopAPIServer(); err != nil {
		return err
	}
	return l.cluster.StartAPIServer(ctx)
}

// serveNeutron prints a request that changes something, and passes it to Neutron. A
// request that it keeps is executed after the release, even if its client has died.
func (l *lab) serveNeutron(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		l.neutron.ServeHTTP(w, r)
		return
	}
	log.Printf("Neutron: %s %s", r.Method, r.URL.Path) //nolint:gosec // the clients are on this machine
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if held := l.keep(r); held != nil {
		log.Print("Neutron: … is kept until the release")
		<-held
	}
	answer := &recorder{ResponseWriter: w}
	l.neutron.ServeHTTP(answer, r.WithContext(context.WithoutCancel(r.Context())))
	log.Printf("Neutron: %s %s is answered with %d", r.Method, r.URL.Path, answer.status) //nolint:gosec // as above
}

// keep returns what a request has to wait for, or nil.
func (l *lab) keep(r *http.Request) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Method != http.MethodPost || r.URL.Path != "/v2.0/networks" {
		return nil
	}
	held := l.held
	l.held = nil
	return held
}

// recorder records the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

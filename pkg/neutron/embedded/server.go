package embedded

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron/faults"
)

// Options configure a Server. By default it has the extensions of the Neutron that
// it was compared with.
type Options struct {
	// MaxPage limits the number of objects in a list. Defaults to no limit.
	MaxPage int
	// With and Without list aliases of extensions to add, such as dns-integration, and to
	// remove, with those that need them.
	With, Without []string
	// Project is the ID of the project that owns all objects. Defaults to that of a real
	// Neutron without authentication.
	Project string
}

// Fault is a failure that a Server simulates.
type Fault = faults.Fault

// Request is a request that a Server has received.
type Request = faults.Request

// Server is a Neutron in memory. It is an http.Handler, and Listen makes it a
// server. Requests reach it through a Front, which can make them fail.
type Server struct {
	*faults.Front
	maxPage    int
	project    string
	extensions []string
	mux        *http.ServeMux

	mu                                             sync.Mutex
	networks, subnets, subnetPools, ports, routers *collection
	listener                                       net.Listener
	http                                           *http.Server
}

// New returns a Server without any objects.
func New(options Options) *Server {
	isMissing := func(alias string) bool { // net-mtu-writable needs net-mtu
		return slices.ContainsFunc(options.Without, func(without string) bool { return strings.HasPrefix(alias, without) })
	}
	s := &Server{
		maxPage: options.MaxPage, project: cmp.Or(options.Project, "fake-project-id"), mux: http.NewServeMux(),
		extensions: slices.DeleteFunc(slices.Concat(extensions, options.With), isMissing),
	}
	s.Front = faults.New(http.HandlerFunc(s.serve))
	s.networks, s.subnets, s.subnetPools = s.newNetworks(), s.newSubnets(), s.newSubnetPools()
	s.ports, s.routers = s.newPorts(), s.newRouters()
	for _, c := range s.collections() {
		s.handleCollection(c)
	}
	if s.has("router") {
		s.handleRouters()
	}
	s.handleQuotas()
	s.handleExtensions()
	s.handle("GET /{$}", http.StatusOK, func(r *http.Request) (object, *apiError) {
		return object{"versions": []object{{
			"id": "v2.0", "status": "CURRENT", "links": []object{{"rel": "self", "href": "http://" + r.Host + "/v2.0/"}},
		}}}, nil
	})
	s.handle("/v2.0/", http.StatusOK, func(*http.Request) (object, *apiError) { return nil, noSuchPath })
	return s
}

func (s *Server) collections() []*collection {
	all := []*collection{s.networks, s.subnets, s.ports}
	if s.has("subnet_allocation") {
		all = append(all, s.subnetPools)
	}
	if s.has("router") {
		all = append(all, s.routers)
	}
	return all
}

// Listen starts to serve, in the background, at an address of the loopback
// interface, such as 127.0.0.1:9696. Port 0 is a free port. Defaults to 127.0.0.1:0.
func (s *Server) Listen(address string) error {
	if address == "" {
		address = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not an address with a port, such as 127.0.0.1:9696", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%q is not a loopback address: the embedded Neutron has no authentication, "+
			"so it listens on 127.0.0.1, ::1 or localhost only", host)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return fmt.Errorf("already listening on %s", s.listener.Addr())
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	s.listener, s.http = listener, server
	go func() { _ = server.Serve(listener) }() // ends with Close
	return nil
}

// URL returns the URL of the Server, such as http://127.0.0.1:9696; it is empty
// before Listen.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return ""
	}
	return "http://" + s.listener.Addr().String()
}

// Close stops listening, and closes the connections of running requests.
func (s *Server) Close() error {
	s.mu.Lock()
	server := s.http
	s.mu.Unlock()
	if server == nil {
		return nil
	}
	return server.Close()
}

// serve responds to one request at a time.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mux.ServeHTTP(w, r)
}

// handle registers a function that returns the body of a response, or an error. The
// function runs with s.mu held.
func (s *Server) handle(pattern string, status int, do func(*http.Request) (object, *apiError)) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		body, failure := do(r)
		switch {
		case failure != nil:
			writeJSON(w, failure.status, failure.body())
		case status == http.StatusNoContent:
			w.WriteHeader(status)
		default:
			writeJSON(w, status, body)
		}
	})
}

func writeJSON(w http.ResponseWriter, status int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // users read the links
	if err := encoder.Encode(body); err != nil {
		panic(err) // all values were decoded from JSON
	}
}

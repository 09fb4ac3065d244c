// Package embedded is an OpenStack Neutron in memory, behind real HTTP. It
// answers as neutron-server 21.0 does, as far as networks, subnets and ports
// go, for trying the controller without a cloud, and for tests: those can make
// it fail in the ways a real one does.
//
// What it has is lost when it stops. It knows one project and asks for no
// authentication, so it listens on loopback only.
package embedded

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Options are the limits of a Server. The zero value has none.
type Options struct {
	// NetworkQuota, SubnetQuota and PortQuota are how many of each there can
	// be; 0 stands for any number.
	NetworkQuota, SubnetQuota, PortQuota int
	// MaxPage is how many objects one answer lists at most; 0 stands for all.
	MaxPage int
}

// Server is a Neutron in memory. It is an http.Handler; Listen puts it on a
// port of its own.
type Server struct {
	options Options
	mux     *http.ServeMux

	mu          sync.Mutex
	collections map[string]*collection // by the name in the path
	faults      []*Fault
	requests    []Request

	listener net.Listener
	http     *http.Server
}

// Request is a request that was answered, or cut off.
type Request struct {
	Method, Path, Query, UserAgent string
	// Status is the one of the answer; 0 where there was none.
	Status int
}

// maxRequests is how many requests are remembered at most, the latest ones: a
// server that runs for months must not grow.
const maxRequests = 20_000

// New returns an empty Server.
func New(options Options) *Server {
	s := &Server{options: options, mux: http.NewServeMux()}
	s.collections = map[string]*collection{
		"networks": newNetworks(options.NetworkQuota),
		"subnets":  newSubnets(options.SubnetQuota),
		"ports":    newPorts(options.PortQuota),
	}
	s.mux.HandleFunc("GET /{$}", s.versions)
	s.mux.HandleFunc("GET /v2.0/{collection}", s.list)
	s.mux.HandleFunc("POST /v2.0/{collection}", s.create)
	s.mux.HandleFunc("GET /v2.0/{collection}/{id}", s.show)
	s.mux.HandleFunc("PUT /v2.0/{collection}/{id}", s.update)
	s.mux.HandleFunc("DELETE /v2.0/{collection}/{id}", s.delete)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		answerError(w, notFound("HTTP", "The resource could not be found."))
	})
	return s
}

// Listen begins to serve at an address of the loopback interface, such as
// 127.0.0.1:9696, in the background. Port 0 stands for a free one.
func (s *Server) Listen(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("it is no address with a port, such as 127.0.0.1:9696: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%q is not a loopback address: it asks for no authentication, so it can listen on 127.0.0.1, ::1 or localhost only", host)
	}
	s.listener, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.http.Serve(s.listener) }() // ends with Close
	return nil
}

// URL returns where the Server listens, such as http://127.0.0.1:9696.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Close ends what Listen began, and cuts off what is still being answered.
func (s *Server) Close() error {
	if s.http == nil {
		return nil
	}
	return s.http.Close()
}

// ServeHTTP answers a request, unless a fault gets in its way.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault := s.nextFault(r)
	if !fault.wait(r) || fault.DropRequest {
		s.remember(r, 0)
		panic(http.ErrAbortHandler) // cuts the connection
	}
	a := &recordedAnswer{header: http.Header{}}
	if fault.Status != 0 {
		fault.answer(a)
	} else {
		s.mux.ServeHTTP(a, r)
	}
	if fault.DropAnswer {
		s.remember(r, 0)
		panic(http.ErrAbortHandler)
	}
	// Whoever has the answer finds its request among the requests.
	s.remember(r, a.status)
	a.send(w, fault.Truncate)
}

// Requests returns the requests so far, the oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ResetRequests forgets the requests so far.
func (s *Server) ResetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

func (s *Server) remember(r *http.Request, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) >= maxRequests {
		s.requests = slices.Delete(s.requests, 0, maxRequests/2)
	}
	s.requests = append(s.requests, Request{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, UserAgent: r.UserAgent(), Status: status,
	})
}

func (s *Server) versions(w http.ResponseWriter, r *http.Request) {
	answer(w, http.StatusOK, object{"versions": []object{{
		"id": "v2.0", "status": "CURRENT",
		"links": []object{{"rel": "self", "href": "http://" + r.Host + "/v2.0/"}},
	}}})
}

// recordedAnswer holds an answer until it is complete: nobody who reads slowly
// keeps the others waiting.
type recordedAnswer struct {
	header http.Header
	status int
	body   []byte
}

func (a *recordedAnswer) Header() http.Header { return a.header }

func (a *recordedAnswer) WriteHeader(status int) { a.status = status }

func (a *recordedAnswer) Write(p []byte) (int, error) {
	a.body = append(a.body, p...)
	return len(p), nil
}

// send sends the answer; where it is to be truncated, half of it, and cuts the
// connection.
func (a *recordedAnswer) send(w http.ResponseWriter, truncate bool) {
	maps.Copy(w.Header(), a.header)
	if a.status != http.StatusNoContent {
		w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	if truncate {
		_, _ = w.Write(a.body[:len(a.body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(a.body)
}

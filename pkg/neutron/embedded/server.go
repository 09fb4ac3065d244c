package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options are the limits of a Server. The zero value has none.
type Options struct {
	// NetworkQuota, SubnetQuota and PortQuota are how many of each there can
	// be; 0 stands for any number. PUT /v2.0/quotas/{project} changes them.
	NetworkQuota, SubnetQuota, PortQuota int
	// MaxPage is how many objects one answer lists at most; 0 stands for all.
	MaxPage int
}

// Server is a Neutron in memory. It is an http.Handler; Listen puts it on a
// port of its own.
type Server struct {
	options Options
	mux     *http.ServeMux

	mu                       sync.Mutex
	networks, subnets, ports *collection
	faults                   []*Fault
	requests                 []Request
	listener                 net.Listener
	http                     *http.Server
}

// Request is a request that was answered, or cut off.
type Request struct {
	Method, Path, Query, UserAgent string
	// Status is the one of the answer; 0 where there was none.
	Status int
}

const (
	// maxRequests is how many requests are remembered at most, the latest
	// ones: a server that runs for months must not grow.
	maxRequests = 20_000
	// maxBody is the size of a request's body at most, in bytes.
	maxBody = 1 << 20
)

// New returns an empty Server.
func New(options Options) *Server {
	s := &Server{options: options, mux: http.NewServeMux()}
	s.networks = s.newNetworks(options.NetworkQuota)
	s.subnets = s.newSubnets(options.SubnetQuota)
	s.ports = s.newPorts(options.PortQuota)
	for _, c := range s.collections() {
		s.handleCollection(c)
	}
	s.handleQuotas()
	s.handleVersions()
	return s
}

func (s *Server) collections() []*collection {
	return []*collection{s.networks, s.subnets, s.ports}
}

// Listen begins to serve at an address of the loopback interface, such as
// 127.0.0.1:9696, in the background. Port 0 stands for a free one, and the
// empty address for 127.0.0.1:0.
func (s *Server) Listen(address string) error {
	if address == "" {
		address = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not an address with a port, such as 127.0.0.1:9696", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%q is not a loopback address: the embedded Neutron asks for no password, so it listens on 127.0.0.1, ::1 or localhost only", host)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return fmt.Errorf("it already listens on %s", s.listener.Addr())
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

// URL returns where the Server listens, such as http://127.0.0.1:9696; nothing
// before Listen.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return ""
	}
	return "http://" + s.listener.Addr().String()
}

// Close ends what Listen began, and cuts off what is still being answered.
func (s *Server) Close() error {
	s.mu.Lock()
	server := s.http
	s.mu.Unlock()
	if server == nil {
		return nil
	}
	return server.Close()
}

// ServeHTTP answers a request, unless a fault gets in its way.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The body is read first: only then can be seen that a client gives up.
	body, bodyErr := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	r.Body = io.NopCloser(bytes.NewReader(body))
	fault := s.nextFault(r)
	if !fault.wait(r) || fault.DropRequest {
		s.remember(r, 0)
		panic(http.ErrAbortHandler) // cuts the connection
	}
	a := &answer{header: http.Header{}}
	switch {
	case fault.Status != 0:
		fault.answer(a)
	case bodyErr != nil:
		a.json(tooLarge.status, tooLarge.body())
	default:
		s.carryOut(a, withPlainPath(r))
	}
	if fault.DropAnswer {
		s.remember(r, 0)
		panic(http.ErrAbortHandler)
	}
	// Whoever has the answer finds its request among the requests.
	s.remember(r, a.status)
	a.send(w, fault.Truncate)
}

func (s *Server) carryOut(a *answer, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mux.ServeHTTP(a, r)
}

// withPlainPath takes away the endings that Neutron does not mind.
func withPlainPath(r *http.Request) *http.Request {
	path := strings.TrimSuffix(r.URL.Path, "/")
	path = strings.TrimSuffix(path, ".json")
	if path == r.URL.Path || !strings.HasPrefix(path, "/v2.0/") {
		return r
	}
	plain := r.Clone(r.Context())
	plain.URL.Path, plain.URL.RawPath = path, ""
	return plain
}

// handle has requests answered by a function that returns the body of the
// answer, or what is wrong. It runs with s.mu held.
func (s *Server) handle(pattern string, status int, do func(*http.Request) (object, *apiError)) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		a := w.(*answer)
		body, failure := do(r)
		switch {
		case failure != nil:
			a.json(failure.status, failure.body())
		case status == http.StatusNoContent:
			a.WriteHeader(status)
		default:
			a.json(status, body)
		}
	})
}

// Requests returns the requests so far, the oldest first. There are no more
// than 20,000; older ones are forgotten.
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

// answer holds an answer until it is complete: nobody who reads slowly keeps
// the others waiting. It is an http.ResponseWriter.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) { a.status = status }

func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.body.Write(p)
}

func (a *answer) json(status int, body object) {
	a.header.Set("Content-Type", "application/json")
	a.status = status
	encoder := json.NewEncoder(&a.body)
	encoder.SetEscapeHTML(false) // there are links in it, which people read
	if err := encoder.Encode(body); err != nil {
		panic(err) // what was read as JSON can be written as JSON
	}
}

// send sends the answer; where it is to be truncated, half of it, and cuts the
// connection.
func (a *answer) send(w http.ResponseWriter, truncate bool) {
	maps.Copy(w.Header(), a.header)
	if a.status != http.StatusNoContent {
		w.Header().Set("Content-Length", strconv.Itoa(a.body.Len()))
	}
	w.WriteHeader(a.status)
	body := a.body.Bytes()
	if truncate {
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body)
}

package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/samplecrd/network-controller/pkg/neutron/faults"
)

// Options say how a Server differs from one with no limits and with the
// extensions that the measured Neutron has.
type Options struct {
	// NetworkQuota, SubnetQuota and PortQuota are how many of each there can
	// be; 0 stands for any number. PUT /v2.0/quotas/{project} changes them.
	NetworkQuota, SubnetQuota, PortQuota int
	// MaxPage is how many objects one answer lists at most; 0 stands for all.
	MaxPage int
	// With are aliases of extensions to add. There is one: dns-integration.
	With []string
	// Without are aliases of extensions to do without: net-mtu, which takes
	// net-mtu-writable with it, net-mtu-writable alone, port-security,
	// standard-attr-tag, subnet_allocation, which takes default-subnetpools
	// with it, and default-subnetpools alone. New panics on any other.
	Without []string
}

// Server is a Neutron in memory. It is an http.Handler; Listen puts it on a
// port of its own. Requests reach it through a Front, which can make them fail.
type Server struct {
	*faults.Front
	options    Options
	extensions []extension
	mux        *http.ServeMux

	mu                                    sync.Mutex
	networks, subnets, subnetPools, ports *collection
	listener                              net.Listener
	http                                  *http.Server
}

// New returns an empty Server.
func New(options Options) *Server {
	s := &Server{options: options, extensions: chooseExtensions(options), mux: http.NewServeMux()}
	s.Front = faults.New(http.HandlerFunc(s.carryOut))
	s.networks = s.newNetworks(options.NetworkQuota)
	s.subnets = s.newSubnets(options.SubnetQuota)
	s.subnetPools = s.newSubnetPools()
	s.ports = s.newPorts(options.PortQuota)
	for _, c := range s.collections() {
		s.handleCollection(c)
	}
	s.handleQuotas()
	s.handleExtensions()
	s.handleVersions()
	return s
}

func (s *Server) collections() []*collection {
	if !s.has("subnet_allocation") {
		return []*collection{s.networks, s.subnets, s.ports}
	}
	return []*collection{s.networks, s.subnets, s.subnetPools, s.ports}
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

// carryOut does what a request asks for.
func (s *Server) carryOut(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		writeJSON(w, tooLarge.status, tooLarge.body())
		return
	}
	if !utf8.ValidString(r.URL.Path) { // a real Neutron trips over that, too
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mux.ServeHTTP(w, withPlainPath(r))
}

// withPlainPath takes away the endings that Neutron does not mind.
func withPlainPath(r *http.Request) *http.Request {
	path, escaped, ok := tagPath(r.URL.Path)
	if !ok {
		path = strings.TrimSuffix(r.URL.Path, "/")
		path = strings.TrimSuffix(path, ".json")
		if path == r.URL.Path || !strings.HasPrefix(path, "/v2.0/") {
			return r
		}
	}
	plain := r.Clone(r.Context())
	plain.URL.Path, plain.URL.RawPath = path, escaped
	return plain
}

// handle has requests answered by a function that returns the body of the
// answer, or what is wrong. It runs with s.mu held.
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
	encoder.SetEscapeHTML(false) // there are links in it, which people read
	if err := encoder.Encode(body); err != nil {
		panic(err) // what was read as JSON can be written as JSON
	}
}

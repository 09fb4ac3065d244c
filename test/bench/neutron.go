package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/test/internal/process"
)

// neutronCommand makes this program the Neutron of a run, in a process of its own.
const neutronCommand = "neutron"

// counts are numbers of requests, by method and kind, such as "POST networks".
type counts map[string]int

func (c counts) minus(before counts) counts {
	difference := counts{}
	for name, n := range c {
		if n > before[name] {
			difference[name] = n - before[name]
		}
	}
	return difference
}

func (c counts) total() (sum int) {
	for _, n := range c {
		sum += n
	}
	return sum
}

// neutronServer is the embedded Neutron, with a latency and a count of requests.
type neutronServer struct {
	embedded *embedded.Server

	mu      sync.Mutex
	latency time.Duration
	// perObject is how much longer a page of a list takes for each object.
	perObject time.Duration
	counts    counts
}

// serveNeutron serves until the process is killed. It prints its URL.
func serveNeutron() error {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	server := &http.Server{Handler: &neutronServer{embedded: embedded.New(embedded.Options{}), counts: counts{}}, ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it closes when the benchmark ends
		os.Exit(0)
	}()
	return server.Serve(listener)
}

// ServeHTTP passes a request on after the latency. The paths under /bench are those
// of the benchmark itself.
func (s *neutronServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/bench/counts":
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = json.NewEncoder(w).Encode(s.counts)
	case "/bench/latency":
		latency, err := time.ParseDuration(r.URL.Query().Get("is"))
		perObject, err2 := time.ParseDuration(r.URL.Query().Get("object"))
		if err := errors.Join(err, err2); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.latency, s.perObject = latency, perObject
	case "/bench/hold": // the next network is created only after a time, even if the client is gone
		work, err := time.ParseDuration(r.URL.Query().Get("for"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.embedded.Inject(embedded.Fault{Method: http.MethodPost, Path: "^/v2.0/networks$", Times: 1, Work: work})
	default:
		if latency := s.count(r); latency > 0 {
			<-time.After(latency)
		}
		s.embedded.ServeHTTP(w, r)
	}
}

// count counts a request, and returns the latency.
func (s *neutronServer) count(r *http.Request) time.Duration {
	kind, id, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2.0/"), "/")
	method := r.Method
	if query := r.URL.Query(); method == http.MethodGet && id == "" && !query.Has("id") && !query.Has("description") && !query.Has("name") && !query.Has("network_id") {
		method = "LIST"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[method+" "+kind]++
	if limit, _ := strconv.Atoi(r.URL.Query().Get("limit")); method == "LIST" {
		return s.latency + time.Duration(limit)*s.perObject
	}
	return s.latency
}

// neutron is the Neutron of a run, as the benchmark sees it.
type neutron struct {
	process *process.Process
	url     string
}

var errNotListening = errors.New("it does not listen yet")

func startNeutron(ctx context.Context, dir string, latency, perObject time.Duration) (*neutron, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	n := &neutron{}
	if n.process, err = process.Start(dir, process.Program{Name: "neutron", Args: []string{program, neutronCommand}}); err != nil {
		return nil, err
	}
	err = process.WaitUntil(ctx, func(context.Context) error {
		if n.url, _, _ = strings.Cut(n.process.Log(), "\n"); !strings.HasSuffix(n.process.Log(), "\n") {
			return errNotListening
		}
		return nil
	}, n.process)
	if err == nil {
		err = n.get(ctx, "/bench/latency?is="+latency.String()+"&object="+perObject.String(), nil)
	}
	if err != nil {
		n.process.Kill()
		return nil, err
	}
	return n, nil
}

func (n *neutron) counts(ctx context.Context) (all counts, err error) {
	return all, n.get(ctx, "/bench/counts", &all)
}

func (n *neutron) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d", path, response.StatusCode)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(into)
}

package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
)

// neutron is the embedded Neutron, with a latency and a count of requests.
type neutron struct {
	embedded *embedded.Server
	server   *httptest.Server
	latency  time.Duration

	mu           sync.Mutex
	calls, lists int
}

func startNeutron(latency time.Duration) *neutron {
	n := &neutron{embedded: embedded.New(embedded.Options{}), latency: latency}
	n.server = httptest.NewServer(n)
	return n
}

// ServeHTTP counts a request, and passes it on after the latency.
func (n *neutron) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.count(r)
	if n.latency > 0 {
		<-time.After(n.latency)
	}
	n.embedded.ServeHTTP(w, r)
}

// count counts a request. Those are lists that select no object.
func (n *neutron) count(r *http.Request) {
	kind := strings.TrimPrefix(r.URL.Path, "/v2.0/")
	isList := r.Method == http.MethodGet && !strings.Contains(kind, "/")
	for _, filter := range []string{"id", "description", "name", "network_id"} {
		isList = isList && !r.URL.Query().Has(filter)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if isList {
		n.lists++
	} else {
		n.calls++
	}
}

// requests returns how many requests there were.
func (n *neutron) requests() requests {
	n.mu.Lock()
	defer n.mu.Unlock()
	return requests{Calls: n.calls, Lists: n.lists}
}

package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
)

// neutron is the embedded Neutron, with a latency and a count of requests.
type neutron struct {
	*httptest.Server
	all, lists atomic.Int64
}

func startNeutron(latency time.Duration) *neutron {
	n := &neutron{}
	server := embedded.New(embedded.Options{})
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.all.Add(1)
		if isCompleteList(r) {
			n.lists.Add(1)
		}
		if latency > 0 {
			<-time.After(latency)
		}
		server.ServeHTTP(w, r)
	}))
	return n
}

// isCompleteList reports whether a request is a list that selects no object.
func isCompleteList(r *http.Request) bool {
	for _, filter := range []string{"id", "description", "name", "network_id"} {
		if r.URL.Query().Has(filter) {
			return false
		}
	}
	return r.Method == http.MethodGet && !strings.Contains(strings.TrimPrefix(r.URL.Path, "/v2.0/"), "/")
}

func (n *neutron) flag() string { return "-neutron-endpoint=" + n.URL }

func (n *neutron) requests() (all, complete int) { return int(n.all.Load()), int(n.lists.Load()) }

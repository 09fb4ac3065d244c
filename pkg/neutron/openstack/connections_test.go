package openstack_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
)

// TestConnectionsAreReused: each of many workers has a connection for all its requests,
// whether a response has an object, nothing, or an error. (While a request waits for a new
// connection, another one can become free, so a few more are opened.)
func TestConnectionsAreReused(t *testing.T) {
	const workers, rounds = 32, 3
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(embedded.New(embedded.Options{}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	client := connect(t, server.URL)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range rounds {
				for _, request := range requests {
					_ = request(t.Context(), client)
				}
			}
		})
	}
	all.Wait()
	if opened := opened.Load(); opened > 2*workers {
		t.Errorf("%d workers have opened %d connections for %d requests", workers, opened, len(requests)*workers*rounds)
	}
}

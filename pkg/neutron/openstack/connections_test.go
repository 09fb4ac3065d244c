package openstack_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
)

// TestConnectionsAreReused: each of many workers has a connection for all its
// requests. (While a request waits for a new connection, another one can become
// free, so a few more are opened.)
func TestConnectionsAreReused(t *testing.T) {
	const workers, rounds = 32, 10
	var opened, received atomic.Int32
	neutron := embedded.New(embedded.Options{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received.Add(1)
		neutron.ServeHTTP(w, r)
	}))
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
				createAndDelete(t, client)
			}
		})
	}
	all.Wait()
	if opened, received := opened.Load(), received.Load(); opened > 2*workers || received < 4*workers*rounds {
		t.Errorf("%d workers have opened %d connections for %d requests", workers, opened, received)
	}
}

// createAndDelete sends one request of each kind that answers differently: with an
// object, with nothing, and with an error.
func createAndDelete(t *testing.T, client neutron.Client) {
	t.Helper()
	network, err := client.CreateNetwork(t.Context(), neutron.NewNetwork{Name: "a", Description: "b"})
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := client.UpdateNetwork(t.Context(), network.ID, neutron.NetworkUpdate{Name: "c", Revision: network.Revision + 9}); err == nil {
		t.Error("an update at another revision succeeds")
	}
	if _, err := client.Networks(t.Context(), neutron.NetworkFilter{ID: network.ID}); err != nil {
		t.Error(err)
	}
	if err := client.DeleteNetwork(t.Context(), network.ID, network.Revision); err != nil {
		t.Error(err)
	}
}

package openstack_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
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

// TestDeadConnection: a connection that a firewall no longer forwards, without a word, costs
// the request that waits on it, and not those that follow.
func TestDeadConnection(t *testing.T) {
	c := newCloud(t)
	server := httptest.NewUnstartedServer(c.Config.Handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	var isDead atomic.Bool
	url := "https://" + startFirewall(t, server.Listener.Addr().String(), &isDead)
	c.use(withPassword(url, password, "verify: false", "network_endpoint_override: "+url+"/networking")...)
	c.connect(openstack.Options{Timeout: time.Second})
	c.wantList()
	isDead.Store(true)
	c.wantUnavailable("timed out")
	c.wantList()
}

// startFirewall starts a proxy of a server, and returns its address. It forwards nothing more
// on its first connection once that is dead.
func startFirewall(t *testing.T, server string, isFirstDead *atomic.Bool) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for isFirst := true; ; isFirst = false {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(from, to) }()
			go func() {
				defer func() { _ = to.Close() }()
				for packet := make([]byte, 1<<16); ; {
					n, err := from.Read(packet)
					if err != nil {
						return
					}
					if !isFirst || !isFirstDead.Load() {
						_, _ = to.Write(packet[:n])
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

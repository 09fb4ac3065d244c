package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProbes: a controller that waits for Kubernetes is live but not ready, and
// /readyz returns the reason.
func TestProbes(t *testing.T) {
	t.Parallel()
	kubeconfig := filepath.Join(t.TempDir(), "unreachable.kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c"}}], "current-context": "c"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, "-kubeconfig="+kubeconfig, "-health-probe-bind-address=127.0.0.1:0")
	p.waitFor(t, `Waiting for Kubernetes`)
	readyz := p.readyz()
	h := &harness{T: t}
	h.eventually(func() error {
		return responds(readyz, http.StatusServiceUnavailable, "waiting: Kubernetes: the API server is unavailable")
	})
	if err := responds(strings.Replace(readyz, "/readyz", "/livez", 1), http.StatusOK, "ok"); err != nil {
		t.Error(err)
	}
}

// TestStuckWorker: the watchdog finds a worker whose request gets no response.
func TestStuckWorker(t *testing.T) {
	h := newHarness(t)
	reached := h.holdCreateNetwork()
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	release := <-reached
	if err := h.watchdog.Check(0); err == nil || !strings.Contains(err.Error(), h.namespace+"/example") {
		t.Errorf("Check() = %v, want the Network whose request has no response", err)
	}
	close(release)
	h.waitReady("example")
	h.eventually(func() error { return h.watchdog.Check(0) })
}

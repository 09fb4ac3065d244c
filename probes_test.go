package main

import (
	"strings"
	"testing"
)

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

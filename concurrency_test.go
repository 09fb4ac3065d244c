package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The tests in this file have concurrent writers: another controller, or a user
// whose change the cache does not contain yet.

// TestTwoControllersDisagree: two controllers that write different statuses do not
// trigger each other indefinitely.
func TestTwoControllersDisagree(t *testing.T) {
	h := newHarness(t)
	h.settings.reconcile.Retry.OverwrittenStatus = time.Hour
	h.settings.reconcile.AllowAdoption = true
	h.startController()
	h.createAdopting("example", "10.0.0.0/24", h.postNetwork("theirs", ""))
	h.waitReady("example")
	first := h.controller
	h.settings.reconcile.AllowAdoption = false
	h.startController()
	h.waitCondition("example", metav1.ConditionFalse, "AdoptionNotAllowed", "")
	h.eventually(func() error { // the first controller has received the status
		if n, err := first.networks.Get(h.key()); err != nil || n.Status.Conditions[0].Reason != "AdoptionNotAllowed" {
			return fmt.Errorf("the cache has %v, %w", n, err)
		}
		return nil
	})
	h.forgetRequests()
	h.create("another", "10.0.1.0/24", "")
	h.waitReady("another")
	for _, write := range h.writes.get() {
		if strings.Contains(write, "/example") {
			t.Errorf("unexpected write: %s", write)
		}
	}
}

// TestRetainWithStaleCache: nothing is deleted because of an outdated deletion
// policy in the cache.
func TestRetainWithStaleCache(t *testing.T) {
	h := newHarness(t)
	var unreachable atomic.Bool
	reads := make(chan struct{}, 100)
	h.transport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if unreachable.Load() {
				if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/networks/example") {
					reads <- struct{}{}
				}
				return nil, errUnreachable
			}
			response, err := next.RoundTrip(r)
			if err == nil {
				response.Body = cutBody{response.Body, &unreachable}
			}
			return response, err
		})
	}
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	port := h.createPort(h.waitReady("example").Status.NetworkID)
	h.delete("example")
	h.waitCondition("example", metav1.ConditionFalse, "InUse", "")
	unreachable.Store(true)
	h.patch("example", `{"spec":{"deletionPolicy":"Retain"}}`)
	h.deletePort(port)
	<-reads
	<-reads // the first try has ended
	h.wantCounts(1, 1)
	unreachable.Store(false)
	h.waitGone("example")
	h.wantCounts(1, 1)
}

// cutBody is a response body that breaks off while the API server is unreachable.
type cutBody struct {
	io.ReadCloser
	unreachable *atomic.Bool
}

func (b cutBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.unreachable.Load() {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// TestStatusForbidden: if the controller is not permitted to write the status, an
// event reports it.
func TestStatusForbidden(t *testing.T) {
	h := newHarness(t)
	var allowed atomic.Bool
	h.transport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/status") && !allowed.Load() {
				r = r.Clone(r.Context())
				r.Header.Set("Impersonate-User", "user without permissions")
			}
			return next.RoundTrip(r)
		})
	}
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitEventNote("Forbidden", `cannot patch resource "networks/status"`)
	allowed.Store(true)
	h.waitReady("example")
	h.wantCounts(1, 1)
}

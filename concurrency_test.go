package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What must hold when others are at it as well: another controller, a user
// whose change has not come yet, a request that nobody waits for any more.

var errAway = errors.New("no route to host")

// TestStatusOfAnotherController: a status that another controller has written
// meanwhile is not written over: its network may be in use by now.
func TestStatusOfAnotherController(t *testing.T) {
	h := newHarness(t)
	h.settings.drift.ResyncPeriod = quickly
	reached := h.holdCreateNetwork()
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	release := <-reached
	theirs := h.postNetwork(h.namespace+"/example", h.mark("example"))
	if _, err := h.client.SamplecrdV1().Networks(h.namespace).Patch(t.Context(), "example", types.MergePatchType,
		[]byte(`{"status":{"networkID":"`+theirs+`"}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	h.eventually(func() error {
		if n, err := h.controller.networks.Get(h.key()); err != nil || n.Status.NetworkID != theirs {
			return fmt.Errorf("the cache has %v, %w", n, err)
		}
		return nil
	})
	close(release)
	h.waitReady("example")
	h.eventually(func() error { return h.countsAre(1, 1) })
	if got := h.inNeutron().Networks[0].ID; got != theirs {
		t.Errorf("the status named %s, which was deleted; %s stays", theirs, got)
	}
}

// TestTwoControllersDisagree: two controllers that come to different ends do not wake
// each other for ever.
func TestTwoControllersDisagree(t *testing.T) {
	h := newHarness(t)
	h.settings.reconcile.Retry.OverwrittenStatus = time.Hour
	h.settings.reconcile.AllowAdoption = true
	id := h.postNetwork("theirs", "")
	h.startController()
	h.createAdopting("example", "10.0.0.0/24", id)
	h.waitReady("example")
	first := h.controller
	h.settings.reconcile.AllowAdoption = false
	h.startController()
	h.waitCondition("example", metav1.ConditionFalse, "AdoptionNotAllowed", "")
	h.eventually(func() error { // the first one has seen it
		if n, err := first.networks.Get(h.key()); err != nil || n.Status.Conditions[0].Reason != "AdoptionNotAllowed" {
			return fmt.Errorf("the cache has %v, %w", n, err)
		}
		return nil
	})
	h.forgetRequests()
	h.create("another", "10.0.1.0/24", "")
	h.waitReady("another")
	h.wantNoWritesTo("/example")
}

// TestRetainWithStaleCache: nothing is deleted on the word of a cache that is
// behind.
func TestRetainWithStaleCache(t *testing.T) {
	h := newHarness(t)
	var away atomic.Bool
	asked := make(chan struct{}, 100)
	h.transport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if away.Load() {
				if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/networks/example") {
					asked <- struct{}{}
				}
				return nil, errAway
			}
			response, err := next.RoundTrip(r)
			if err == nil {
				response.Body = cutBody{response.Body, &away}
			}
			return response, err
		})
	}
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	port := h.createPort(h.waitReady("example").Status.NetworkID)
	h.delete("example")
	h.waitCondition("example", metav1.ConditionFalse, "InUse", "")
	away.Store(true)
	h.patch("example", `{"spec":{"deletionPolicy":"Retain"}}`)
	h.deletePort(port)
	<-asked
	<-asked // so the first try has come to its end
	h.wantCounts(1, 1)
	away.Store(false)
	h.waitGone("example")
	h.wantCounts(1, 1)
}

// cutBody is a body that ends when the other side is away.
type cutBody struct {
	io.ReadCloser
	away *atomic.Bool
}

func (b cutBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.away.Load() {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// TestStatusOfAnotherManager: what somebody has written into the status under
// another name is put right once, and then there is rest.
func TestStatusOfAnotherManager(t *testing.T) {
	h := newHarness(t)
	h.settings.drift.ResyncPeriod = quickly
	h.startController()
	h.createWith("example", fancySpec())
	before := h.waitReady("example").Status
	_, err := h.client.SamplecrdV1().Networks(h.namespace).Patch(t.Context(), "example", types.MergePatchType,
		[]byte(`{"status":{"tags":["blue","green","theirs"],"subnetPool":{"id":"x","name":"y"},"mtu":9}}`), metav1.PatchOptions{FieldManager: "restore"}, "status")
	if err != nil {
		t.Fatal(err)
	}
	h.eventually(func() error {
		if got := h.get("example").Status; !equality.Semantic.DeepEqual(got, before) {
			return fmt.Errorf("the status is %+v, want %+v", got, before)
		}
		return nil
	})
	h.forgetRequests()
	h.create("another", "10.0.1.0/24", "")
	h.waitReady("another")
	h.wantNoWritesTo("/example")
}

// TestStatusForbidden: where the controller may not write the status, an event says so.
func TestStatusForbidden(t *testing.T) {
	h := newHarness(t)
	var allowed atomic.Bool
	h.transport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/status") && !allowed.Load() {
				r = r.Clone(r.Context())
				r.Header.Set("Impersonate-User", "somebody without rights")
			}
			return next.RoundTrip(r)
		})
	}
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.wantEventNote("Forbidden", `cannot patch resource "networks/status"`)
	allowed.Store(true)
	h.waitReady("example")
	h.wantCounts(1, 1)
}

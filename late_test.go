package main

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// TestLateRequest: a process is killed while its request to create is in flight, and
// the next process starts at once. Neutron takes any time to execute the request:
// it is executed before each request of the next process in turn, or after the last one.
// In the end there is one network with one subnet, and the Network is ready.
//
// TestCrashes has the other cases: Neutron executes the request before the next
// process starts, or never.
func TestLateRequest(t *testing.T) {
	t.Parallel()
	for _, request := range []string{"POST /v2.0/networks", "POST /v2.0/subnets"} {
		t.Run(request, func(t *testing.T) {
			for n := range newHarness(t).finishLate(request, 0) {
				t.Run(fmt.Sprintf("before request %d", n+1), func(t *testing.T) { newHarness(t).finishLate(request, n+1) })
			}
		})
	}
}

// finishLate kills a process at its first such request, and starts another one. Neutron executes
// the request of the first process before the n-th request that it receives from the
// second one, or, if n is 0, when the second one has finished. finishLate returns
// the number of requests that the second process sent before.
func (h *harness) finishLate(request string, n int) (requests int) {
	h.Helper()
	story := crashStories["create"]
	story.begin(h)
	first := &mortal{h: h, first: request, death: farAfter}
	first.run(func(*harness) error { return errors.New("the process has not died") })

	var sent atomic.Int32
	var executed atomic.Bool
	execute := func() { first.late(); executed.Store(true) }
	hold := func(*http.Request) {
		if int(sent.Add(1)) == n {
			execute()
		}
	}
	h.hold.Store(&hold)
	h.settings.drift.ResyncPeriod = shortResync
	h.startController()
	if n == 0 {
		h.eventually(func() error { return errors.Join(story.check(h), h.isIdle()) })
		requests = int(sent.Load())
		execute()
	}
	h.eventually(func() error {
		if !executed.Load() {
			return fmt.Errorf("the second process has sent %d requests", sent.Load())
		}
		return errors.Join(story.check(h), h.isIdle())
	})
	return requests
}

// TestLateRequestBeforeDeletion: the request of the killed process is executed after the
// second process has created the network, and no list shows that. A deletion leaves
// neither of the two networks behind.
func TestLateRequestBeforeDeletion(t *testing.T) {
	h := newHarness(t)
	first := &mortal{h: h, first: "POST /v2.0/networks", death: farAfter}
	crashStories["create"].begin(h)
	first.run(func(*harness) error { return errors.New("the process has not died") })
	started := time.Now()
	h.startController()
	h.waitReady("example")
	first.late()
	h.wantCounts(2, 1)
	h.eventually(func() error {
		if left := 2*h.settings.reconcile.MaxInFlight - time.Since(started); left > 0 {
			return fmt.Errorf("Neutron may still execute requests of the first process for %v", left)
		}
		return nil
	})

	h.delete("example")
	h.waitGone("example")
	h.wantCounts(0, 0)
}

package watchdog_test

import (
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/samplecrd/network-controller/pkg/observe"
	"github.com/samplecrd/network-controller/pkg/watchdog"
)

// TestCheck: work is stuck if it makes no progress for longer than the limit, until
// it ends.
func TestCheck(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Now())
	w := watchdog.New(clock)
	isStuck := func() bool {
		err := w.Check(time.Minute)
		if err != nil && err.Error() != "the sync of default/example is stuck: no progress for 2m0s" {
			t.Errorf("Check() = %v", err)
		}
		return err != nil
	}
	ctx, end := w.Begin(t.Context(), observe.Work{Kind: observe.Sync, Key: cache.NewObjectName("default", "example")})
	clock.SetTime(clock.Now().Add(time.Minute))
	if isStuck() {
		t.Error("work is stuck at the limit")
	}

	w.Begin(ctx, observe.Work{Kind: observe.Request})
	clock.SetTime(clock.Now().Add(time.Minute))
	if isStuck() {
		t.Error("a request is no progress")
	}

	w.Begin(t.Context(), observe.Work{Kind: observe.Request}) // of other work
	w.Begin(ctx, observe.Work{Kind: observe.Step})            // is no progress by itself
	clock.SetTime(clock.Now().Add(time.Minute))
	if !isStuck() {
		t.Error("work without progress is not stuck")
	}
	end(observe.Result{})
	w.Begin(ctx, observe.Work{Kind: observe.Request}) // a late one
	clock.SetTime(clock.Now().Add(time.Hour))
	if isStuck() {
		t.Error("work that has ended is stuck")
	}
}

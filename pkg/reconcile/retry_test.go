package reconcile

import (
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
)

// TestRetry: each class of failure has its delay. Only failures that need another
// spec or another flag are not retried.
func TestRetry(t *testing.T) {
	blocked := func(reason plan.Reason) error { return status.BlockedError{Blocked: plan.Blocked{Reason: reason}} }
	failed := func(kind error, after time.Duration) error { return &neutron.Error{Class: kind, RetryAfter: after} }
	for name, test := range map[string]struct {
		err         error
		retry       Retry
		least, most time.Duration
	}{
		"done":                    {err: nil},
		"invalid":                 {err: blocked(plan.ReasonInvalidSpec)},
		"adoption not allowed":    {err: blocked(plan.ReasonAdoptionNotAllowed)},
		"ambiguous":               {blocked(plan.ReasonAmbiguous), RetryLater, 20 * time.Second, 30 * time.Second},
		"not there":               {blocked(plan.ReasonNotFound), RetryLater, 20 * time.Second, 30 * time.Second},
		"not converging":          {blocked(plan.ReasonNotConverging), RetryLater, 5 * time.Minute, 8 * time.Minute},
		"in use":                  {failed(neutron.ErrInUse, 0), RetryLater, 20 * time.Second, 30 * time.Second},
		"refused":                 {failed(neutron.ErrRefused, 0), RetryLater, 5 * time.Minute, 8 * time.Minute},
		"unavailable":             {failed(neutron.ErrUnavailable, 0), RetrySoon, 0, 0},
		"unavailable for so long": {failed(neutron.ErrUnavailable, 10*time.Second), RetryLater, 10 * time.Second, 11 * time.Second},
		"unavailable for ever":    {failed(neutron.ErrUnavailable, time.Hour), RetryLater, 5 * time.Minute, 6 * time.Minute},
		"changed concurrently":    {failed(neutron.ErrConflict, 0), RetrySoon, 0, 0},
		"anything else":           {errors.New("what is this"), RetrySoon, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				retry, delay := DefaultRetryDelays().classify(test.err)
				if retry != test.retry || delay < test.least || delay > test.most {
					t.Fatalf("classify() = %v, %v, want %v, from %v to %v", retry, delay, test.retry, test.least, test.most)
				}
			}
		})
	}
}

// TestBackoff: the delay grows, is bounded, and differs between keys that failed
// together.
func TestBackoff(t *testing.T) {
	backoff := Backoff()
	first := map[time.Duration]bool{}
	for i := range 100 {
		key := cache.NewObjectName("default", string(rune('a'+i)))
		pause := backoff.When(key)
		first[pause] = true
		if pause < 150*time.Millisecond || pause > 200*time.Millisecond {
			t.Errorf("the first pause is %v", pause)
		}
		last := pause
		for range 30 {
			last = backoff.When(key)
		}
		if last < MaxBackoff*3/4 || last > MaxBackoff {
			t.Errorf("after 30 failures the pause is %v", last)
		}
	}
	if len(first) < 50 {
		t.Errorf("100 first pauses have %d lengths", len(first))
	}
}

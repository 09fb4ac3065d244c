package main

import (
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/report"
)

// TestRetryTimes: each kind of failure has its pace, and none is never tried
// again but those that only a new spec, or another flag, can mend.
func TestRetryTimes(t *testing.T) {
	blocked := func(reason plan.Reason) error { return report.BlockedError{Blocked: plan.Blocked{Reason: reason}} }
	failed := func(kind error, after time.Duration) error { return &neutron.Error{Class: kind, RetryAfter: after} }
	for name, test := range map[string]struct {
		err         error
		again       bool
		least, most time.Duration // 0 for the backoff
	}{
		"done":                    {err: nil},
		"invalid":                 {err: blocked(plan.ReasonInvalidSpec)},
		"adoption not allowed":    {err: blocked(plan.ReasonAdoptionNotAllowed)},
		"ambiguous":               {blocked(plan.ReasonAmbiguous), true, 20 * time.Second, 30 * time.Second},
		"not there":               {blocked(plan.ReasonNotFound), true, 20 * time.Second, 30 * time.Second},
		"not converging":          {blocked(plan.ReasonNotConverging), true, 5 * time.Minute, 8 * time.Minute},
		"in use":                  {failed(neutron.ErrInUse, 0), true, 20 * time.Second, 30 * time.Second},
		"refused":                 {failed(neutron.ErrRefused, 0), true, 5 * time.Minute, 8 * time.Minute},
		"unavailable":             {failed(neutron.ErrUnavailable, 0), true, 0, 0},
		"unavailable for so long": {failed(neutron.ErrUnavailable, 10*time.Second), true, 10 * time.Second, 11 * time.Second},
		"unavailable for ever":    {failed(neutron.ErrUnavailable, time.Hour), true, 5 * time.Minute, 6 * time.Minute},
		"changed meanwhile":       {failed(neutron.ErrConflict, 0), true, 0, 0},
		"anything else":           {errors.New("what is this"), true, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				pause, again := defaultRetryTimes().after(test.err)
				if again != test.again || pause < test.least || pause > test.most {
					t.Fatalf("after() = %v, %v, want %v, from %v to %v", pause, again, test.again, test.least, test.most)
				}
			}
		})
	}
}

// TestBackoff: it grows, has a bound, and what failed together does not come
// back together.
func TestBackoff(t *testing.T) {
	backoff := defaultRetryTimes().backoff
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
		if last < maxBackoff*3/4 || last > maxBackoff {
			t.Errorf("after 30 failures the pause is %v", last)
		}
	}
	if len(first) < 50 {
		t.Errorf("100 first pauses have %d lengths", len(first))
	}
}

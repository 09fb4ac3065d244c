package reconcile

import (
	"time"

	"golang.org/x/time/rate"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
)

// The syncs of a Network because of an edit: a burst, and then one a second. Other
// Networks need the workers, too.
const (
	editBurst = 10
	editRate  = rate.Limit(1)
)

// noteEdit counts the sync of an edited Network.
func (r *record) noteEdit(generation int64, now time.Time) {
	if r.editedGeneration != 0 && generation != r.editedGeneration {
		if r.edits == nil {
			r.edits = rate.NewLimiter(editRate, editBurst)
		}
		r.edits.ReserveN(now, 1) // also if a retry did not wait: the next edit waits longer
	}
	r.editedGeneration = generation
}

// EditDelay returns how long the sync of an edited Network has to wait: nothing,
// unless it is edited without end. A deletion never waits.
func (r *Reconciler) EditDelay(network *samplecrdv1.Network) time.Duration {
	edits := r.recordOf(network).edits
	if edits == nil || network.DeletionTimestamp != nil {
		return 0
	}
	missing := 1 - edits.TokensAt(r.clock.Now())
	return time.Duration(max(0, missing) / float64(editRate) * float64(time.Second))
}

package reconcile

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
)

// edition is what a user has requested last: an object, its spec, and perhaps a retry. It
// is empty if there is no object.
type edition struct {
	uid        types.UID
	generation int64
	retry      string
}

func editionOf(network *samplecrdv1.Network) edition {
	if network == nil {
		return edition{}
	}
	return edition{network.UID, network.Generation, network.Annotations[samplecrdv1.AnnotationRetry]}
}

// The syncs of a Network because of an edit: a burst, and then one a second. Other
// Networks need the workers, too.
const (
	editBurst = 10
	editRate  = rate.Limit(1)
)

// noteEdit counts the sync of an edited Network.
func (m *memory) noteEdit(edited edition, now time.Time) {
	if m.edited != (edition{}) && edited != m.edited {
		if m.edits == nil {
			m.edits = rate.NewLimiter(editRate, editBurst)
		}
		m.edits.ReserveN(now, 1) // also if a retry did not wait: the next edit waits longer
	}
	m.edited = edited
}

// EditDelay returns how long the sync of an edited Network has to wait: nothing,
// unless it is edited without end. A deletion never waits.
func (r *Reconciler) EditDelay(network *samplecrdv1.Network) time.Duration {
	edits := r.memoryOf(network).edits
	if edits == nil || network.DeletionTimestamp != nil {
		return 0
	}
	missing := 1 - edits.TokensAt(r.clock.Now())
	return time.Duration(max(0, missing) / float64(editRate) * float64(time.Second))
}

package reconcile

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
)

// rejection is the outcome of a sync that is not to be repeated for a while.
type rejection struct {
	uid        types.UID // empty if there was no object
	generation int64
	outcome    error
	until      time.Time
}

// rejection returns the outcome of an earlier sync of the same spec if Neutron
// rejected a request then and it is too early to repeat the request. It returns nil
// otherwise, and if the finalizer, which protects what exists, is to be set.
func (r *Reconciler) rejection(key cache.ObjectName, network *samplecrdv1.Network) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.records[key].rejected
	uid, generation := specOf(network)
	if network != nil && !hasFinalizer(network) || last == nil || last.uid != uid || last.generation != generation || r.until(last.until) <= 0 {
		return nil
	}
	return last.outcome
}

// noteRejection remembers the outcome of a sync if Neutron rejected a request, or
// requested a pause.
func (r *Reconciler) noteRejection(key cache.ObjectName, network *samplecrdv1.Network, outcome error) {
	var failure *neutron.Error
	if !errors.As(outcome, &failure) {
		return
	}
	pause := min(failure.RetryAfter, r.options.Retry.Rejected)
	if errors.Is(failure, neutron.ErrRefused) {
		pause = r.options.Retry.Rejected
	} else if errors.Is(failure, neutron.ErrInUse) && network == nil {
		pause = r.options.Retry.InUse
	}
	if pause <= 0 {
		return
	}
	uid, generation := specOf(network)
	r.updateKey(key, func(record *record) {
		record.rejected = &rejection{uid: uid, generation: generation, outcome: outcome, until: r.clock.Now().Add(pause)}
	})
}

// specOf identifies the spec of a Network, which may be nil.
func specOf(network *samplecrdv1.Network) (uid types.UID, generation int64) {
	if network == nil {
		return "", 0
	}
	return network.UID, network.Generation
}

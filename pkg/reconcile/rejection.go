package reconcile

import (
	"errors"
	"time"

	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// rejection is the outcome of a sync that is not to be repeated for a while.
type rejection struct {
	edition   edition
	outcome   error
	at, until time.Time
}

// rejection returns the outcome of an earlier sync of the same edition if Neutron
// rejected a request then and it is too early to repeat the request. It returns nil
// otherwise, and if the finalizer, which protects what exists, is to be set.
func (r *Reconciler) rejection(key cache.ObjectName, network *samplecrdv1.Network) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.memories[key].rejected
	if network != nil && !hasFinalizer(network) || last == nil || last.edition != editionOf(network) || r.until(last.until) <= 0 {
		return nil
	}
	return last.outcome
}

// isOverQuota reports whether the quota of the project was the reason.
func (r rejection) isOverQuota() bool {
	var failure *neutron.Error
	return errors.As(r.outcome, &failure) && failure.Type == neutron.OverQuota
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
	now := r.clock.Now()
	r.updateKey(key, func(memory *memory) {
		memory.rejected = &rejection{edition: editionOf(network), outcome: outcome, at: now, until: now.Add(pause)}
	})
}

// quota shows whether the OpenStack project has room again for Networks that did not fit
// its quota. All Networks are in one project.
type quota struct {
	// changes is how often Neutron has created or deleted something since the last list,
	// and changedAt when it did last.
	changes   int
	changedAt time.Time
	// retries is how many Networks are retried until the next list.
	retries int
}

// minQuotaRetries is the least number of Networks that are retried after a change. If they
// fit, twice as many follow: so few requests fail if the project is full.
const minQuotaRetries = 10

// applied counts a step that was applied.
func (q *quota) applied(step plan.Step, now time.Time) {
	switch step.(type) {
	case plan.CreateNetwork, plan.CreateSubnet, plan.DeleteNetwork, plan.DeleteSubnet:
		q.changes, q.changedAt = q.changes+1, now
	}
}

// listed begins the retries after a list.
func (q *quota) listed() {
	if q.retries = 0; q.changes > 0 {
		q.retries = max(minQuotaRetries, 2*q.changes)
	}
	q.changes = 0
}

// mayFitQuota reports whether a Network that did not fit the quota is to be retried now.
func (r *Reconciler) mayFitQuota(network *samplecrdv1.Network) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := cache.MetaObjectToName(network)
	memory := r.memories[key]
	if r.quota.retries == 0 || memory.rejected == nil || !memory.rejected.at.Before(r.quota.changedAt) || !memory.rejected.isOverQuota() {
		return false
	}
	r.quota.retries--
	memory.rejected = nil
	r.memories[key] = memory
	return true
}

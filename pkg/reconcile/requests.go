package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// As long as a request is pending, absence is not evidence: nothing is created, and the
// finalizer stays.

// begin notes in the ledger what a step may create, before its request is sent. It returns
// an error if the namespace has as many networks as are allowed.
func (r *Reconciler) begin(key cache.ObjectName, desired plan.Desired, step plan.Step) error {
	id, notes := requestOf(desired, step)
	if !notes {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, creates := step.(plan.CreateNetwork); creates {
		if err := r.checkLimit(key, step); err != nil {
			return err
		}
	}
	r.noteLocked(key, func(a *account) {
		a.sent(id)
		if _, creates := step.(plan.CreateSubnet); creates && desired.Adopted != "" {
			a.adopted = r.adoptedNow(desired)
		}
	})
	return nil
}

func (r *Reconciler) adoptedNow(desired plan.Desired) adopted {
	return adopted{networkID: desired.Adopted, endsAt: r.clock.Now().Add(r.options.MaxLateness)}
}

// requestOf returns the request of a step in the owner marker of a network, and whether
// the ledger notes it: it creates something, or takes over a retained network.
func requestOf(desired plan.Desired, step plan.Step) (id string, notes bool) {
	switch step := step.(type) {
	case plan.CreateNetwork:
		return neutron.RequestOf(step.Network.Description), true
	case plan.UpdateNetwork:
		id := neutron.RequestOf(step.Update.Description)
		return id, id != "" && id == desired.Request
	case plan.AttachRouter:
		return "", true
	}
	return "", mayDuplicate(desired, step)
}

// attempt is a step that was applied, or failed.
type attempt struct {
	desired       plan.Desired
	step          plan.Step
	before, after plan.Actual
	err           error
}

// end notes in the ledger what became of a step.
func (r *Reconciler) end(key cache.ObjectName, made attempt) {
	id, notes := requestOf(made.desired, made.step)
	now := r.clock.Now()
	r.note(key, func(a *account) {
		if made.err == nil {
			r.quota.applied(made.step, now)
		}
		switch {
		case !notes && made.err == nil:
			r.noteStep(key, a, made)
		case !notes:
		case made.err == nil && id != "":
			a.executed(id, made.after.NetworkOf(id), now)
		case made.err != nil && mayBeExecuted(made.err):
			a.lost(id, now.Add(r.options.MaxInFlight), now.Add(r.options.MaxLateness))
		default:
			a.ended(id, "")
		}
	})
}

// noteStep notes a step that succeeded and requested nothing that the ledger has to note.
func (r *Reconciler) noteStep(key cache.ObjectName, a *account, made attempt) {
	switch step := made.step.(type) {
	case plan.DeleteNetwork:
		a.ended(made.before.RequestOf(step.ID), step.ID)
	case plan.RetainNetwork:
		a.ended(made.before.RequestOf(step.ID), step.ID)
	case plan.AddFinalizer:
		a.released = nil
		for _, network := range made.before.Marked(made.desired) { // the object takes it over
			id := neutron.RequestOf(network.Description)
			a.sent(id)
			a.executed(id, network.ID, r.clock.Now())
		}
	case plan.RemoveFinalizer:
		a.released = &release{seen: r.seen(key), endsAt: r.clock.Now().Add(r.options.MaxLateness)}
		if made.desired.Adopted != "" && made.desired.Leave == plan.LeaveNetwork {
			a.adopted = r.adoptedNow(made.desired)
		}
	case plan.RecordRouter:
		if a.hasNetworks() {
			a.router = step.ID
		}
	case plan.DetachRouter:
		a.router = ""
	}
}

// mayBeExecuted reports whether Neutron may execute a request, or have executed it,
// although there was an error. An error with a type is Neutron's own. One without, a
// proxy's say, proves nothing about the request, unless the client rejected it itself, or
// could not log in.
func mayBeExecuted(err error) bool {
	var failure *neutron.Error
	return errors.As(err, &failure) && failure.Type == "" && failure.Keystone == "" && (failure.Status != 0 || !errors.Is(err, neutron.ErrRefused))
}

// mayDuplicate reports whether a step creates something that a delayed request
// could create again, and that would stay: a network, a range from a subnet pool,
// or a subnet on a network that is not deleted with the object. (With spec.cidr,
// Neutron rejects a duplicate subnet, and deletes it with its network.)
func mayDuplicate(desired plan.Desired, step plan.Step) bool {
	switch step.(type) {
	case plan.CreateNetwork:
		return true
	case plan.CreateSubnet:
		return desired.SubnetPool != nil || desired.Adopted != ""
	}
	return false
}

// checkPending returns an error if a step has to wait for a pending request. Found
// reports whether the network that the status names was found.
func (r *Reconciler) checkPending(key cache.ObjectName, network *samplecrdv1.Network, desired plan.Desired, step plan.Step, found bool) error {
	_, removes := step.(plan.RemoveFinalizer)
	if recorded, ok := step.(plan.RecordRouter); ok {
		// Neutron rejects a second attachment, but a late one must not outlive the record.
		removes = recorded.Replaces != ""
	}
	if !mayDuplicate(desired, step) && !removes {
		return nil
	}
	a := r.accountOf(key)
	left, reason := r.until(a.pendingUntil()), "no response to an earlier create request arrived, and Neutron may still execute it"
	if former := r.until(r.formerUntil(a, network, found)); removes && former > left {
		left, reason = former, "the controller has just started leading, and Neutron may still execute an earlier create request"
	}
	if left <= 0 {
		return nil
	}
	return r.waitError(step.String(), reason, left)
}

// formerUntil returns until when a request of a former leader may be pending.
func (r *Reconciler) formerUntil(a account, network *samplecrdv1.Network, found bool) time.Time {
	status := formerStatus{uid: network.UID, networkID: network.Status.NetworkID, found: found}
	return a.formerUntil(status, r.StartedAt(), r.options.MaxInFlight, r.options.MaxInFlight+r.options.MaxClockSkew)
}

// waitError is the outcome of a sync that has to wait. Its class is that of an
// unavailable Neutron.
func (r *Reconciler) waitError(op, reason string, left time.Duration) error {
	return &neutron.Error{
		Op: op, Class: errWaiting{}, RetryAfter: left,
		Message: fmt.Sprintf("%s; the controller checks again within %v", reason, r.options.MaxInFlight),
	}
}

type errWaiting struct{}

func (errWaiting) Error() string        { return "waiting" }
func (errWaiting) Is(target error) bool { return target == neutron.ErrUnavailable }

// accountOf returns the account of a key.
func (r *Reconciler) accountOf(key cache.ObjectName) account {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ledger[key]
}

// note changes the account of a key.
func (r *Reconciler) note(key cache.ObjectName, change func(*account)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteLocked(key, change)
}

// noteLocked is note for a caller that holds the lock.
func (r *Reconciler) noteLocked(key cache.ObjectName, change func(*account)) {
	a := r.ledger[key]
	change(&a)
	if a.isEmpty() {
		delete(r.ledger, key)
		return
	}
	r.ledger[key] = a
}

// named notes that a status names a network. Until then, nothing does.
func (r *Reconciler) named(key cache.ObjectName, networkID string, actual plan.Actual) {
	if networkID != "" {
		r.note(key, func(a *account) {
			a.ended(actual.RequestOf(networkID), networkID)
			if a.released == nil {
				a.adopted = adopted{}
			}
		})
	}
}

// seen returns the requests of the networks with the owner marker of a key that the cache
// of Neutron's state has.
func (r *Reconciler) seen(key cache.ObjectName) (requests []string) {
	view, _ := r.neutron.Lookup(r.owner(key), "")
	for _, network := range view.Marked {
		if request := neutron.RequestOf(network.Description); request != "" {
			requests = append(requests, request)
		}
	}
	return requests
}

// Listed is called after a complete list of Neutron's state that began at a time. What the
// list has proven not to exist ends in the ledger, and so does the memory of a key whose
// object does not exist. Nothing that is kept for a key outlives it. Listed returns the keys
// without an object of which something is left that a sync has to delete.
func (r *Reconciler) Listed(began time.Time) (leftovers []cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.quota.listed()
	formerUntil := r.startedAt.Add(r.options.MaxInFlight)
	for key, a := range r.ledger {
		if network, err := r.networks.Get(key); err == nil && network == nil && r.hasLeftover(key, a) {
			leftovers = append(leftovers, key)
		}
		r.noteLocked(key, func(a *account) {
			a.listed(began, r.seen(key), r.hasSubnet(key, a.adopted.networkID), formerUntil)
		})
	}
	for key, memory := range r.memories {
		isRejected := memory.rejected != nil && r.until(memory.rejected.until) > 0
		if network, err := r.networks.Get(key); err == nil && network == nil && !isRejected {
			delete(r.memories, key)
		}
	}
	return leftovers
}

// HasLeftover reports whether the cache of Neutron's state has a network of a key whose
// object does not exist that the controller left there: its request was late, say.
func (r *Reconciler) HasLeftover(key cache.ObjectName) bool {
	return r.hasLeftover(key, r.accountOf(key))
}

func (r *Reconciler) hasLeftover(key cache.ObjectName, a account) bool {
	claims := a.claims(true)
	view, _ := r.neutron.Lookup(r.owner(key), "")
	return r.hasSubnet(key, a.adopted.networkID) || slices.ContainsFunc(view.Marked, func(n neutron.Network) bool {
		return r.owner(key).HasMarker(n.Description) && claims.Has(n.Description)
	})
}

// hasSubnet reports whether the cache of Neutron's state has a subnet with the owner marker
// of a key on a network.
func (r *Reconciler) hasSubnet(key cache.ObjectName, networkID string) bool {
	if networkID == "" {
		return false
	}
	view, _ := r.neutron.Lookup(r.owner(key), networkID)
	isOurs := func(s neutron.Subnet) bool { return r.owner(key).HasMarker(s.Description) }
	return slices.ContainsFunc(view.Subnets[networkID], isOurs)
}

// DeleteOrphan requests that the next sync of a key deletes what is left of it in
// Neutron, if the object still does not exist then.
func (r *Reconciler) DeleteOrphan(key cache.ObjectName) {
	r.note(key, func(a *account) { a.isOrphan = true })
}

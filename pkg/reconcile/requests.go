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
	"github.com/samplecrd/network-controller/pkg/status"
)

// As long as a request is pending, absence is not evidence: nothing is created, and the
// finalizer stays.

// begin notes in the ledger what a step may create, before its request is sent. It returns
// an error if the namespace has as many networks as are allowed.
func (p *Pass) begin(step plan.Step) error {
	id, notes := requestOf(p.desired, step)
	if !notes {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, creates := step.(plan.CreateNetwork); creates {
		if err := p.checkLimit(p.key); err != nil {
			return err
		}
	}
	p.noteLocked(p.key, func(a *account) {
		a.sent(id)
		switch step := step.(type) {
		case plan.CreateSubnet:
			if p.desired.Adopted != "" {
				a.mayHaveSubnet(p.adoptedNow())
			}
		case plan.AttachRouter:
			a.router = step.Interface.RouterID
		}
	})
	return nil
}

func (p *Pass) adoptedNow() adopted {
	return adopted{networkID: p.desired.Adopted, endsAt: p.clock.Now().Add(p.options.MaxLateness)}
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

// end notes in the ledger what became of a step: the state afterwards, or an error.
func (p *Pass) end(step plan.Step, after plan.Actual, err error) {
	id, notes := requestOf(p.desired, step)
	_, removes := step.(plan.RemoveFinalizer) // also if there is no response
	now := p.clock.Now()
	p.note(p.key, func(a *account) {
		if err == nil {
			p.quota.applied(step, now)
		}
		switch {
		case !notes && (err == nil || removes):
			p.noteStep(a, step)
		case !notes:
		case err == nil && id != "":
			a.executed(id, after.NetworkOf(id), now)
		case err != nil && mayBeExecuted(err):
			a.lost(id, now.Add(p.options.MaxInFlight), now.Add(p.options.MaxLateness))
		default:
			a.ended(id, "")
		}
	})
}

// noteStep notes a step that succeeded and requested nothing that the ledger has to note.
func (p *Pass) noteStep(a *account, step plan.Step) {
	switch step := step.(type) {
	case plan.DeleteNetwork:
		a.ended(p.actual.RequestOf(step.ID), step.ID)
	case plan.RetainNetwork:
		a.ended(p.actual.RequestOf(step.ID), step.ID)
	case plan.AddFinalizer:
		a.released = nil
		if p.desired.Adopted != "" {
			return // the object takes over none of those with its marker
		}
		for _, network := range p.actual.Marked(p.desired) { // the object takes it over
			id := neutron.RequestOf(network.Description)
			a.sent(id)
			a.executed(id, network.ID, p.clock.Now())
		}
	case plan.RemoveFinalizer:
		a.released = &release{
			uid: p.network.UID, seen: p.leftOf(p.key, *a).requests, endsAt: p.clock.Now().Add(p.options.MaxLateness)}
		a.hasNoSubnet(p.desired.Adopted) // or it is retained
		if p.desired.Adopted != "" && p.desired.Leave != plan.LeaveAll {
			a.mayHaveSubnet(p.adoptedNow())
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
	return errors.As(err, &failure) && failure.Type == "" && failure.Keystone == "" &&
		(failure.Status != 0 || !errors.Is(err, neutron.ErrRefused))
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

// checkPending returns an error if a step has to wait for a pending request.
func (p *Pass) checkPending(step plan.Step) error {
	_, removes := step.(plan.RemoveFinalizer)
	if recorded, ok := step.(plan.RecordRouter); ok {
		// Neutron rejects a second attachment, but a late one must not outlive the record.
		removes = recorded.Replaces != ""
	}
	if !mayDuplicate(p.desired, step) && !removes {
		return nil
	}
	a := p.accountOf(p.key)
	left := p.until(a.pendingUntil())
	reason := "no response to an earlier create request arrived, and Neutron may still execute it"
	if former := p.until(p.formerUntil(a, p.network, p.found)); removes && former > left {
		left = former
		reason = "the controller has just started leading, and Neutron may still execute an earlier create request"
	}
	if left <= 0 {
		return nil
	}
	return status.WaitError{
		Reason: fmt.Sprintf("%s; the controller checks again within %v", reason, p.options.MaxInFlight), Left: left}
}

// formerUntil returns until when a request of a former leader may be pending, or the zero
// Time. A leader creates a network only if it finds none. So nothing is pending if the
// network in the status exists, and the object had been Ready for long when this replica
// started leading.
func (r *Reconciler) formerUntil(a account, network *samplecrdv1.Network, found bool) time.Time {
	was, started := a.former, r.StartedAt()
	if was == nil || was.uid != network.UID {
		return time.Time{}
	}
	isSame := found && was.networkID == network.Status.NetworkID
	quiet := r.options.MaxInFlight + r.options.MaxClockSkew
	if isSame && !was.readySince.IsZero() && started.Sub(was.readySince) > quiet {
		return time.Time{}
	}
	return started.Add(r.options.MaxInFlight)
}

// accountOf returns a copy.
func (r *Reconciler) accountOf(key cache.ObjectName) account {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.ledger[key]
	a.requests, a.adopted = slices.Clone(a.requests), slices.Clone(a.adopted)
	return a
}

func (r *Reconciler) note(key cache.ObjectName, change func(*account)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteLocked(key, change)
}

// noteLocked is note for a caller that holds the lock.
func (r *Reconciler) noteLocked(key cache.ObjectName, change func(*account)) {
	a := r.ledger[key]
	if change(&a); !a.hasUnnamed() {
		a.router = "" // the status has the record, or there is nothing to detach
	}
	if a.isEmpty() {
		delete(r.ledger, key)
		return
	}
	r.ledger[key] = a
}

// named notes that a status names a network, and perhaps a subnet. Until then, nothing does.
func (p *Pass) named(by samplecrdv1.NetworkStatus) {
	if id := by.NetworkID; id != "" {
		p.note(p.key, func(a *account) {
			a.ended(p.actual.RequestOf(id), id)
			if a.released == nil && by.SubnetID != "" {
				a.hasNoSubnet(id)
			}
		})
	}
}

// Listed is called after a complete list of Neutron's state that began at a time. What the
// list has proven not to exist ends in the ledger, and so does the memory of a key whose
// object does not exist. Nothing that is kept for a key outlives it. Listed returns the keys
// without an object of which something is left that a sync has to delete.
func (r *Reconciler) Listed(began time.Time) (leftovers []cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.quota.listed()
	r.laterOfRange = laterOfRange(r.networks.List())
	formerUntil := r.startedAt.Add(r.options.MaxInFlight)
	for key, a := range r.ledger {
		left := r.leftOf(key, a)
		if network, err := r.networks.Get(key); err == nil && network == nil && left.isOurs() {
			leftovers = append(leftovers, key)
		}
		r.noteLocked(key, func(a *account) { a.listed(began, left.requests, left.onAdopted, formerUntil) })
	}
	for key := range r.memories {
		if network, err := r.networks.Get(key); err == nil && network == nil {
			r.forgetLocked(key)
		}
	}
	return leftovers
}

// HasLeftover reports whether the cache of Neutron's state has a network of a key whose
// object does not exist that the controller left there: its request was late, say.
func (r *Reconciler) HasLeftover(key cache.ObjectName) bool {
	return r.leftOf(key, r.accountOf(key)).isOurs()
}

// left is what the cache of Neutron's state has of a key.
type left struct {
	requests  []string // those of the networks with the owner marker
	isClaimed bool     // whether the controller has a claim to one of these networks
	onAdopted []string // the networks of somebody else on which a subnet of ours is
}

// isOurs reports whether the controller has to delete something if there is no object.
func (l left) isOurs() bool { return l.isClaimed || len(l.onAdopted) > 0 }

func (r *Reconciler) leftOf(key cache.ObjectName, a account) (found left) {
	owner, claims := r.owner(key), a.claims(true)
	view, _ := r.neutron.Lookup(owner, "")
	for _, network := range view.Marked {
		found.isClaimed = found.isClaimed || owner.HasMarker(network.Description) && claims.Has(network.Description)
		if request := neutron.RequestOf(network.Description); request != "" {
			found.requests = append(found.requests, request)
		}
	}
	isOurs := func(s neutron.Subnet) bool { return owner.HasMarker(s.Description) }
	for _, on := range a.adopted {
		if view, _ := r.neutron.Lookup(owner, on.networkID); slices.ContainsFunc(view.Subnets[on.networkID], isOurs) {
			found.onAdopted = append(found.onAdopted, on.networkID)
		}
	}
	return found
}

// DeleteOrphan requests that the next sync of a key deletes what is left of it in
// Neutron, if the object still does not exist then.
func (r *Reconciler) DeleteOrphan(key cache.ObjectName) {
	r.note(key, func(a *account) { a.isOrphan = true })
}

package reconcile

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// Neutron may still execute a create request whose response was lost. As long as it
// is pending, absence is not evidence: nothing is created, and the finalizer stays.

// noteCreate updates the record of a key after a step that creates something:
// a network that no status names yet, or a request that may be pending.
func (r *Reconciler) noteCreate(key cache.ObjectName, desired plan.Desired, step plan.Step, err error) {
	_, attaches := step.(plan.AttachRouter)
	if !mayDuplicate(desired, step) && !attaches {
		return
	}
	var failure *neutron.Error
	// An error with a type is Neutron's own. One without, a proxy's say, proves
	// nothing about the request, unless the client rejected it itself.
	pending := errors.As(err, &failure) && failure.Type == "" && (failure.Status != 0 || !errors.Is(err, neutron.ErrRefused))
	_, isNetwork := step.(plan.CreateNetwork)
	r.updateKey(key, func(record *record) {
		record.unrecorded = record.unrecorded || isNetwork && err == nil
		if pending {
			record.pendingUntil = r.clock.Now().Add(r.options.MaxInFlight)
		}
		if isNetwork {
			r.reserved.end(key, pending, record.pendingUntil)
		}
	})
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

// checkPending returns an error if a step has to wait for a pending create request.
// Found reports whether the network that the status names was found.
func (r *Reconciler) checkPending(key cache.ObjectName, network *samplecrdv1.Network, desired plan.Desired, step plan.Step, found bool) error {
	_, removes := step.(plan.RemoveFinalizer)
	if recorded, ok := step.(plan.RecordRouter); ok {
		// Neutron rejects a second attachment, but a late one must not outlive the record.
		removes = recorded.Replaces != ""
	}
	if !mayDuplicate(desired, step) && !removes {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	record := r.records[key]
	left, reason := r.until(record.pendingUntil), "no response to an earlier create request arrived, and Neutron may still execute it"
	if inherited := r.until(r.inheritedUntil(record, network, found, r.startedAt)); removes && inherited > left {
		left, reason = inherited, "the controller has just started leading, and Neutron may still execute an earlier create request"
	}
	if left <= 0 {
		return nil
	}
	return r.waitError(step.String(), reason, left)
}

// inheritedUntil returns until when a create request of a former leader may be
// pending, or the zero Time. A leader creates a network only if it finds none. So nothing
// is pending if the network in the status exists and the object had been Ready for long
// when this replica started leading.
func (r *Reconciler) inheritedUntil(record record, network *samplecrdv1.Network, found bool, startedAt time.Time) time.Time {
	was := record.inherited
	if was == nil || record.uid != network.UID {
		return time.Time{}
	}
	quiet := !was.readySince.IsZero() && startedAt.Sub(was.readySince) > r.options.MaxInFlight+r.options.MaxClockSkew
	if quiet && found && network.Status.NetworkID == was.networkID {
		return time.Time{}
	}
	return startedAt.Add(r.options.MaxInFlight)
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

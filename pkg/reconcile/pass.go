package reconcile

import (
	"time"

	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
)

// Pass is one sync of a key, from its beginning to its report. Begin returns it, and its
// methods are the phases, in this order: Observe, Apply, Report.
type Pass struct {
	*Reconciler
	key cache.ObjectName
	// network is the Network as the sync read it, with the status that the sync has written
	// since. It is nil if it does not exist.
	network *samplecrdv1.Network
	desired plan.Desired
	actual  plan.Actual
	// found is true if the sync saw the Neutron network that the status names.
	found bool
	// applied are the steps that succeeded.
	applied []plan.Step
	outcome error
}

// Begin begins a sync of a key. The Network is nil if it does not exist. Begin returns an
// error if the Network is edited without end and has to wait.
func (r *Reconciler) Begin(key cache.ObjectName, network *samplecrdv1.Network) (*Pass, error) {
	pass := &Pass{Reconciler: r, key: key, network: network}
	if network == nil {
		return pass, nil
	}
	isFormer, wait := false, time.Duration(0)
	pass.remember(func(memory *memory) {
		if memory.isNew && HasFinalizer(network) { // another leader has set it
			memory.isNew, isFormer = false, true
		}
		wait = memory.noteEdit(network, r.clock.Now())
	})
	r.note(key, func(a *account) {
		a.isOrphan = false
		if a.released != nil && a.released.uid != network.UID && HasFinalizer(network) {
			a.released = nil
		}
		if isFormer {
			a.former = formerOf(network)
		}
		if id := network.Status.NetworkID; id != "" {
			a.ended("", id) // also if the response to the write of the status was lost
		}
	})
	if wait > 0 {
		return nil, status.WaitError{Reason: "the Network is edited without end", Left: wait}
	}
	return pass, nil
}

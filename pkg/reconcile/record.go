package reconcile

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/status"
)

// A sync writes the status at its end. It also writes it before a step whose traces in
// Neutron cannot be told from those of others.

// record records in the status what the controller is about to do: only the tags and the
// router that it names may be removed and detached later.
func (p *Pass) record(ctx context.Context, change func(*samplecrdv1.NetworkStatus)) error {
	after := *p.network.Status.DeepCopy()
	change(&after)
	return p.writeStatus(ctx, after)
}

// addFinalizer sets the finalizer. In the cloud that the administrator leaves, it first
// removes from the status what it records of a network there.
func (p *Pass) addFinalizer(ctx context.Context, cloud string) error {
	if leave := p.options.LeaveCloud; leave != "" && recordedCloud(p.network) == leave {
		before := p.network.Status
		kept := samplecrdv1.NetworkStatus{ObservedGeneration: before.ObservedGeneration, Conditions: before.Conditions}
		if err := p.writeStatus(ctx, kept); err != nil {
			return err
		}
	}
	return p.setFinalizer(ctx, cloud)
}

// writeStatus writes a status over the one that this sync knows. It returns errDeleted if
// the object no longer exists, and errOutdated if another client has written the status
// since: that may be a controller whose network is in use.
func (p *Pass) writeStatus(ctx context.Context, after samplecrdv1.NetworkStatus) error {
	latest, err := p.latest()
	if err != nil {
		return fmt.Errorf("updating status: %w", err)
	}
	hash := status.Hash(after)
	p.remember(func(memory *memory) {
		memory.status = 0 // unknown, if there is no response
		memory.written = [2]uint64{hash, memory.written[0]}
	})
	updated, err := p.client.SamplecrdV1().Networks(p.key.Namespace).
		Patch(ctx, p.key.Name, types.MergePatchType, status.Patch(latest, after),
			metav1.PatchOptions{FieldManager: p.options.FieldManager}, "status")
	if apierrors.IsNotFound(err) {
		err = errDeleted
	}
	if err != nil {
		return fmt.Errorf("updating status: %w", err)
	}
	p.networks.Written(updated)
	known := *p.network // it has the spec that the sync is for; a newer one needs another sync
	known.Status = updated.Status
	p.network = &known
	p.remember(func(memory *memory) { memory.status, memory.correction.pending = hash, false })
	return nil
}

// latest returns the latest known version of the Network, if its status is the one that
// this sync knows. Other metadata, and the spec, may be newer.
func (p *Pass) latest() (*samplecrdv1.Network, error) {
	latest, err := p.networks.Get(p.key)
	switch {
	case err != nil:
		return nil, err
	case latest == nil || latest.UID != p.network.UID:
		return nil, errDeleted
	case !status.IsSame(latest.Status, p.network.Status):
		return nil, errOutdated
	}
	return latest, nil
}

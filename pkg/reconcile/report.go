package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/metrics"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
	"github.com/samplecrd/network-controller/pkg/tracing"
)

// Report writes the status and events that follow from the outcome of a sync, and
// from that for the Deployment of the Network, if they are new. It returns the error
// to retry, or nil if the Network needs no sync until something changes.
func (r *Reconciler) Report(ctx context.Context, key cache.ObjectName, network *samplecrdv1.Network, desired plan.Desired, actual plan.Actual, outcome, deployment error) error {
	if errors.Is(outcome, errStopping) || errors.Is(outcome, context.Canceled) {
		return nil // the next start finds the key again
	}
	if observer, observed := tracing.ObserverOf(ctx); observed {
		observer.Reports(ctx, outcome, desired.SuccessWord())
	}
	var err error
	if network == nil {
		err = r.reportDeleted(key, outcome)
	} else {
		err = r.reportNetwork(ctx, network, desired, actual, outcome, deployment)
	}
	retry, _ := r.Retry(err)
	switch invalid := (*status.DeploymentError)(nil); {
	case err == nil:
		return deployment
	case errors.As(deployment, &invalid):
		return err // its retry comes first
	case deployment != nil && retry == RetryNever:
		return deployment // the status contains the outcome
	}
	return errors.Join(err, deployment)
}

func (r *Reconciler) reportNetwork(ctx context.Context, network *samplecrdv1.Network, desired plan.Desired, actual plan.Actual, outcome, deployment error) error {
	r.reportOverwritten(ctx, network)
	err := r.writeStatus(ctx, network, desired, actual, outcome, deployment)
	if err == nil {
		inSync := isComplete(outcome)
		r.update(network, func(memory *memory) {
			memory.observedGeneration = 0
			if inSync {
				memory.observedGeneration = network.Generation
			}
			if inSync && deployment == nil {
				memory.failure = ""
			}
		})
		if inSync {
			return nil
		}
		err = outcome
	} // else the next sync finds the same outcome again
	r.emitForbidden(network, err)
	return err
}

// reportDeleted ends the memory of an object that does not exist.
func (r *Reconciler) reportDeleted(key cache.ObjectName, outcome error) error {
	// By the next try, another network may carry the owner marker: the next list decides
	// again whether it is an orphan. What the ledger has stays until a list has proven that
	// there is nothing.
	r.note(key, func(a *account) { a.isOrphan = false })
	if outcome == nil {
		r.forget(key)
	}
	return outcome
}

// writeStatus updates the status if the outcome of a sync changes it, and records
// an event if there is a new problem.
func (r *Reconciler) writeStatus(ctx context.Context, network *samplecrdv1.Network, desired plan.Desired, actual plan.Actual, outcome, deployment error) error {
	key := cache.MetaObjectToName(network)
	network = r.withLatestStatus(network)
	after, _ := status.For(network, desired, actual, outcome, r.now())
	if !desired.Absent {
		after = status.WithDeployment(after, network.Generation, deployment, r.now())
	}
	if equality.Semantic.DeepEqual(after, network.Status) {
		r.update(network, func(memory *memory) { memory.status = status.Hash(after) })
		r.named(key, after.NetworkID, actual)
		return nil
	}
	if written, err := r.applyStatus(ctx, network, after); !written || err != nil {
		return err
	}
	r.named(key, after.NetworkID, actual)
	if r.becomesReady(network, after) {
		metrics.ObserveReady(r.clock.Since(network.CreationTimestamp.Time))
	}
	if reason, message := status.NewProblem(network.Status, after); reason != "" {
		r.emit(network, status.Event{Type: corev1.EventTypeWarning, Reason: reason, Note: message})
	}
	return nil
}

// withLatestStatus returns a Network as the sync read it, but with the status that
// this replica has written since.
func (r *Reconciler) withLatestStatus(network *samplecrdv1.Network) *samplecrdv1.Network {
	latest := r.latest(network)
	if latest == network || !r.wroteStatus(latest) {
		return network
	}
	updated := *network
	updated.Status = latest.Status
	return &updated
}

// withOwnWrites returns the latest version of a Network that this replica has written, if
// no other client has written its status since. A write of the Network as it was read is
// rejected then: another controller may have named a network in the status.
func (r *Reconciler) withOwnWrites(network *samplecrdv1.Network) *samplecrdv1.Network {
	if latest := r.latest(network); status.IsSame(latest.Status, network.Status) || r.wroteStatus(latest) {
		return latest
	}
	return network
}

// latest returns the latest known version of a Network, unless its spec differs.
func (r *Reconciler) latest(network *samplecrdv1.Network) *samplecrdv1.Network {
	latest, err := r.networks.Get(cache.MetaObjectToName(network))
	if err != nil || latest == nil || latest.UID != network.UID || latest.Generation != network.Generation {
		return network
	}
	return latest
}

// recordTags records in the status which tags the controller is about to add to
// the network: only these may be removed later.
func (r *Reconciler) recordTags(ctx context.Context, network *samplecrdv1.Network, tags []string) error {
	return r.writeRecord(ctx, network, func(status *samplecrdv1.NetworkStatus) { status.Tags = tags })
}

// recordRouter records in the status the router to which the controller is about to
// attach the subnet: only this one may be detached later.
func (r *Reconciler) recordRouter(ctx context.Context, network *samplecrdv1.Network, step plan.RecordRouter) error {
	return r.writeRecord(ctx, network, func(status *samplecrdv1.NetworkStatus) {
		status.Router = nil
		if step.ID != "" {
			status.Router = &samplecrdv1.RouterStatus{ID: step.ID, Name: step.Name}
		}
	})
}

// leaveRecord removes from the status what it records of a network in the cloud that
// the administrator leaves.
func (r *Reconciler) leaveRecord(ctx context.Context, network *samplecrdv1.Network) error {
	if r.options.LeaveCloud == "" || recordedCloud(network) != r.options.LeaveCloud {
		return nil
	}
	return r.writeRecord(ctx, network, func(status *samplecrdv1.NetworkStatus) {
		*status = samplecrdv1.NetworkStatus{ObservedGeneration: status.ObservedGeneration, Conditions: status.Conditions}
	})
}

// writeRecord changes the status during a plan, which may have changed it before.
func (r *Reconciler) writeRecord(ctx context.Context, network *samplecrdv1.Network, change func(*samplecrdv1.NetworkStatus)) error {
	network = r.withLatestStatus(network)
	after := *network.Status.DeepCopy()
	if latest, err := r.networks.Get(cache.MetaObjectToName(network)); err == nil && latest != nil && r.wroteStatus(latest) {
		after = *latest.Status.DeepCopy() // also if the spec has changed since: what was recorded must not be lost
	}
	change(&after)
	written, err := r.applyStatus(ctx, network, after)
	if err == nil && !written {
		err = errDeleted
	}
	return err
}

// applyStatus writes a status. It returns false if the object no longer exists.
func (r *Reconciler) applyStatus(ctx context.Context, network *samplecrdv1.Network, after samplecrdv1.NetworkStatus) (written bool, err error) {
	latest, err := r.networks.Get(cache.MetaObjectToName(network)) // the finalizer may be newer
	switch {
	case err != nil || latest == nil || latest.UID != network.UID:
		return false, err
	case !equality.Semantic.DeepEqual(latest.Status, network.Status) && !r.wroteStatus(latest):
		return false, fmt.Errorf("updating status: %w", errOutdated) // another controller's network may be in use
	}
	// The event may arrive before the response.
	r.update(network, func(memory *memory) { memory.status, memory.previousStatus = status.Hash(after), memory.status })
	updated, err := r.client.SamplecrdV1().Networks(network.Namespace).
		Patch(ctx, network.Name, types.MergePatchType, status.Patch(latest, after), metav1.PatchOptions{FieldManager: r.options.FieldManager}, "status")
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("updating status: %w", err)
	}
	r.networks.Written(updated)
	return true, nil
}

// emitForbidden records an event if the API server denied a request. The status
// cannot report that: it may be what the controller is not allowed to write.
func (r *Reconciler) emitForbidden(network *samplecrdv1.Network, err error) {
	if !apierrors.IsForbidden(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return
	}
	r.emit(network, status.Event{Type: corev1.EventTypeWarning, Reason: "Forbidden",
		Note: fmt.Sprintf("The API server rejected a request of the controller: %v. Check the controller's RBAC roles and the admission policies.", err)})
}

// emit records an event.
func (r *Reconciler) emit(regarding *samplecrdv1.Network, event status.Event) {
	r.events.Event(regarding, event.Type, event.Reason, status.Clip(event.Note))
}

// overwriteReportPeriod is the shortest time between two reports that another client
// writes the status of a Network.
const overwriteReportPeriod = 5 * time.Minute

// reportOverwritten reports who has written the status of a Network, if that was not
// this replica. The informer drops the managed fields, which name the writer.
func (r *Reconciler) reportOverwritten(ctx context.Context, network *samplecrdv1.Network) {
	was := r.memoryOf(network)
	if !was.overwritten {
		return
	}
	r.update(network, func(memory *memory) { memory.overwritten = false })
	if !was.overwriteReported.IsZero() && r.clock.Since(was.overwriteReported) < overwriteReportPeriod {
		return
	}
	logger := klog.FromContext(ctx)
	live, err := r.client.SamplecrdV1().Networks(network.Namespace).Get(ctx, network.Name, metav1.GetOptions{})
	if err != nil || live.UID != network.UID || r.wroteStatus(live) {
		return
	}
	r.update(network, func(memory *memory) { memory.overwriteReported = r.clock.Now() })
	event := status.Overwritten(status.Writer(live.ManagedFields, r.options.FieldManager), r.options.FieldManager)
	logger.Error(errors.New(event.Note), "Another client has written the status")
	r.emit(network, event)
}

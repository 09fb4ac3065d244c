package reconcile

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
	"github.com/samplecrd/network-controller/pkg/store"
	"github.com/samplecrd/network-controller/pkg/tracing"
)

var (
	// errStopping ends a sync between two steps when the controller stops.
	errStopping = errors.New("the controller is stopping")
	// errOutdated ends a sync of an object that has changed since it was read. The
	// retry reads the newer object.
	errOutdated = fmt.Errorf("the Network changed: %w", store.ErrOutdated)
	// errDeleted ends a sync whose object was deleted concurrently.
	errDeleted = errors.New("the Network was deleted")
)

// maxSteps is more than any plan needs, unless Neutron keeps returning something
// else than was requested.
const maxSteps = 60

// Apply plans and applies one step after the other, until the plan has none left
// or a step fails. A step changes Neutron with at most one request. Apply returns
// the actual state as far as it is known at the end.
func (r *Reconciler) Apply(ctx context.Context, key cache.ObjectName, network *samplecrdv1.Network, desired plan.Desired, actual plan.Actual) (plan.Actual, error) {
	if observer, observed := tracing.ObserverOf(ctx); observed {
		observer.Compares(ctx, desired.Words(), actual.Words(desired))
	}
	var applied []plan.Step
	desired.Request = newRequest()
	actual, err := r.applySteps(ctx, key, network, desired, actual, &applied)
	r.announce(key, network, applied, actual.Ours(desired))
	if actual.Cached && !isComplete(err) {
		actual = actual.WithoutCache() // no look has confirmed it: the status keeps its record
	}
	return actual, err
}

// newRequest returns a text that names a request in an owner marker. Two requests for one
// key never have the same.
func newRequest() string { return strings.ToLower(rand.Text()[:8]) }

// applySteps adds each step that it applied to a list.
func (r *Reconciler) applySteps(ctx context.Context, key cache.ObjectName, network *samplecrdv1.Network, desired plan.Desired, actual plan.Actual, applied *[]plan.Step) (plan.Actual, error) {
	began := r.clock.Now()
	found := false // whether this sync saw the network that the status names
	for range maxSteps {
		found = found || network != nil && network.Status.NetworkID != "" && actual.HasNetwork(network.Status.NetworkID)
		step := plan.Next(desired, actual)
		if ended, outcome := endOf(step, network); ended {
			return actual, outcome
		}
		if err := r.mayApply(ctx, key, network, desired, step, found); err != nil {
			return actual, err
		}
		after, err := r.applyStep(ctx, key, network, desired, actual, step, began)
		switch {
		case err == nil:
			logStep(ctx, network, step)
			*applied, actual = append(*applied, step), after
		case actual.Cached && isFromOutdated(step, err):
			klog.FromContext(ctx).V(2).Info("The cache of Neutron's state may be outdated; looking in Neutron", "step", status.Printable(step.String()), "err", status.Printable(err.Error()))
			actual = actual.WithoutCache()
		case isDuplicateInUse(desired, step, err):
			klog.FromContext(ctx).Info("A duplicate is in use; it stays, and the deletion goes on", "step", status.Printable(step.String()), "err", status.Printable(err.Error()))
			actual = actual.WithLeftDuplicate(step.(plan.DeleteNetwork).ID)
		default:
			err = &status.StepError{Step: step, Err: err}
			r.noteRejection(key, network, err)
			return actual, err
		}
	}
	return actual, status.BlockedError{Blocked: plan.Blocked{Reason: plan.ReasonNotConverging, Message: fmt.Sprintf(
		"Stopped after %d steps: Neutron's responses do not match the requests. See the controller's log for the steps.", maxSteps)}}
}

// isFromOutdated reports whether the error of a step may follow from an outdated cache of
// Neutron's state. Neutron checks the values of an update before its revision.
func isFromOutdated(step plan.Step, err error) bool {
	switch step.(type) {
	case plan.UpdateNetwork, plan.UpdateSubnet:
		if errors.Is(err, neutron.ErrRefused) || errors.Is(err, neutron.ErrInUse) {
			return true
		}
	}
	return errors.Is(err, neutron.ErrConflict) || errors.Is(err, neutron.ErrNotFound)
}

// isDuplicateInUse reports whether a step failed that deletes a duplicate of what is being
// deleted, because ports use the duplicate.
func isDuplicateInUse(desired plan.Desired, step plan.Step, err error) bool {
	deletion, _ := step.(plan.DeleteNetwork)
	return desired.Absent && deletion.DuplicateOf != "" && errors.Is(err, neutron.ErrInUse)
}

// endOf reports whether a plan for a Network ends with a step, and the outcome. The
// Network is nil for an orphan, which has no finalizer.
func endOf(step plan.Step, network *samplecrdv1.Network) (ended bool, outcome error) {
	switch step := step.(type) {
	case plan.Nothing:
		return true, nil
	case plan.Blocked:
		return true, status.BlockedError{Blocked: step}
	case plan.RemoveFinalizer:
		return network == nil, nil
	}
	return false, nil
}

// mayApply returns the outcome of a sync whose next step must not be applied now, or nil.
func (r *Reconciler) mayApply(ctx context.Context, key cache.ObjectName, network *samplecrdv1.Network, desired plan.Desired, step plan.Step, found bool) error {
	if rejected := r.rejection(key, network); rejected != nil {
		return rejected
	}
	err := errStopping
	if !r.isStopping() {
		err = r.checkCurrent(ctx, key, network, step)
	}
	if err == nil {
		err = r.checkPending(key, network, desired, step, found)
	}
	if err == nil {
		err = r.begin(key, desired, step) // last: applyStep ends it
	}
	if err != nil {
		return &status.StepError{Step: step, Err: err}
	}
	return nil
}

// checkCurrent reads the object again before a step that deletes something, and
// returns an error if it is no longer the one that the plan was made for: the
// cache may be stale, and the user may have changed the spec or set Retain.
func (r *Reconciler) checkCurrent(ctx context.Context, key cache.ObjectName, network *samplecrdv1.Network, step plan.Step) error {
	switch step.(type) {
	case plan.DeleteNetwork, plan.DeleteSubnet, plan.DetachRouter:
	default:
		return nil
	}
	latest, err := r.client.SamplecrdV1().Networks(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case network == nil && apierrors.IsNotFound(err):
		return r.checkDefinition(ctx)
	case err != nil:
		return fmt.Errorf("reading the Network before %q: %w", step, err)
	case network == nil || latest.UID != network.UID || latest.Generation != network.Generation:
		return fmt.Errorf("before %q: %w", step, errOutdated)
	case network.DeletionTimestamp != nil:
		return r.checkDefinition(ctx)
	}
	return nil
}

// checkDefinition returns the outcome of a sync that would delete something in Neutron
// while the CustomResourceDefinition is being deleted, and with it all Networks.
func (r *Reconciler) checkDefinition(ctx context.Context) error {
	isDeleted, err := r.options.IsDefinitionDeleted(ctx)
	switch {
	case err != nil:
		return err
	case !isDeleted:
		return nil
	}
	return status.BlockedError{Blocked: plan.Blocked{Reason: plan.ReasonDefinitionDeleted, Message: fmt.Sprintf(
		"the CustomResourceDefinition %[1]s is being deleted, and all Networks with it. Nothing is deleted in Neutron. "+
			"To have the Neutron networks deleted, confirm it: kubectl annotate crd %[1]s %[2]s=true. "+
			"To keep them, set spec.deletionPolicy of the Networks to Retain.", definitionName, samplecrdv1.AnnotationAllowDeletion)}}
}

// definitionName is the name of the CustomResourceDefinition of Networks.
const definitionName = "networks." + samplecrdv1.GroupName

// applyStep applies one step, traces it, shows it in the status if it takes long, and
// remembers what it may have created.
func (r *Reconciler) applyStep(ctx context.Context, key cache.ObjectName, network *samplecrdv1.Network, desired plan.Desired, actual plan.Actual, step plan.Step, syncBegan time.Time) (plan.Actual, error) {
	endProgress := r.showProgress(ctx, network, step, syncBegan)
	ctx, endTrace := tracing.Start(ctx, strings.TrimPrefix(fmt.Sprintf("%T", step), "plan."), "samplecrd.step", step)
	after, err := r.apply(ctx, network, actual, step)
	endTrace(err)
	endProgress()
	r.end(key, attempt{desired: desired, step: step, before: actual, after: after, err: err})
	return after, err
}

// apply applies one step. It returns the actual state afterwards, as far as it is
// known.
func (r *Reconciler) apply(ctx context.Context, network *samplecrdv1.Network, actual plan.Actual, step plan.Step) (plan.Actual, error) {
	if plan.IsRead(step) {
		return r.find(ctx, network, actual, step)
	}
	switch step := step.(type) {
	case plan.AddFinalizer:
		if err := r.leaveRecord(ctx, network); err != nil {
			return actual, err
		}
		return actual.WithFinalizer(true), r.setFinalizer(ctx, network, step.Cloud)
	case plan.RemoveFinalizer:
		return actual.WithFinalizer(false), r.setFinalizer(ctx, network, "")
	case plan.RecordTags:
		return actual.WithRecordedTags(step.Tags), r.recordTags(ctx, network, step.Tags)
	case plan.RecordRouter:
		return actual.WithRecordedRouter(step.ID, step.Name), r.recordRouter(ctx, network, step)

	case plan.CreateNetwork:
		created, err := r.neutron.CreateNetwork(ctx, step.Network)
		return actual.WithNewNetwork(step.Network, created), err
	case plan.UpdateNetwork:
		updated, err := r.neutron.UpdateNetwork(ctx, step.ID, step.Update)
		return actual.WithUpdatedNetwork(step.Update, updated), err
	case plan.RetainNetwork:
		updated, err := r.neutron.UpdateNetwork(ctx, step.ID, step.Update)
		return actual.WithNetwork(updated), err
	case plan.DeleteNetwork:
		return actual.WithoutNetwork(step.ID), ignoreNotFound(actual, r.neutron.DeleteNetwork(ctx, step.ID, step.Revision))
	case plan.AddTag:
		return actual.WithTag(step.ID, step.Tag, true), r.neutron.AddNetworkTag(ctx, step.ID, step.Tag)
	case plan.RemoveTag:
		return actual.WithTag(step.ID, step.Tag, false), r.neutron.RemoveNetworkTag(ctx, step.ID, step.Tag)

	case plan.CreateSubnet:
		created, err := r.neutron.CreateSubnet(ctx, step.Subnet)
		return actual.WithNewSubnet(created), err
	case plan.UpdateSubnet:
		updated, err := r.neutron.UpdateSubnet(ctx, step.ID, step.Update)
		return actual.WithSubnet(updated), err
	case plan.DeleteSubnet:
		return actual.WithoutSubnet(step.ID), ignoreNotFound(actual, r.neutron.DeleteSubnet(ctx, step.ID, step.Revision))

	case plan.AttachRouter:
		added, err := r.neutron.AddRouterInterface(ctx, step.Interface)
		return actual.WithRouterInterface(added), err
	case plan.DetachRouter:
		return actual.WithoutRouterInterface(step.Interface), r.neutron.RemoveRouterInterface(ctx, step.Interface)
	}
	panic(fmt.Sprintf("unknown step: %T", step))
}

// find applies a step that reads.
func (r *Reconciler) find(ctx context.Context, network *samplecrdv1.Network, actual plan.Actual, step plan.Step) (plan.Actual, error) {
	switch step := step.(type) {
	case plan.FindCloud:
		connected, err := r.neutron.Cloud(ctx)
		if err == nil && network != nil {
			return r.unobserved(network), nil
		}
		return actual.WithCloud(connected), err
	case plan.FindExtensions:
		found, err := r.neutron.Extensions(ctx)
		return actual.WithExtensions(found), err
	case plan.FindNetwork:
		found, err := r.neutron.Networks(ctx, step.Filter)
		return actual.WithNetworks(step.Filter, found), err
	case plan.FindOtherClusters:
		found, err := r.neutron.Networks(ctx, neutron.NetworkFilter{Name: step.Name})
		return actual.WithOtherClusters(r.otherClusters(cache.MetaObjectToName(network), neutron.OwnersOf(found))), err
	case plan.FindSubnets:
		found, err := r.neutron.Subnets(ctx, step.Filter)
		return actual.WithSubnets(step.Filter.NetworkID, found), err
	case plan.FindSubnetPool:
		found, err := r.neutron.SubnetPools(ctx, step.Filter)
		return actual.WithSubnetPools(found), err
	case plan.FindRouter:
		found, err := r.neutron.Routers(ctx, step.Filter)
		return actual.WithRouters(found), err
	case plan.FindRouterInterfaces:
		found, err := r.neutron.RouterInterfaces(ctx, step.NetworkID)
		return actual.WithRouterInterfaces(step.NetworkID, found), err
	case plan.FindPorts:
		found, err := r.neutron.Ports(ctx, step.NetworkID)
		return actual.WithPorts(step.NetworkID, found), err
	}
	panic(fmt.Sprintf("unknown step: %T", step))
}

// ignoreNotFound returns the error of a deletion. To delete what does not exist is no
// failure, unless the cache of Neutron's state has it: then the cache is outdated.
func ignoreNotFound(actual plan.Actual, err error) error {
	if errors.Is(err, neutron.ErrNotFound) && !actual.Cached {
		return nil
	}
	return err
}

// hasFinalizer reports whether the controller's finalizer is set.
func hasFinalizer(network *samplecrdv1.Network) bool {
	return slices.Contains(network.Finalizers, samplecrdv1.Finalizer)
}

// setFinalizer sets the controller's finalizer and records the cloud in which the
// network will be; without a cloud, it removes the finalizer. It keeps other
// finalizers. It sends nothing else: a client that sends the whole object drops
// fields that it does not know.
func (r *Reconciler) setFinalizer(ctx context.Context, network *samplecrdv1.Network, cloud string) error {
	network = r.withOwnWrites(network)
	finalizers := slices.DeleteFunc(slices.Clone(network.Finalizers), func(f string) bool { return f == samplecrdv1.Finalizer })
	metadata := map[string]any{
		"uid":             network.UID,
		"resourceVersion": network.ResourceVersion, // rejected if another client changed the list
	}
	if cloud != "" {
		finalizers = append(finalizers, samplecrdv1.Finalizer)
		metadata["annotations"] = map[string]string{samplecrdv1.AnnotationCloud: cloud}
	}
	metadata["finalizers"] = finalizers
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("encoding finalizers: %w", err)
	}
	updated, err := r.client.SamplecrdV1().Networks(network.Namespace).
		Patch(ctx, network.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: r.options.FieldManager})
	if err != nil {
		return fmt.Errorf("updating finalizers: %w", err)
	}
	r.networks.Written(updated)
	r.update(network, func(memory *memory) { memory.isNew = false })
	return nil
}

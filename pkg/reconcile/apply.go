package reconcile

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/observe"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
	"github.com/samplecrd/network-controller/pkg/store"
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
// or a step fails. A step changes Neutron with at most one request.
func (p *Pass) Apply(ctx context.Context) {
	observe.Reach(ctx, observe.Desired, p.desired.Words, nil)
	observe.Reach(ctx, observe.Actual, func() string { return p.actual.Words(p.desired) }, nil)
	if p.network != nil && !p.actual.Cached && !p.isListCurrent() {
		p.neutron.RequestRefresh(p.StartedAt()) // for the next syncs
	}
	p.desired.Request = newRequest()
	p.outcome = p.applySteps(ctx)
	p.announce()
	if p.actual.Cached && !isComplete(p.outcome) {
		p.actual = p.actual.WithoutCache() // no look has confirmed it: the status keeps its record
	}
}

// newRequest returns a text that names a request in an owner marker. Two requests for one
// key never have the same.
func newRequest() string { return strings.ToLower(rand.Text()[:8]) }

func (p *Pass) applySteps(ctx context.Context) (outcome error) {
	logger := klog.FromContext(ctx)
	for range maxSteps {
		p.found = p.found || p.network != nil && p.network.Status.NetworkID != "" &&
			p.actual.HasNetwork(p.network.Status.NetworkID)
		step := plan.Next(p.desired, p.actual)
		if ended, outcome := endOf(step, p.network); ended {
			return outcome
		}
		if err := p.mayApply(ctx, step); err != nil {
			return err
		}
		switch err := p.applyStep(ctx, step); {
		case err == nil:
			p.logStep(logger, step)
			p.applied = append(p.applied, step)
		case p.actual.Cached && isFromOutdated(step, err):
			logger.V(2).Info("The cache of Neutron's state may be outdated; looking in Neutron",
				"step", status.Printable(step.String()), "err", status.Printable(err.Error()))
			p.actual = p.actual.WithoutCache()
		case isDuplicateInUse(p.desired, step, err):
			logger.Info("A duplicate is in use; it stays, and the deletion goes on",
				"step", status.Printable(step.String()), "err", status.Printable(err.Error()))
			p.actual = p.actual.WithLeftDuplicate(step.(plan.DeleteNetwork).ID)
		default:
			err = &status.StepError{Step: step, Err: err}
			p.noteRejection(err)
			return err
		}
	}
	return plan.Blocked{Reason: plan.ReasonNotConverging, Message: fmt.Sprintf("Stopped after %d steps: "+
		"Neutron's responses do not match the requests. See the controller's log for the steps.", maxSteps)}
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
		return true, step
	case plan.RemoveFinalizer:
		return network == nil, nil
	}
	return false, nil
}

// mayApply returns the outcome of a sync whose next step must not be applied now, or nil.
func (p *Pass) mayApply(ctx context.Context, step plan.Step) error {
	if rejected := p.rejection(); rejected != nil {
		return rejected
	}
	err := errStopping
	if !p.isStopping() {
		err = p.checkCurrent(ctx, step)
	}
	if err == nil {
		err = p.checkPending(step)
	}
	if err == nil {
		err = p.begin(step) // last: applyStep ends it
	}
	if err != nil {
		return &status.StepError{Step: step, Err: err}
	}
	return nil
}

// checkCurrent reads the object again before a step that deletes something, and
// returns an error if it is no longer the one that the plan was made for: the
// cache may be stale, and the user may have changed the spec or set Retain.
func (p *Pass) checkCurrent(ctx context.Context, step plan.Step) error {
	switch step.(type) {
	case plan.DeleteNetwork, plan.DeleteSubnet, plan.DetachRouter:
	default:
		return nil
	}
	latest, err := p.client.SamplecrdV1().Networks(p.key.Namespace).Get(ctx, p.key.Name, metav1.GetOptions{})
	switch {
	case p.network == nil && apierrors.IsNotFound(err):
		return p.checkDefinition(ctx)
	case err != nil:
		return fmt.Errorf("reading the Network before %q: %w", step, err)
	case p.network == nil || latest.UID != p.network.UID || latest.Generation != p.network.Generation:
		return fmt.Errorf("before %q: %w", step, errOutdated)
	case p.network.DeletionTimestamp != nil:
		return p.checkDefinition(ctx)
	}
	return nil
}

// checkDefinition returns the outcome of a sync that would delete something in Neutron
// while the CustomResourceDefinition is being deleted, and with it all Networks.
func (r *Reconciler) checkDefinition(ctx context.Context) error {
	isDeleted, err := r.options.IsDefinitionDeleted(ctx)
	if err != nil || !isDeleted {
		return err
	}
	return plan.Blocked{Reason: plan.ReasonDefinitionDeleted, Message: fmt.Sprintf(
		"the CustomResourceDefinition %[1]s is being deleted, and all Networks with it. Nothing is deleted in Neutron. "+
			"To have the Neutron networks deleted, confirm it: kubectl annotate crd %[1]s %[2]s=true. "+
			"To keep them, set spec.deletionPolicy of the Networks to Retain.",
		samplecrdv1.DefinitionName, samplecrdv1.AnnotationAllowDeletion)}
}

// applyStep applies one step, passes it to observers, and notes in the ledger what it may
// have created.
func (p *Pass) applyStep(ctx context.Context, step plan.Step) error {
	ctx, endStep := observe.BeginStep(ctx, strings.TrimPrefix(fmt.Sprintf("%T", step), "plan."), step)
	after, err := p.apply(ctx, step)
	endStep(err)
	p.end(step, after, err)
	if err == nil {
		p.actual = after
	}
	return err
}

// apply applies one step. It returns the actual state afterwards.
func (p *Pass) apply(ctx context.Context, step plan.Step) (plan.Actual, error) {
	send := p.request
	if plan.IsRead(step) {
		send = p.read
	}
	result, err := send(ctx, step)
	if err != nil {
		return p.actual, err
	}
	if _, isCloud := step.(plan.FindCloud); isCloud && p.network != nil {
		return p.unobserved(p.network), nil
	}
	return p.actual.After(step, result), nil
}

// request sends the request of a step that writes, and returns what [plan.Actual.After]
// needs of the response.
func (p *Pass) request(ctx context.Context, step plan.Step) (result any, err error) {
	switch step := step.(type) {
	case plan.AddFinalizer:
		return nil, p.addFinalizer(ctx, step.Cloud)
	case plan.RemoveFinalizer:
		return nil, p.setFinalizer(ctx, "")
	case plan.RecordTags:
		return nil, p.record(ctx, func(s *samplecrdv1.NetworkStatus) { s.Tags = step.Tags })
	case plan.RecordRouter:
		return nil, p.record(ctx, func(s *samplecrdv1.NetworkStatus) {
			if s.Router = nil; step.ID != "" {
				s.Router = &samplecrdv1.RouterStatus{ID: step.ID, Name: step.Name}
			}
		})

	case plan.CreateNetwork:
		return p.neutron.CreateNetwork(ctx, step.Network)
	case plan.UpdateNetwork:
		return p.neutron.UpdateNetwork(ctx, step.ID, step.Update)
	case plan.RetainNetwork:
		return p.neutron.UpdateNetwork(ctx, step.ID, step.Update)
	case plan.DeleteNetwork:
		return nil, ignoreNotFound(p.actual, p.neutron.DeleteNetwork(ctx, step.ID, step.Revision))
	case plan.AddTag:
		return nil, p.neutron.AddNetworkTag(ctx, step.ID, step.Tag)
	case plan.RemoveTag:
		return nil, p.neutron.RemoveNetworkTag(ctx, step.ID, step.Tag)

	case plan.CreateSubnet:
		return p.neutron.CreateSubnet(ctx, step.Subnet)
	case plan.UpdateSubnet:
		return p.neutron.UpdateSubnet(ctx, step.ID, step.Update)
	case plan.DeleteSubnet:
		return nil, ignoreNotFound(p.actual, p.neutron.DeleteSubnet(ctx, step.ID, step.Revision))

	case plan.AttachRouter:
		return p.neutron.AddRouterInterface(ctx, step.Interface)
	case plan.DetachRouter:
		return nil, p.neutron.RemoveRouterInterface(ctx, step.Interface)
	}
	panic(fmt.Sprintf("unknown step: %T", step))
}

// read sends the request of a step that reads, and returns what [plan.Actual.After] needs
// of the response.
func (p *Pass) read(ctx context.Context, step plan.Step) (result any, err error) {
	switch step := step.(type) {
	case plan.FindCloud:
		return p.neutron.Cloud(ctx)
	case plan.FindExtensions:
		return p.neutron.Extensions(ctx)
	case plan.FindNetwork:
		return p.neutron.Networks(ctx, step.Filter)
	case plan.FindOtherClusters:
		named, err := p.neutron.Networks(ctx, neutron.NetworkFilter{Name: step.Name})
		return p.otherClusters(p.key, neutron.OwnersOf(named)), err
	case plan.FindSubnets:
		return p.neutron.Subnets(ctx, step.Filter)
	case plan.FindSubnetPool:
		return p.neutron.SubnetPools(ctx, step.Filter)
	case plan.FindRouter:
		return p.neutron.Routers(ctx, step.Filter)
	case plan.FindRouterInterfaces:
		return p.neutron.RouterInterfaces(ctx, step.NetworkID)
	case plan.FindPorts:
		return p.neutron.Ports(ctx, step.NetworkID)
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

// HasFinalizer reports whether the controller's finalizer is set.
func HasFinalizer(network *samplecrdv1.Network) bool {
	return slices.Contains(network.Finalizers, samplecrdv1.Finalizer)
}

// setFinalizer sets the controller's finalizer and records the cloud in which the
// network will be; without a cloud, it removes the finalizer. It keeps other
// finalizers. It sends nothing else: a client that sends the whole object drops
// fields that it does not know.
func (p *Pass) setFinalizer(ctx context.Context, cloud string) error {
	latest, err := p.latest()
	switch {
	case err != nil:
		return fmt.Errorf("updating finalizers: %w", err)
	case latest.Generation != p.network.Generation:
		return fmt.Errorf("updating finalizers: %w", errOutdated)
	}
	finalizers := slices.DeleteFunc(slices.Clone(latest.Finalizers),
		func(f string) bool { return f == samplecrdv1.Finalizer })
	metadata := map[string]any{
		"uid":             latest.UID,
		"resourceVersion": latest.ResourceVersion, // rejected if another client changed the list
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
	updated, err := p.client.SamplecrdV1().Networks(p.key.Namespace).
		Patch(ctx, p.key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: p.options.FieldManager})
	if err != nil {
		return fmt.Errorf("updating finalizers: %w", err)
	}
	p.networks.Written(updated)
	p.remember(func(memory *memory) { memory.isNew = false })
	return nil
}

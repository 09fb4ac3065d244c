package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
)

// apply applies a step, and returns the actual state after it.
func (r *Reconciler) apply(ctx context.Context, network *samplecrdv1.Network, actual plan.Actual,
	step plan.Step) (plan.Actual, error) {
	result, err := r.request(ctx, network, step)
	if err != nil {
		return actual, err
	}
	return actual.After(step, result), nil
}

// request sends the request of a step, and returns what its response contains.
func (r *Reconciler) request(ctx context.Context, network *samplecrdv1.Network,
	step plan.Step) (result any, err error) {
	switch step := step.(type) {
	case plan.FindNetwork:
		return r.Neutron.Networks(ctx, step.Filter)
	case plan.FindSubnets:
		return r.Neutron.Subnets(ctx, step.Filter)
	case plan.AddFinalizer:
		return nil, r.patch(ctx, network, func() {
			controllerutil.AddFinalizer(network, samplecrdv1.Finalizer)
			metav1.SetMetaDataAnnotation(&network.ObjectMeta, samplecrdv1.AnnotationCloud, step.Cloud)
		})
	case plan.RemoveFinalizer:
		return nil, client.IgnoreNotFound(r.patch(ctx, network, func() {
			controllerutil.RemoveFinalizer(network, samplecrdv1.Finalizer)
		}))
	case plan.CreateNetwork:
		return r.Neutron.CreateNetwork(ctx, step.Network)
	case plan.UpdateNetwork:
		return r.Neutron.UpdateNetwork(ctx, step.ID, step.Update)
	case plan.DeleteNetwork:
		return nil, r.Neutron.DeleteNetwork(ctx, step.ID, step.Revision)
	case plan.CreateSubnet:
		return r.Neutron.CreateSubnet(ctx, step.Subnet)
	case plan.UpdateSubnet:
		return r.Neutron.UpdateSubnet(ctx, step.ID, step.Update)
	case plan.DeleteSubnet:
		return nil, r.Neutron.DeleteSubnet(ctx, step.ID, step.Revision)
	}
	return nil, fmt.Errorf("this example does not support the step %q", step)
}

// patch changes a Network, with one request.
func (r *Reconciler) patch(ctx context.Context, network *samplecrdv1.Network, change func()) error {
	before := network.DeepCopy()
	change()
	return r.Patch(ctx, network, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// report writes the status, if it changes, and then records an Event.
func (r *Reconciler) report(ctx context.Context, network *samplecrdv1.Network, desired plan.Desired, actual plan.Actual,
	outcome error) error {
	after, relevant := status.For(network, status.Found{Desired: desired, Actual: actual, Outcome: outcome}, metav1.Now())
	if !relevant || equality.Semantic.DeepEqual(after, network.Status) {
		return nil
	}
	before := network.DeepCopy()
	network.Status = after
	if err := r.Status().Patch(ctx, network, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(err)
	}
	if outcome == nil {
		r.Events.Eventf(network, nil, corev1.EventTypeNormal, "Provisioned", "Sync",
			"The network and its subnet match the spec.")
	}
	return nil
}

package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
)

// apply applies a step, and returns the actual state after it.
func (r *Reconciler) apply(ctx context.Context, network *samplecrdv1.Network, actual plan.Actual, step plan.Step) (plan.Actual, error) {
	switch step := step.(type) {
	case plan.FindNetwork:
		found, err := r.Neutron.Networks(ctx, step.Filter)
		return actual.WithNetworks(step.Filter, found), err
	case plan.FindSubnets:
		found, err := r.Neutron.Subnets(ctx, step.Filter)
		return actual.WithSubnets(step.Filter.NetworkID, found), err
	case plan.AddFinalizer:
		return actual.WithFinalizer(true), r.patch(ctx, network, func() {
			controllerutil.AddFinalizer(network, samplecrdv1.Finalizer)
			metav1.SetMetaDataAnnotation(&network.ObjectMeta, samplecrdv1.AnnotationCloud, step.Cloud)
		})
	case plan.RemoveFinalizer:
		return actual.WithFinalizer(false), client.IgnoreNotFound(r.patch(ctx, network, func() {
			controllerutil.RemoveFinalizer(network, samplecrdv1.Finalizer)
		}))
	case plan.CreateNetwork:
		created, err := r.Neutron.CreateNetwork(ctx, step.Network)
		return actual.WithNewNetwork(step.Network, created), err
	case plan.UpdateNetwork:
		updated, err := r.Neutron.UpdateNetwork(ctx, step.ID, step.Update)
		return actual.WithUpdatedNetwork(step.Update, updated), err
	case plan.DeleteNetwork:
		return actual.WithoutNetwork(step.ID), r.Neutron.DeleteNetwork(ctx, step.ID, step.Revision)
	case plan.CreateSubnet:
		created, err := r.Neutron.CreateSubnet(ctx, step.Subnet)
		return actual.WithNewSubnet(created), err
	case plan.UpdateSubnet:
		updated, err := r.Neutron.UpdateSubnet(ctx, step.ID, step.Update)
		return actual.WithSubnet(updated), err
	case plan.DeleteSubnet:
		return actual.WithoutSubnet(step.ID), r.Neutron.DeleteSubnet(ctx, step.ID, step.Revision)
	}
	return actual, fmt.Errorf("this example does not support the step %q", step)
}

// patch changes a Network, with one request.
func (r *Reconciler) patch(ctx context.Context, network *samplecrdv1.Network, change func()) error {
	before := network.DeepCopy()
	change()
	return r.Patch(ctx, network, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// report writes the status, if it changes, and then records an Event.
func (r *Reconciler) report(ctx context.Context, network *samplecrdv1.Network, desired plan.Desired, actual plan.Actual, outcome error) error {
	after, changed := status.For(network, desired, actual, outcome, metav1.Now())
	if !changed {
		return nil
	}
	before := network.DeepCopy()
	network.Status = after
	if err := r.Status().Patch(ctx, network, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(err)
	}
	if outcome == nil {
		r.Events.Eventf(network, nil, corev1.EventTypeNormal, "Provisioned", "Sync", "The network and its subnet match the spec.")
	}
	return nil
}

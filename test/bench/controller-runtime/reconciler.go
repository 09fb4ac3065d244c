package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
)

// clusterName is part of the owner markers.
const clusterName = "controller-runtime"

// Reconciler makes Neutron match Networks. The Manager contains what controller.go
// of the product shows: the informer, the handlers, the queue and the workers.
type Reconciler struct {
	client.Client
	Neutron neutron.Client
	Events  events.EventRecorder
	Resync  time.Duration
}

// SetupWithManager registers the Reconciler. A change of the status alone leads to no
// sync.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(manager).
		For(&samplecrdv1.Network{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// Reconcile makes Neutron match one Network. If it returns an error, it is called
// again with a growing delay.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	network := &samplecrdv1.Network{}
	if err := r.Get(ctx, request.NamespacedName, network); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	owner := neutron.Owner{Cluster: clusterName, Namespace: network.Namespace, Name: network.Name}
	desired := plan.DesiredFor(owner, network.Spec)
	if !network.DeletionTimestamp.IsZero() {
		desired = plan.DesiredAbsent(owner)
	}
	cloud, err := r.Neutron.Cloud(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	actual := plan.Actual{
		Finalizer: controllerutil.ContainsFinalizer(network, samplecrdv1.Finalizer),
		Cloud:     network.Annotations[samplecrdv1.AnnotationCloud],
		Record:    status.RecordOf(network.Status),
	}.WithCloud(cloud)

	actual, err = r.converge(ctx, network, desired, actual)
	if desired.Absent && !actual.Finalizer {
		return ctrl.Result{}, err // the object is gone
	}
	if err := errors.Join(err, r.report(ctx, network, desired, actual, err)); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: r.Resync}, nil // there is no event when Neutron changes
}

// converge plans and applies one step after the other, until none is left.
func (r *Reconciler) converge(ctx context.Context, network *samplecrdv1.Network, desired plan.Desired, actual plan.Actual) (plan.Actual, error) {
	for {
		step := plan.Next(desired, actual)
		switch step := step.(type) {
		case plan.Nothing:
			return actual, nil
		case plan.Blocked:
			return actual, status.BlockedError{Blocked: step}
		}
		after, err := r.apply(ctx, network, actual, step)
		if err != nil {
			return actual, &status.StepError{Step: step, Err: err}
		}
		actual = after
		if desired.Absent && !actual.Finalizer {
			return actual, nil
		}
	}
}

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

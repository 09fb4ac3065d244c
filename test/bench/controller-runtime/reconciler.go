package main

import (
	"context"
	"errors"
	"time"

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
		desired = plan.Desired{Owner: owner, Absent: true}
	}
	cloud, err := r.Neutron.Cloud(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	actual := plan.Actual{
		Finalizer: controllerutil.ContainsFinalizer(network, samplecrdv1.Finalizer),
		Cloud:     network.Annotations[samplecrdv1.AnnotationCloud],
		Record:    status.RecordOf(network.Status),
	}.After(plan.FindCloud{}, cloud)

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
func (r *Reconciler) converge(ctx context.Context, network *samplecrdv1.Network, desired plan.Desired,
	actual plan.Actual) (plan.Actual, error) {
	for {
		step := plan.Next(desired, actual)
		switch step := step.(type) {
		case plan.Nothing:
			return actual, nil
		case plan.Blocked:
			return actual, step
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

package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	myv1 "github.com/samplecrd/network-controller/example/namespaceplus/apis/mygroup/v1"
	"github.com/samplecrd/network-controller/example/namespaceplus/tenant"
	"github.com/samplecrd/network-controller/pkg/glass"
)

// Reconciler gives each NamespacePlus a namespace. The Manager contains what controller.go
// shows: the informers, the handlers, the queues and the workers.
type Reconciler struct {
	client.Client               // reads from the caches
	live          client.Reader // reads from the API server
	kinds         []tenant.Kind
}

// SetupWithManager registers two controllers: one that gives, and one that notifies, so
// that no tenant waits for a receiver. Owns would need an owner reference, which a
// namespace has only if it is to be deleted: so a function maps the label to the tenant.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager, options controller.Options, page *glass.Page) error {
	builder := ctrl.NewControllerManagedBy(manager).For(&myv1.NamespacePlus{}).WithOptions(options)
	for _, kind := range r.kinds {
		builder = builder.WatchesMetadata(metadataOf(kind), handler.EnqueueRequestsFromMapFunc(tenantOf))
	}
	notifications := ctrl.NewControllerManagedBy(manager).For(&myv1.NamespacePlus{}).
		Named("notifications").WithOptions(options)
	giver := page.Controller(glass.Config{Name: "namespaceplus", Resource: "namespacepluses"})
	notifier := page.Controller(glass.Config{Name: "notifications", Resource: "namespacepluses"})
	return errors.Join(builder.Complete(syncsOn(giver, r.Reconcile)), notifications.Complete(syncsOn(notifier, r.notify)))
}

func tenantOf(_ context.Context, object client.Object) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: object.GetLabels()[myv1.LabelTenant]}}}
}

// Reconcile gives one tenant what its NamespacePlus requests.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	desired := &myv1.NamespacePlus{}
	if err := r.Get(ctx, request.NamespacedName, desired); err != nil || desired.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{}, r.report(ctx, desired, myv1.ConditionReady, r.reconcile(ctx, desired))
}

// reconcile makes what exists match the spec.
func (r *Reconciler) reconcile(ctx context.Context, desired *myv1.NamespacePlus) error {
	objects, invalid := tenant.Objects(desired)
	observed, err := r.observe(ctx, desired.Name)
	if err := errors.Join(invalid, err); err != nil {
		return err
	}
	namespace := tenant.IDOf(objects[0])
	if observed[namespace] == nil {
		if observed[namespace], err = r.createNamespace(ctx, objects[0]); err != nil {
			return err
		}
	}
	if err := tenant.CheckNamespace(desired, observed[namespace]); err != nil {
		return err
	}
	var errs []error
	for id, object := range observed {
		if !tenant.IsDropped(id, object, objects) {
			continue
		}
		uid := object.GetUID()
		err := r.Delete(ctx, object.(client.Object), client.Preconditions{UID: &uid})
		errs = append(errs, client.IgnoreNotFound(err))
	}
	for _, object := range objects {
		own := observed[tenant.IDOf(object)]
		if tenant.IsUpToDate(object, own) || own == nil && errors.Join(errs...) != nil {
			continue // nobody gets anything new while a limit is missing
		}
		options := []client.ApplyOption{client.FieldOwner(tenant.FieldManager)}
		if own != nil || desired.Spec.Adopt {
			options = append(options, client.ForceOwnership)
		}
		if err := r.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...); err != nil {
			errs = append(errs, fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

// observe reads what a tenant has from the caches.
func (r *Reconciler) observe(ctx context.Context, name string) (tenant.Observed, error) {
	observed := tenant.Observed{}
	for _, kind := range r.kinds {
		list := &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{*metadataOf(kind)}}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		var err error
		if kind == tenant.Namespace {
			err = r.Get(ctx, client.ObjectKey{Name: name}, &list.Items[0])
		} else {
			err = r.List(ctx, list, client.InNamespace(name), client.MatchingLabels{myv1.LabelTenant: name})
		}
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading each %s from the cache: %w", kind.Kind, err)
		}
		for i := range list.Items {
			observed[tenant.ID{Kind: kind, Name: list.Items[i].Name}] = &list.Items[i]
		}
	}
	return observed, nil
}

// createNamespace returns the namespace of a tenant.
func (r *Reconciler) createNamespace(ctx context.Context, object *unstructured.Unstructured) (metav1.Object, error) {
	created := object.DeepCopy()
	err := r.Create(ctx, created, client.FieldOwner(tenant.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		err = r.live.Get(ctx, client.ObjectKeyFromObject(object), created)
	}
	return created, err
}

// notify sends the notification of one tenant, if it is needed.
func (r *Reconciler) notify(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	desired := &myv1.NamespacePlus{}
	err := r.Get(ctx, request.NamespacedName, desired)
	if err == nil && tenant.NeedsNotification(desired) {
		desired = &myv1.NamespacePlus{}
		err = r.live.Get(ctx, request.NamespacedName, desired)
	}
	if err != nil || !tenant.NeedsNotification(desired) {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	secret := &corev1.Secret{} // with r.Get, the Manager would list and watch all Secrets
	failure := r.live.Get(ctx, client.ObjectKey{Namespace: tenant.SecretNamespace, Name: tenant.SecretName}, secret)
	if failure == nil {
		failure = tenant.Notify(ctx, desired, secret)
	}
	return ctrl.Result{}, r.report(ctx, desired, myv1.ConditionNotified, failure)
}

// report writes a condition into the status, if it changes.
func (r *Reconciler) report(ctx context.Context, desired *myv1.NamespacePlus, condition string, failure error) error {
	object := tenant.Report(desired, condition, failure)
	if object == nil {
		return failure
	}
	manager := client.FieldOwner(tenant.FieldManager + "-" + condition)
	return errors.Join(failure, client.IgnoreNotFound(r.Status().Apply(ctx, object, manager, client.ForceOwnership)))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	myv1 "github.com/samplecrd/network-controller/example/namespaceplus/apis/mygroup/v1"
	applyv1 "github.com/samplecrd/network-controller/example/namespaceplus/client/applyconfiguration/mygroup/v1"
	informersv1 "github.com/samplecrd/network-controller/example/namespaceplus/client/informers/externalversions/mygroup/v1"
	listers "github.com/samplecrd/network-controller/example/namespaceplus/client/listers/mygroup/v1"
	"github.com/samplecrd/network-controller/example/namespaceplus/tenant"
)

// Controller gives each NamespacePlus a namespace.
//
//	NamespacePluses ──┐                                               ┌──▶ apply, delete, report
//	metadata of what  ├─▶ handler ──name──▶ queue ──▶ worker ──▶ syncHandler
//	tenants have    ──┘                                               └──▶ queue ──▶ worker ──▶ notify
//
// It needs no finalizer, no periodic list and no leader: everything that it makes is in
// Kubernetes. A deletion is the garbage collector's work, drift is an event, and a write
// that is sent twice has the effect of one.
type Controller struct {
	clients       clients
	tenants       listers.NamespacePlusLister
	observed      map[tenant.Kind]cache.GenericLister
	synced        []cache.DoneChecker
	queue         workqueue.TypedRateLimitingInterface[string] // names of NamespacePluses
	notifications workqueue.TypedRateLimitingInterface[string] // apart, so that no tenant waits for a receiver
}

// NewController returns a Controller. Start the informers after it.
func NewController(
	c clients, tenants informersv1.TypedNamespacePlusInformer, owned ownedInformers,
) (*Controller, error) {
	controller := &Controller{
		clients: c, tenants: tenants.Lister(), observed: map[tenant.Kind]cache.GenericLister{},
		queue: newQueue("NamespacePluses"), notifications: newQueue("Notifications"),
	}
	add := func(changed *myv1.NamespacePlus) {
		controller.queue.Add(changed.Name) // also after an own write: the sync finds nothing to do
		controller.notifications.Add(changed.Name)
	}
	registration, err := tenants.TypedInformer().AddTypedEventHandler(informersv1.NamespacePlusHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, after *myv1.NamespacePlus) { add(after) },
		DeleteFunc: func(deleted informersv1.DeletedNamespacePlus) { controller.queue.Add(deleted.GetName()) },
	}, cache.HandlerOptions{})
	if err != nil {
		return nil, fmt.Errorf("adding event handlers: %w", err)
	}
	controller.synced = append(controller.synced, registration.HasSyncedChecker())
	for kind, informer := range owned {
		controller.observed[kind] = informer.Lister()
		registration, err := informer.Informer().AddEventHandler(controller.driftHandlers())
		if err != nil {
			return nil, fmt.Errorf("adding event handlers for %s: %w", kind.Resource, err)
		}
		controller.synced = append(controller.synced, registration.HasSyncedChecker())
	}
	return controller, nil
}

// driftHandlers add the tenant of an object that somebody changed. If the label was
// removed, the object leaves the watch, which is a deletion with the old label.
func (c *Controller) driftHandlers() cache.ResourceEventHandler {
	add := func(object any) {
		if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = missed.Obj
		}
		if object, ok := object.(metav1.Object); ok {
			c.queue.Add(object.GetLabels()[myv1.LabelTenant])
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(before, after any) { add(before); add(after) }, DeleteFunc: add,
	}
}

// Run waits for the caches and runs workers until the context ends. A request that is cut
// off then does no harm: the next process sends it again.
func (c *Controller) Run(ctx context.Context, workers int) error {
	logger := klog.FromContext(ctx)
	logger.Info("Waiting for the informer caches to sync")
	if !cache.WaitFor(ctx, "", c.synced...) {
		return nil // stopped
	}
	logger.Info("Starting workers", "count", workers)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { runWorker(ctx, c.queue, c.syncHandler) })
		running.Go(func() { runWorker(ctx, c.notifications, c.notify) })
	}
	<-ctx.Done()
	c.queue.ShutDown()
	c.notifications.ShutDown()
	running.Wait()
	return nil
}

// runWorker processes names until the queue is shut down.
func runWorker(
	ctx context.Context, queue workqueue.TypedRateLimitingInterface[string], handle func(context.Context, string) error,
) {
	for {
		name, shutdown := queue.Get()
		if shutdown {
			return
		}
		if err := handle(ctx, name); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Retrying with backoff", "namespaceplus", name)
			queue.AddRateLimited(name)
		} else {
			queue.Forget(name)
		}
		queue.Done(name)
	}
}

// syncHandler gives one tenant what its NamespacePlus requests. If nothing differs, it
// sends no request.
func (c *Controller) syncHandler(ctx context.Context, name string) error {
	desired, err := c.tenants.Get(name)
	if apierrors.IsNotFound(err) || err == nil && desired.DeletionTimestamp != nil {
		return nil // the garbage collector deletes the namespace, if that is requested
	}
	if err != nil {
		return fmt.Errorf("reading %s from the cache: %w", name, err)
	}
	err = c.reconcile(ctx, desired)
	return errors.Join(err, c.writeStatus(ctx, desired, tenant.FieldManager, tenant.ReadyStatus(desired, err)))
}

// reconcile makes what exists match the spec. What is dropped goes first: it may be a
// permission.
func (c *Controller) reconcile(ctx context.Context, desired *myv1.NamespacePlus) error {
	objects, err := tenant.Objects(desired)
	if err != nil {
		return err
	}
	observed, err := c.observe(desired.Name)
	if err != nil {
		return err
	}
	created, err := c.ensureNamespace(ctx, desired, objects[0], observed)
	if err != nil {
		return err
	}
	var errs []error
	for kind := range c.observed {
		for _, object := range observed.Dropped(kind, objects) {
			errs = append(errs, c.delete(ctx, kind, object))
		}
	}
	for _, object := range objects {
		own := observed.Get(object.Kind, object.GetName())
		switch {
		case tenant.IsUpToDate(object, own), created && object.Kind == tenant.Namespace:
			continue
		case own == nil && errors.Join(errs...) != nil:
			continue // nobody gets anything new while a limit is missing
		}
		force := object.Kind == tenant.Namespace || own != nil || desired.Spec.Adopt
		errs = append(errs, c.apply(ctx, object, force))
	}
	return errors.Join(errs...)
}

// observe reads what a tenant has from the caches.
func (c *Controller) observe(name string) (tenant.Observed, error) {
	observed, selector := tenant.Observed{}, labels.SelectorFromSet(labels.Set{myv1.LabelTenant: name})
	for kind, lister := range c.observed {
		var err error
		objects := make([]runtime.Object, 1)
		if kind == tenant.Namespace {
			objects[0], err = lister.Get(name)
		} else {
			objects, err = lister.ByNamespace(name).List(selector)
		}
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s from the cache: %w", kind.Resource, err)
		}
		for _, object := range objects {
			observed[kind] = append(observed[kind], object.(*metav1.PartialObjectMetadata))
		}
	}
	return observed, nil
}

// ensureNamespace makes sure that there is a namespace which may be changed. An apply
// would take over one that exists; a create fails.
func (c *Controller) ensureNamespace(
	ctx context.Context, desired *myv1.NamespacePlus, object tenant.Object, observed tenant.Observed,
) (created bool, err error) {
	namespace := observed.Get(tenant.Namespace, desired.Name)
	if namespace == nil {
		_, err := c.clients.dynamic.Resource(object.Kind.GVR()).
			Create(ctx, object.Unstructured, metav1.CreateOptions{FieldManager: tenant.FieldManager})
		if !apierrors.IsAlreadyExists(err) {
			return err == nil, err
		}
		// It is not ours, or has lost its label, or the cache does not have it yet.
		namespace, err = c.clients.metadata.Resource(object.Kind.GVR()).Get(ctx, desired.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
	}
	return false, tenant.CheckNamespace(desired, namespace)
}

// apply writes all fields of an object. Without force, the API server rejects a value
// that differs from that of another field manager.
func (c *Controller) apply(ctx context.Context, object tenant.Object, force bool) error {
	_, err := c.clients.dynamic.Resource(object.Kind.GVR()).Namespace(object.GetNamespace()).Apply(ctx, object.GetName(),
		object.Unstructured, metav1.ApplyOptions{FieldManager: tenant.FieldManager, Force: force})
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", object.Kind.Kind, object.GetName(), err)
	}
	logger := klog.FromContext(ctx)
	logger.Info("Applied", "kind", object.Kind.Kind, "namespace", object.GetNamespace(), "name", object.GetName())
	return nil
}

// delete deletes an object, but not another one that has its name meanwhile.
func (c *Controller) delete(ctx context.Context, kind tenant.Kind, object *metav1.PartialObjectMetadata) error {
	err := c.clients.dynamic.Resource(kind.GVR()).Namespace(object.Namespace).Delete(ctx, object.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &object.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s %s: %w", kind.Kind, object.Name, err)
	}
	klog.FromContext(ctx).Info("Deleted", "kind", kind.Kind, "namespace", object.Namespace, "name", object.Name)
	return nil
}

// notify sends the notification of one tenant, if it is needed. A request cannot be taken
// back: that it is needed is read once more, from the API server.
func (c *Controller) notify(ctx context.Context, name string) error {
	desired, err := c.tenants.Get(name)
	if err == nil && tenant.NeedsNotification(desired) {
		desired, err = c.clients.tenants.MygroupV1().NamespacePluses().Get(ctx, name, metav1.GetOptions{})
	}
	if err != nil || !tenant.NeedsNotification(desired) {
		return ignoreNotFound(err)
	}
	secrets := c.clients.kube.CoreV1().Secrets(c.clients.namespace)
	secret, failure := secrets.Get(ctx, tenant.SecretName, metav1.GetOptions{})
	if failure == nil {
		failure = tenant.Notify(ctx, desired, secret)
	}
	return errors.Join(failure, c.writeStatus(ctx, desired, tenant.Notifier, tenant.NotifiedStatus(desired, failure)))
}

// writeStatus applies the fields of the status that a field manager has, if they change.
// The UID keeps it from writing to another object of the same name.
func (c *Controller) writeStatus(
	ctx context.Context, of *myv1.NamespacePlus, manager string, status *tenant.Status,
) error {
	if status == nil {
		return nil
	}
	object := applyv1.NamespacePlus(of.Name).WithUID(of.UID).WithStatus(status)
	_, err := c.clients.tenants.MygroupV1().NamespacePluses().
		ApplyStatus(ctx, object, metav1.ApplyOptions{FieldManager: manager, Force: true})
	return ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

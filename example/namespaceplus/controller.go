package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	myv1 "github.com/samplecrd/network-controller/example/namespaceplus/apis/mygroup/v1"
	applyv1 "github.com/samplecrd/network-controller/example/namespaceplus/client/applyconfiguration/mygroup/v1"
	informersv1 "github.com/samplecrd/network-controller/example/namespaceplus/client/informers/externalversions/mygroup/v1"
	listers "github.com/samplecrd/network-controller/example/namespaceplus/client/listers/mygroup/v1"
	"github.com/samplecrd/network-controller/example/namespaceplus/tenant"
	"github.com/samplecrd/network-controller/pkg/glass"
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
	clients
	namespace     string // of the controller
	lister        listers.NamespacePlusLister
	owned         map[tenant.Kind]kubeinformers.GenericInformer // the metadata of what tenants have
	synced        []cache.DoneChecker
	queue         queue // names of NamespacePluses
	notifications queue // apart, so that no tenant waits for a receiver
}

// queue is a queue of names, which the debug page shows.
type queue struct {
	workqueue.TypedRateLimitingInterface[string]
	shown *glass.Controller
}

// patience is how long Run waits for the caches.
const patience = 10 * time.Second

// NewController returns a Controller. Start the informers after it.
func NewController(
	c clients, namespace string, tenants informersv1.NamespacePlusInformer,
	owned map[tenant.Kind]kubeinformers.GenericInformer,
) (*Controller, error) {
	newQueue := func(name string) queue {
		backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[string](200*time.Millisecond, time.Minute)
		config := workqueue.TypedRateLimitingQueueConfig[string]{Name: name}
		next := workqueue.NewTypedRateLimitingQueueWithConfig(backoff, config)
		shown := c.page.Controller(glass.Config{Name: name})
		return queue{glass.Queue(shown, next, backoff), shown}
	}
	controller := &Controller{
		clients: c, namespace: namespace, lister: tenants.Lister(), owned: owned,
		queue: newQueue("NamespacePluses"), notifications: newQueue("Notifications"),
	}
	errs := []error{controller.watch("namespacepluses", tenants.Informer(), func(changed metav1.Object) {
		controller.queue.Add(changed.GetName()) // also after an own write: the sync finds nothing to do
		controller.notifications.Add(changed.GetName())
	})}
	for kind, informer := range owned {
		// If somebody removes the label, the object leaves the watch, which is a deletion with
		// the old label.
		resource := tenant.Resource(kind).Resource
		errs = append(errs, controller.watch(resource, informer.Informer(), func(changed metav1.Object) {
			controller.queue.Add(changed.GetLabels()[myv1.LabelTenant])
		}))
	}
	return controller, errors.Join(errs...)
}

// watch calls a function with each object of an informer that changes, before and after.
func (c *Controller) watch(resource string, informer cache.SharedIndexInformer, add func(metav1.Object)) error {
	handle := func(object any) {
		if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = missed.Obj
		}
		if object, ok := object.(metav1.Object); ok {
			add(object)
		}
	}
	registration, err := c.page.Informer(resource, informer).AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: handle, UpdateFunc: func(before, after any) { handle(before); handle(after) }, DeleteFunc: handle,
	})
	if err != nil {
		return fmt.Errorf("adding event handlers: %w", err)
	}
	c.synced = append(c.synced, registration.HasSyncedChecker())
	return nil
}

// Run waits for the caches and runs workers until the context ends. A request that is cut
// off then does no harm: the next process sends it again. A cache that is still empty after
// a while is a problem of each tenant, whose status says why (see observe).
func (c *Controller) Run(ctx context.Context, workers int) {
	logger := klog.FromContext(ctx)
	logger.Info("Waiting for the informer caches to sync")
	waiting, cancel := context.WithTimeout(ctx, patience)
	cache.WaitFor(waiting, "", c.synced...)
	cancel()
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
}

// runWorker processes names until the queue is shut down.
func runWorker(ctx context.Context, queue queue, handle func(context.Context, string) error) {
	for {
		name, shutdown := queue.Get()
		if shutdown {
			return
		}
		syncing, end := queue.shown.Sync(ctx, name)
		err := handle(syncing, name)
		if end(err); err != nil && ctx.Err() == nil {
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
	desired, err := c.lister.Get(name)
	if err != nil || desired.DeletionTimestamp != nil {
		return ignoreNotFound(err) // the garbage collector deletes the namespace, if that is requested
	}
	err = c.reconcile(ctx, desired)
	return errors.Join(err, c.writeStatus(ctx, tenant.FieldManager, tenant.Ready(desired, err)))
}

// reconcile makes what exists match the spec. What is dropped goes first: it may be a
// permission.
func (c *Controller) reconcile(ctx context.Context, desired *myv1.NamespacePlus) error {
	objects, err := tenant.Objects(desired)
	if err != nil {
		return err
	}
	observed, err := c.observe(ctx, desired.Name)
	if err != nil {
		return err
	}
	if err := c.ensureNamespace(ctx, desired, objects[0], observed); err != nil {
		return err
	}
	var errs []error
	for id, object := range observed.Dropped(objects) {
		errs = append(errs, c.delete(ctx, id.Kind, object))
	}
	for _, object := range objects {
		own := observed[tenant.IDOf(object)]
		if tenant.IsUpToDate(object, own) || own == nil && errors.Join(errs...) != nil {
			continue // nobody gets anything new while a limit is missing
		}
		errs = append(errs, c.apply(ctx, object, own != nil || desired.Spec.Adopt))
	}
	return errors.Join(errs...)
}

// observe reads what a tenant has from the caches.
func (c *Controller) observe(ctx context.Context, name string) (tenant.Observed, error) {
	observed, selector := tenant.Observed{}, labels.SelectorFromSet(labels.Set{myv1.LabelTenant: name})
	for kind, informer := range c.owned {
		if !informer.Informer().HasSynced() { // a list says why
			_, err := c.metadata.Resource(tenant.Resource(kind)).List(ctx, metav1.ListOptions{Limit: 1})
			return nil, cmp.Or(err, fmt.Errorf("the cache of each %s is still empty", kind.Kind))
		}
		objects, err := informer.Lister().ByNamespace(name).List(selector)
		if kind == tenant.Namespace {
			objects = make([]runtime.Object, 1)
			objects[0], err = informer.Lister().Get(name)
		}
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading each %s from the cache: %w", kind.Kind, err)
		}
		for _, object := range objects {
			object := object.(metav1.Object)
			observed[tenant.ID{Kind: kind, Name: object.GetName()}] = object
		}
	}
	return observed, nil
}

// ensureNamespace makes sure that there is a namespace which may be changed. An apply
// would take over one that exists; a create fails.
func (c *Controller) ensureNamespace(
	ctx context.Context, desired *myv1.NamespacePlus, object *unstructured.Unstructured, observed tenant.Observed,
) error {
	id, namespaces := tenant.IDOf(object), c.objects.Resource(tenant.Resource(tenant.Namespace))
	if observed[id] == nil {
		created, err := namespaces.Create(ctx, object, metav1.CreateOptions{FieldManager: tenant.FieldManager})
		if apierrors.IsAlreadyExists(err) {
			// It is not ours, or has lost its label, or the cache does not have it yet.
			created, err = namespaces.Get(ctx, desired.Name, metav1.GetOptions{})
		}
		if err != nil {
			return err
		}
		observed[id] = created
	}
	return tenant.CheckNamespace(desired, observed[id])
}

// apply writes all fields of an object. Without force, the API server rejects a value
// that differs from that of another field manager.
func (c *Controller) apply(ctx context.Context, object *unstructured.Unstructured, force bool) error {
	name, namespace := object.GetName(), object.GetNamespace()
	options := metav1.ApplyOptions{FieldManager: tenant.FieldManager, Force: force}
	resource := c.objects.Resource(tenant.Resource(object.GroupVersionKind())).Namespace(namespace)
	if _, err := resource.Apply(ctx, name, object, options); err != nil {
		return fmt.Errorf("applying %s %s: %w", object.GetKind(), name, err)
	}
	klog.FromContext(ctx).Info("Applied", "kind", object.GetKind(), "namespace", namespace, "name", name)
	return nil
}

// delete deletes an object, but not another one that has its name meanwhile.
func (c *Controller) delete(ctx context.Context, kind tenant.Kind, object metav1.Object) error {
	name, namespace, uid := object.GetName(), object.GetNamespace(), object.GetUID()
	err := c.objects.Resource(tenant.Resource(kind)).Namespace(namespace).Delete(ctx, name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if ignoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s %s: %w", kind.Kind, name, err)
	}
	klog.FromContext(ctx).Info("Deleted", "kind", kind.Kind, "namespace", namespace, "name", name)
	return nil
}

// notify sends the notification of one tenant, if it is needed. A request cannot be taken
// back: that it is needed is read once more, from the API server.
func (c *Controller) notify(ctx context.Context, name string) error {
	desired, err := c.lister.Get(name)
	if err == nil && tenant.NeedsNotification(desired) {
		desired, err = c.tenants.MygroupV1().NamespacePluses().Get(ctx, name, metav1.GetOptions{})
	}
	if err != nil || !tenant.NeedsNotification(desired) {
		return ignoreNotFound(err)
	}
	secret, failure := c.kube.CoreV1().Secrets(c.namespace).Get(ctx, tenant.SecretName, metav1.GetOptions{})
	if failure == nil {
		failure = tenant.Notify(ctx, desired, secret)
	}
	return errors.Join(failure, c.writeStatus(ctx, tenant.Notifier, tenant.Notified(desired, failure)))
}

// writeStatus applies the fields of the status that a field manager has.
func (c *Controller) writeStatus(
	ctx context.Context, manager string, object *applyv1.NamespacePlusApplyConfiguration,
) error {
	if object == nil {
		return nil // no change
	}
	options := metav1.ApplyOptions{FieldManager: manager, Force: true}
	_, err := c.tenants.MygroupV1().NamespacePluses().ApplyStatus(ctx, object, options)
	return ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

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
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	myv1 "github.com/samplecrd/network-controller/example/namespaceplus/apis/mygroup/v1"
	informers "github.com/samplecrd/network-controller/example/namespaceplus/client/informers/externalversions"
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
	lister    listers.NamespacePlusLister
	owned     map[tenant.Kind]cache.SharedIndexInformer // the metadata of what tenants have
	informers []cache.SharedIndexInformer               // of all of these
	queues    []queue
}

// queue is a queue of names, which the debug page shows, and what to do with them.
type queue struct {
	workqueue.TypedRateLimitingInterface[string]
	shown  *glass.Controller
	handle func(context.Context, string) error
}

const workers = 4 // of each queue

// NewController returns a Controller of tenants that get objects of some kinds.
func NewController(c clients, kinds []tenant.Kind) (*Controller, error) {
	tenants := informers.NewSharedInformerFactory(c.tenants, 0).Mygroup().V1().NamespacePluses()
	controller := &Controller{clients: c, lister: tenants.Lister(), owned: map[tenant.Kind]cache.SharedIndexInformer{}}
	syncs := controller.newQueue("NamespacePluses", controller.syncHandler)
	notifications := controller.newQueue("Notifications", controller.notify) // no tenant waits for a receiver
	errs := []error{controller.watch("namespacepluses", tenants.Informer(), syncs, notifications)}
	labeled := func(options *metav1.ListOptions) { options.LabelSelector = myv1.LabelTenant }
	for _, kind := range kinds {
		resource, index := tenant.Resource(kind), cache.Indexers{cache.NamespaceIndex: tenantOf}
		informer := metadatainformer.NewFilteredMetadataInformer(c.metadata, resource, "", 0, index, labeled).Informer()
		controller.owned[kind] = informer
		errs = append(errs, controller.watch(resource.Resource, informer, syncs))
	}
	return controller, errors.Join(errs...)
}

func (c *Controller) newQueue(name string, handle func(context.Context, string) error) queue {
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[string](200*time.Millisecond, time.Minute)
	config := workqueue.TypedRateLimitingQueueConfig[string]{Name: name}
	next := workqueue.NewTypedRateLimitingQueueWithConfig(backoff, config)
	shown := c.page.Controller(glass.Config{Name: name})
	c.queues = append(c.queues, queue{glass.Queue(shown, next, backoff), shown, handle})
	return c.queues[len(c.queues)-1]
}

// tenantOf is an index function. What is not in the namespace of a tenant has the tenant's name.
func tenantOf(object any) ([]string, error) {
	name, err := cache.DeletionHandlingObjectToName(object)
	return []string{cmp.Or(name.Namespace, name.Name)}, err
}

// watch adds the tenant to queues after each event of an informer, also after an own write:
// the sync finds nothing to do. An object that loses the label is deleted from the watch.
func (c *Controller) watch(resource string, informer cache.SharedIndexInformer, queues ...queue) error {
	add := func(object any) {
		names, _ := tenantOf(object) // all that informers pass has a name
		for _, queue := range queues {
			queue.Add(names[0])
		}
	}
	c.informers = append(c.informers, informer)
	_, err := c.page.Informer(resource, informer).AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, after any) { add(after) }, DeleteFunc: add,
	})
	return err
}

// Run runs the informers and, when their caches are filled, workers until the context ends.
// A request that is cut off then does no harm: the next process sends it again. A cache that
// is still empty after a while is a problem of each tenant, whose status says why (see observe).
func (c *Controller) Run(ctx context.Context) {
	var running sync.WaitGroup
	var synced []cache.DoneChecker
	for _, informer := range c.informers {
		running.Go(func() { informer.RunWithContext(ctx) })
		synced = append(synced, informer.HasSyncedChecker())
	}
	klog.FromContext(ctx).Info("Waiting for the informer caches to sync")
	waiting, cancel := context.WithTimeout(ctx, 10*time.Second)
	cache.WaitFor(waiting, "", synced...)
	cancel()
	klog.FromContext(ctx).Info("Starting workers", "count", workers)
	for _, queue := range c.queues {
		for range workers {
			running.Go(func() { queue.work(ctx) })
		}
	}
	<-ctx.Done()
	for _, queue := range c.queues {
		queue.ShutDown()
	}
	running.Wait()
}

// work handles names until the queue is shut down.
func (q queue) work(ctx context.Context) {
	for {
		name, shutdown := q.Get()
		if shutdown {
			return
		}
		syncing, end := q.shown.Sync(ctx, name)
		err := q.handle(syncing, name)
		if end(err); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Retrying with backoff", "namespaceplus", name)
			q.AddRateLimited(name)
		} else {
			q.Forget(name)
		}
		q.Done(name)
	}
}

// syncHandler gives one tenant what its NamespacePlus requests. If nothing differs, it
// sends no request.
func (c *Controller) syncHandler(ctx context.Context, name string) error {
	desired, err := c.lister.Get(name)
	if err != nil || desired.DeletionTimestamp != nil {
		return utilerrors.FilterOut(err, apierrors.IsNotFound) // the garbage collector deletes what is to be deleted
	}
	return c.report(ctx, desired, myv1.ConditionReady, c.reconcile(ctx, desired))
}

// reconcile makes what exists match the spec. What is dropped goes first: it may be a
// permission.
func (c *Controller) reconcile(ctx context.Context, desired *myv1.NamespacePlus) error {
	objects, invalid := tenant.Objects(desired)
	observed, err := c.observe(ctx, desired.Name)
	if err := errors.Join(invalid, err); err != nil {
		return err
	}
	namespace := tenant.IDOf(objects[0])
	if observed[namespace] == nil {
		if observed[namespace], err = c.createNamespace(ctx, objects[0]); err != nil {
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
		klog.FromContext(ctx).Info("Deleting", "kind", id.Kind.Kind, "object", klog.KObj(object))
		thisOne := metav1.NewPreconditionDeleteOptions(string(object.GetUID())) // another may have its name meanwhile
		err := c.objects.Resource(tenant.Resource(id.Kind)).Namespace(object.GetNamespace()).Delete(ctx, id.Name, *thisOne)
		errs = append(errs, utilerrors.FilterOut(err, apierrors.IsNotFound))
	}
	for _, object := range objects {
		id := tenant.IDOf(object)
		own := observed[id]
		if tenant.IsUpToDate(object, own) || own == nil && errors.Join(errs...) != nil {
			continue // nobody gets anything new while a limit is missing
		}
		klog.FromContext(ctx).Info("Applying", "kind", id.Kind.Kind, "object", klog.KObj(object))
		// Without force, the API server rejects a value that differs from that of another manager.
		options := metav1.ApplyOptions{FieldManager: tenant.FieldManager, Force: own != nil || desired.Spec.Adopt}
		client := c.objects.Resource(tenant.Resource(id.Kind)).Namespace(object.GetNamespace())
		if _, err := client.Apply(ctx, id.Name, object, options); err != nil {
			errs = append(errs, fmt.Errorf("applying %s %s: %w", id.Kind.Kind, id.Name, err))
		}
	}
	return errors.Join(errs...)
}

// observe reads what a tenant has from the caches.
func (c *Controller) observe(ctx context.Context, name string) (tenant.Observed, error) {
	observed := tenant.Observed{}
	for kind, informer := range c.owned {
		if !informer.HasSynced() { // a list says why
			_, err := c.metadata.Resource(tenant.Resource(kind)).List(ctx, metav1.ListOptions{Limit: 1})
			return nil, cmp.Or(err, fmt.Errorf("the cache of each %s is still empty", kind.Kind))
		}
		objects, err := informer.GetIndexer().ByIndex(cache.NamespaceIndex, name)
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

// createNamespace returns the namespace of a tenant. An apply would take over one of somebody
// else; a create fails.
func (c *Controller) createNamespace(ctx context.Context, object *unstructured.Unstructured) (metav1.Object, error) {
	namespaces := c.objects.Resource(tenant.Resource(tenant.Namespace))
	created, err := namespaces.Create(ctx, object, metav1.CreateOptions{FieldManager: tenant.FieldManager})
	if apierrors.IsAlreadyExists(err) { // not ours, or it has lost its label, or is not in the cache yet
		return namespaces.Get(ctx, object.GetName(), metav1.GetOptions{})
	}
	return created, err
}

// notify sends the notification of one tenant, if it is needed. A request cannot be taken
// back: that it is needed is read once more, from the API server.
func (c *Controller) notify(ctx context.Context, name string) error {
	desired, err := c.lister.Get(name)
	if err == nil && tenant.NeedsNotification(desired) {
		desired, err = c.tenants.MygroupV1().NamespacePluses().Get(ctx, name, metav1.GetOptions{})
	}
	if err != nil || !tenant.NeedsNotification(desired) {
		return utilerrors.FilterOut(err, apierrors.IsNotFound)
	}
	secret, failure := c.kube.CoreV1().Secrets(tenant.SecretNamespace).Get(ctx, tenant.SecretName, metav1.GetOptions{})
	if failure == nil {
		failure = tenant.Notify(ctx, desired, secret)
	}
	return c.report(ctx, desired, myv1.ConditionNotified, failure)
}

// report writes a condition into the status, if it changes. Each condition has a field
// manager of its own, so neither of their writers needs the version of the other.
func (c *Controller) report(ctx context.Context, desired *myv1.NamespacePlus, condition string, failure error) error {
	object := tenant.Report(desired, condition, failure)
	if object == nil {
		return failure
	}
	options := metav1.ApplyOptions{FieldManager: tenant.FieldManager + "-" + condition, Force: true}
	_, err := c.tenants.MygroupV1().NamespacePluses().ApplyStatus(ctx, object, options)
	return errors.Join(failure, utilerrors.FilterOut(err, apierrors.IsNotFound))
}

package main

import (
	"context"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/samplecrd/network-controller/docs/learn/code/14-greeting/api"
)

const (
	controllerName = "greeting-controller"
	labelManagedBy = "app.kubernetes.io/managed-by"
)

// Controller keeps a ConfigMap of the same name for each Greeting.
type Controller struct {
	client     kubernetes.Interface
	greetings  cache.Store
	configMaps corelisters.ConfigMapLister
	synced     []cache.DoneChecker
	queue      workqueue.TypedRateLimitingInterface[cache.ObjectName] // of Greetings
}

// NewController returns a Controller. Two kinds of events add the key of a Greeting: its
// own, and those of its ConfigMap.
func NewController(client kubernetes.Interface, greetings cache.TypedSharedIndexInformer[*api.Greeting], configMaps coreinformers.TypedConfigMapInformer) (*Controller, error) {
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName](),
		workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "Greetings"})
	own, err := greetings.AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[*api.Greeting]{
		AddFunc:    func(greeting *api.Greeting) { queue.Add(cache.MetaObjectToName(greeting)) },
		UpdateFunc: func(_, greeting *api.Greeting) { queue.Add(cache.MetaObjectToName(greeting)) },
		// No DeleteFunc: the garbage collector deletes the ConfigMap with its owner.
	})
	if err != nil {
		return nil, fmt.Errorf("adding event handlers for Greetings: %w", err)
	}
	addOwner := func(configMap *corev1.ConfigMap) {
		if owner := metav1.GetControllerOf(configMap); owner != nil && owner.Kind == "Greeting" {
			queue.Add(cache.NewObjectName(configMap.Namespace, owner.Name))
		}
	}
	owned, err := configMaps.TypedInformer().AddTypedEventHandler(coreinformers.ConfigMapHandlerFuncs{
		UpdateFunc: func(_, configMap *corev1.ConfigMap) { addOwner(configMap) },
		DeleteFunc: func(deleted coreinformers.DeletedConfigMap) {
			if deleted.OptionalObj != nil {
				addOwner(deleted.OptionalObj)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("adding event handlers for ConfigMaps: %w", err)
	}
	return &Controller{
		client: client, greetings: greetings.GetStore(), configMaps: configMaps.Lister(), queue: queue,
		synced: []cache.DoneChecker{own.HasSyncedChecker(), owned.HasSyncedChecker()},
	}, nil
}

// Run waits for the caches and runs workers until the context ends.
func (c *Controller) Run(ctx context.Context, workers int) error {
	klog.FromContext(ctx).Info("Waiting for the caches to sync")
	if !cache.WaitFor(ctx, "", c.synced...) {
		return nil // stopped
	}
	klog.FromContext(ctx).Info("Starting workers", "count", workers)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for c.processNextWorkItem(ctx) {
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
	running.Wait()
	return nil
}

func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if err := c.syncHandler(ctx, key); err != nil {
		klog.FromContext(ctx).Error(err, "Sync failed; retrying with backoff", "greeting", key)
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	return true
}

// syncHandler makes the ConfigMap match one Greeting.
func (c *Controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	object, exists, err := c.greetings.GetByKey(key.String())
	if err != nil || !exists {
		return err
	}
	desired := desiredConfigMap(object.(*api.Greeting))
	actual, err := c.configMaps.ConfigMaps(key.Namespace).Get(key.Name)
	client := c.client.CoreV1().ConfigMaps(key.Namespace)
	switch {
	case apierrors.IsNotFound(err): // if it exists without our label, the API server rejects this
		_, err = client.Create(ctx, desired, metav1.CreateOptions{FieldManager: controllerName})
	case err == nil && !metav1.IsControlledBy(actual, object.(*api.Greeting)):
		err = fmt.Errorf("the ConfigMap %s belongs to another object: delete it, or use another name", key)
	case err == nil && !maps.Equal(actual.Data, desired.Data):
		changed := actual.DeepCopy() // never change what a lister returns
		changed.Data = desired.Data
		_, err = client.Update(ctx, changed, metav1.UpdateOptions{FieldManager: controllerName}) // rejected if it is not the latest version
	}
	return err
}

// desiredConfigMap returns the ConfigMap for a Greeting, as a pure function.
func desiredConfigMap(greeting *api.Greeting) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: greeting.Namespace, Name: greeting.Name,
			Labels:          map[string]string{labelManagedBy: controllerName},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(greeting, api.GroupVersion.WithKind("Greeting"))},
		},
		Data: map[string]string{"text": textFor(greeting.Spec)},
	}
}

func textFor(spec api.GreetingSpec) string {
	return "Hello, " + spec.Person + "!"
}

// Package deployments is a second, smaller controller: it gives a Deployment a Network
// of the same name, if the annotations of the Deployment request one. This file is the
// pattern of controller.go once more. The two controllers share the cache of Networks,
// and nothing else: what one of them writes, the other one receives as an event.
package deployments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	"github.com/samplecrd/network-controller/pkg/kube"
	"github.com/samplecrd/network-controller/pkg/observe"
	"github.com/samplecrd/network-controller/pkg/queue"
	"github.com/samplecrd/network-controller/pkg/store"
)

// Resource is the resource that the informers watch.
var Resource = appsv1.SchemeGroupVersion.WithResource("deployments")

// Config has what a Controller consists of.
type Config struct {
	// Informers receive the metadata of Deployments. They must not have been started.
	Informers store.ByNamespace[cache.SharedIndexInformer]
	Networks  *store.Networks
	Metadata  metadata.Interface
	Client    clientset.Interface
	Events    record.EventRecorder
	Observer  observe.Observer
	Options   Options
}

// Controller makes the Networks of Deployments match their annotations. A key is the
// namespace and name of both.
type Controller struct {
	Config
	queue *queue.Queue
}

// New returns a Controller.
func New(config Config) (*Controller, error) {
	onWatchError := kube.Resource{Plural: "Deployments"}.LogWatchError(" (not required with -deployment-networks=none)")
	for _, informer := range config.Informers {
		if err := informer.SetTransform(onlyAnnotations); err != nil {
			return nil, fmt.Errorf("setting the transform of the informer of Deployments: %w", err)
		}
		if err := informer.SetWatchErrorHandlerWithContext(onWatchError); err != nil {
			return nil, fmt.Errorf("setting the watch error handler of the informer of Deployments: %w", err)
		}
	}
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](200*time.Millisecond, 2*time.Minute)
	return &Controller{Config: config, queue: queue.New("Deployments", backoff, config.Observer)}, nil
}

// Run processes keys with a number of workers until the context ends. It does not wait
// for the informers: a Deployment that has not been received yet has no effect.
func (c *Controller) Run(ctx context.Context, workers int) error {
	if err := c.addHandlers(klog.FromContext(ctx)); err != nil && ctx.Err() == nil {
		return err
	}
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { c.runWorker(ctx) })
	}
	<-ctx.Done()
	c.queue.ShutDown()
	running.Wait()
	return nil
}

func (c *Controller) addHandlers(logger klog.Logger) error {
	for _, informer := range c.Informers {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(deployment any, isInInitialList bool) {
				add := c.queue.Add
				if isInInitialList {
					add = c.queue.AddInBackground
				}
				add(cache.MetaObjectToName(deployment.(metav1.Object)))
			},
			UpdateFunc: func(before, after any) {
				deployment := after.(*metav1.PartialObjectMetadata)
				if requestChanged(before.(*metav1.PartialObjectMetadata), deployment) {
					c.queue.Add(cache.MetaObjectToName(deployment))
				}
			},
		}) // a deletion needs no sync: the garbage collector deletes the Network
		if err != nil {
			return fmt.Errorf("adding an event handler for Deployments: %w", err)
		}
	}
	return c.Networks.AddUnobserved(logger, store.Handlers{
		AddFunc: func(network *samplecrdv1.Network, _ bool) {
			if key := cache.MetaObjectToName(network); c.concerns(key) {
				c.queue.AddInBackground(key)
			}
		},
		UpdateFunc: func(before, after *samplecrdv1.Network) {
			if key := cache.MetaObjectToName(after); networkChanged(before, after) && c.concerns(key) {
				c.queue.Add(key)
			}
		},
		DeleteFunc: func(deleted cache.DeletedObject[*samplecrdv1.Network]) {
			if key := deleted.GetObjectName(); c.concerns(key) {
				c.queue.Add(key)
			}
		},
	})
}

// concerns reports whether a Network has the name of a Deployment. Most have not.
func (c *Controller) concerns(key cache.ObjectName) bool {
	deployment, err := c.get(key)
	return err == nil && deployment != nil
}

func (c *Controller) runWorker(ctx context.Context) {
	for c.processNextWorkItem(ctx) {
	}
}

// processNextWorkItem waits for a key and syncs it. It returns false when the queue is
// shut down.
func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown || c.queue.ShuttingDown() {
		return false
	}
	defer c.queue.Done(key)

	ctx, end := c.queue.Begin(ctx, key) // for logs, traces and the watchdog
	err := c.syncHandler(ctx, key)
	c.handleErr(ctx, key, err)
	end(err)
	return true
}

// handleErr adds a key again whose sync failed, after a delay that grows.
func (c *Controller) handleErr(ctx context.Context, key cache.ObjectName, err error) {
	switch logger := klog.FromContext(ctx); {
	case err == nil:
		c.queue.Forget(key)
		return
	case apierrors.IsConflict(err), errors.Is(err, store.ErrOutdated):
		logger.Info("Sync of a Deployment ended early; retrying with backoff", "reason", err.Error())
	case ctx.Err() == nil:
		logger.Error(err, "Sync of a Deployment failed; retrying with backoff", "failures", c.queue.NumRequeues(key)+1)
	}
	c.queue.AddRateLimited(key)
}

// repeatProblem is the time until an event that reports a problem is repeated: events
// expire after an hour.
const repeatProblem = 30 * time.Minute

// syncHandler makes the Network of one Deployment match its annotations.
func (c *Controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	deployment, err := c.get(key)
	switch {
	case err != nil:
		return fmt.Errorf("reading the Deployment: %w", err)
	case deployment == nil:
		return nil
	}
	network, err := c.Networks.Get(key)
	if err != nil {
		return fmt.Errorf("reading the Network of a Deployment: %w", err)
	}
	action, problem := decide(deployment, c.Options.requestOf(deployment), network)
	if action == keep {
		return nil
	}
	if action != reportOnly {
		if problem, err = c.apply(ctx, action, deployment, network); err != nil || problem == "" {
			return err // the event of the write adds the key again
		}
	}
	c.warn(deployment, problem)
	c.queue.AddAfter(key, repeatProblem)
	return nil
}

// get returns a Deployment, or nil if it does not exist or is not watched.
func (c *Controller) get(key cache.ObjectName) (*metav1.PartialObjectMetadata, error) {
	informer, watched := c.Informers.For(key.Namespace)
	if !watched || slices.Contains(c.Options.ExcludedNamespaces, key.Namespace) {
		return nil, nil
	}
	object, exists, err := informer.GetStore().GetByKey(key.String())
	if err != nil || !exists {
		return nil, err
	}
	return object.(*metav1.PartialObjectMetadata), nil
}

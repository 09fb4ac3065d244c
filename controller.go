package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/deployments"
	"github.com/samplecrd/network-controller/pkg/drift"
	"github.com/samplecrd/network-controller/pkg/fairqueue"
	"github.com/samplecrd/network-controller/pkg/instrument"
	"github.com/samplecrd/network-controller/pkg/reconcile"
	"github.com/samplecrd/network-controller/pkg/store"
)

// Controller makes Neutron, the network service of OpenStack, match the Network
// objects of a Kubernetes cluster.
//
// This file is the pattern that Kubernetes controllers have in common. It follows
// the life of a key, which is the namespace and name of a Network:
//
//	informer ──event──▶ handler ──key──▶ work queue ──key──▶ worker ──▶ syncHandler
//	                                         ▲                              │
//	                                         └───────── handleErr ◀─────────┘
//
// An informer lists and watches the Networks and keeps them in a cache. When one
// changes, an event handler adds its key to a queue, and does nothing else. A
// worker takes the key out and calls syncHandler. That function does not know what
// happened: it compares the desired state with the actual state and removes the
// difference. So a lost or repeated event does no harm. If a sync fails, handleErr
// adds the key again.
//
// A deletion arrives as an update: the finalizer keeps the object until a sync has
// deleted its network. Then the object disappears, and its key is added a last time.
type Controller struct {
	networks    *store.Networks          // the cache that the informers fill, one for each watched namespace
	queue       *instrument.Queue        // the keys of the Networks that need a sync
	reconciler  *reconcile.Reconciler    // makes Neutron match one Network
	drift       *drift.Detector          // adds the keys of Networks that changed in Neutron
	deployments *deployments.Deployments // creates Networks for Deployments
	workers     sync.WaitGroup
}

// NewController returns a Controller. Start the informers after it, and before
// WarmUp (see main.go).
func NewController(
	networks *store.Networks,
	reconciler *reconcile.Reconciler,
	drift *drift.Detector,
	deployments *deployments.Deployments,
	observers instrument.Observers,
) *Controller {
	// The queue holds a key once, however often it is added, and never gives a key
	// to two workers at a time. What a person changed goes first, and each namespace
	// has its turn. Its rate limiter delays keys whose sync failed. Its name labels its
	// metrics.
	queue := fairqueue.New("Networks", reconcile.Backoff(), instrument.ObserveNamespaces)

	return &Controller{
		networks:    networks,
		queue:       instrument.NewQueue(queue, observers),
		reconciler:  reconciler,
		drift:       drift,
		deployments: deployments,
	}
}

// WarmUp waits until the informers have filled their caches, and a bounded time for the
// first list of Neutron's state. Both caches stay up to date until the context ends. A
// replica that waits to become the leader does only this. WarmUp does not wait for the
// namespaces to skip, which the controller may not list. It returns false if the context
// ends first.
func (c *Controller) WarmUp(ctx context.Context, skipNamespaces ...string) bool {
	logger := klog.FromContext(ctx)
	logger.Info("Waiting for the informer caches to sync")
	if !c.networks.WaitForSync(ctx, skipNamespaces...) {
		return false
	}
	logger.Info("Filling the cache of Neutron's state")
	c.drift.Start(ctx, c.queue.AddInBackgroundBecause("drift")) // with a cause for traces
	return ctx.Err() == nil
}

// Run reconciles Networks with a number of workers until the context ends. Then
// each worker finishes the request that it is waiting for, and Run returns. If that
// takes longer than the timeout, Run cancels the requests and returns an error.
// Only one replica may run at a time.
func (c *Controller) Run(ctx context.Context, workers int, timeout time.Duration) error {
	logger := klog.FromContext(ctx)

	// From now on, events add keys. An informer replays its cache to a new handler:
	// so every existing Network is added, too. When ctx ends, a sync stops before its
	// next step.
	c.reconciler.Start(ctx)
	err := errors.Join(c.networks.AddHandlers(logger, c.handlers()), c.deployments.Start(c.queue.AddBecause("Deployment"), c.queue.AddInBackground))
	if err != nil && ctx.Err() == nil { // an informer that has stopped rejects handlers
		return err
	}

	// Requests outlive ctx, so that they can finish.
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	logger.Info("Starting workers", "count", workers)
	for range workers {
		c.workers.Go(func() { c.runWorker(requests) })
	}

	<-ctx.Done()
	logger.Info("Stopping; waiting for requests in flight", "timeout", timeout)
	c.queue.ShutDown()
	timer := time.AfterFunc(timeout, cancel)
	c.workers.Wait()
	c.drift.Stop()
	if !timer.Stop() {
		return fmt.Errorf("shutdown timed out after %v: requests to Neutron were canceled; the next process looks up what became of them", timeout)
	}
	logger.Info("Stopped; no request is in flight")
	return nil
}

// handlers returns the event handlers for Networks. They only add keys: a slow
// handler would delay all later events.
func (c *Controller) handlers() store.Handlers {
	return store.Handlers{
		AddFunc: func(network *samplecrdv1.Network, isInInitialList bool) {
			if isInInitialList { // no person waits for it, unlike for a new one
				c.queue.AddInBackground(cache.MetaObjectToName(network))
				return
			}
			c.queue.Add(cache.MetaObjectToName(network))
		},
		UpdateFunc: func(before, after *samplecrdv1.Network) {
			if needsSync(before, after) {
				c.queue.AddAfter(cache.MetaObjectToName(after), c.reconciler.EditDelay(after)) // no delay, unless it is edited without end
			} else if delay, overwritten := c.reconciler.StatusOverwritten(before, after); overwritten {
				c.queue.AddAfter(cache.MetaObjectToName(after), delay) // correct it, but don't fight over it
			}
		},
		DeleteFunc: func(deleted cache.DeletedObject[*samplecrdv1.Network]) {
			c.queue.Add(deleted.GetObjectName())
		},
	}
}

// needsSync reports whether an update needs a sync. Most do not: they are the
// controller's own finalizer and status, or, after the informer has listed again, no
// change at all.
func needsSync(before, after *samplecrdv1.Network) bool {
	lostFinalizer := slices.Contains(before.Finalizers, samplecrdv1.Finalizer) && !slices.Contains(after.Finalizers, samplecrdv1.Finalizer)
	confirmed := slices.Equal(before.Finalizers, after.Finalizers) && before.Annotations[samplecrdv1.AnnotationCloud] != after.Annotations[samplecrdv1.AnnotationCloud]
	return before.UID != after.UID || // deleted and created again
		before.Generation != after.Generation || // another spec, or a deletion
		before.Annotations[samplecrdv1.AnnotationRetry] != after.Annotations[samplecrdv1.AnnotationRetry] ||
		lostFinalizer || confirmed ||
		deployments.OwnershipChanged(before, after)
}

// runWorker processes keys until the queue is shut down.
func (c *Controller) runWorker(ctx context.Context) {
	for c.processNextWorkItem(ctx) {
	}
}

// processNextWorkItem waits for a key and syncs it. It returns false when the queue
// is shut down. The keys that are left need no care: the next process adds all
// Networks.
func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown || c.queue.ShuttingDown() {
		return false
	}
	defer c.queue.Done(key) // if the key was added meanwhile, a worker gets it again now

	ctx, end := c.queue.Begin(ctx, key) // for logs, traces and the watchdog
	err := c.syncHandler(ctx, key)
	c.handleErr(ctx, key, err)
	end(err)
	return true
}

// syncHandler makes Neutron match one Network. It is never called twice at a time
// for the same key.
//
// A healthy Network passes through it without a request to Neutron and without a
// write to Kubernetes.
func (c *Controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	network, err := c.networks.Get(key) // nil if it does not exist
	if err != nil {
		return err
	}
	wrote, deploymentErr := c.deployments.Sync(ctx, key, network) // may write the Network for a Deployment
	if wrote {
		return nil // the event of that adds the key again
	}

	desired := c.reconciler.Desired(key, network)
	actual := c.reconciler.Observe(key, network, desired) // sends no request
	// Plan the next step and apply it, repeatedly, until no step is left.
	actual, outcome := c.reconciler.Apply(ctx, key, network, desired, actual)
	return c.reconciler.Report(ctx, key, network, desired, actual, outcome, deploymentErr)
}

// handleErr decides when a key is synced again, given the outcome of its sync. A
// change of the Network adds the key in any case.
func (c *Controller) handleErr(ctx context.Context, key cache.ObjectName, err error) {
	if err == nil {
		c.queue.Forget(key) // the next failure starts with a short delay
		return
	}
	switch retry, delay := c.reconciler.Retry(err); retry {
	case reconcile.RetrySoon: // it may pass any moment
		c.reconciler.LogFailure(ctx, key, err, "retrying with backoff", "failures", c.queue.NumRequeues(key)+1)
		c.queue.AddRateLimited(key)
	case reconcile.RetryLater: // Neutron requests a pause, or a user has to act first
		c.reconciler.LogFailure(ctx, key, err, "retrying later", "retryAfter", delay.Round(time.Second))
		c.queue.Forget(key)
		c.queue.AddAfter(key, delay)
	case reconcile.RetryNever: // only a change of the Network helps
		c.reconciler.LogFailure(ctx, key, err, "waiting for a change of the object")
		c.queue.Forget(key)
	}
}

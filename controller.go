package main

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/drift"
	"github.com/samplecrd/network-controller/pkg/observe"
	"github.com/samplecrd/network-controller/pkg/queue"
	"github.com/samplecrd/network-controller/pkg/reconcile"
	"github.com/samplecrd/network-controller/pkg/status"
	"github.com/samplecrd/network-controller/pkg/store"
)

// Controller makes Neutron, the network service of OpenStack, match the Network
// objects of a Kubernetes cluster.
//
// This file is the pattern that Kubernetes controllers have in common. It follows
// the life of a key, which is the namespace and name of a Network:
//
//	informer ──⑥─▶ handler ──⑦ key──▶ work queue ──⑧ key──▶ worker ──▶ syncHandler
//	                                      ▲                                │
//	                                      └────────── ⑫ handleErr ◀────────┘
//
// The numbers are those of docs/images/pattern.svg, which shows the informer, too.
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
	networks   *store.Networks       // the cache that the informers fill, one for each watched namespace
	queue      *queue.Queue          // the keys of the Networks that need a sync
	reconciler *reconcile.Reconciler // makes Neutron match one Network
	drift      *drift.Detector       // adds the keys of Networks that changed in Neutron
	workers    sync.WaitGroup
}

// NewController returns a Controller. Start the informers after it, and before
// WarmUp (see main.go).
func NewController(
	networks *store.Networks, reconciler *reconcile.Reconciler, drift *drift.Detector, observer observe.Observer,
) *Controller {
	return &Controller{
		networks: networks,
		// The queue holds a key once, however often it is added, and never gives a key
		// to two workers at a time. What a person changed goes first, and each namespace
		// has its turn. Its rate limiter delays keys whose sync failed. Its name labels
		// its metrics.
		queue:      queue.New("Networks", reconciler.Backoff(), observer),
		reconciler: reconciler,
		drift:      drift,
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
	err := c.networks.AddHandlers(logger, c.handlers())
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
		return fmt.Errorf("shutdown timed out after %v: requests to Neutron were canceled; "+
			"the next process looks up what became of them", timeout)
	}
	logger.Info("Stopped; no request is in flight")
	return nil
}

// handlers returns the event handlers for Networks. They only add keys: a slow
// handler would delay all later events.
func (c *Controller) handlers() store.Handlers { // ⑥
	return store.Handlers{
		AddFunc: func(network *samplecrdv1.Network, isInInitialList bool) {
			if isInInitialList { // no person waits for it, unlike for a new one
				c.queue.AddInBackground(cache.MetaObjectToName(network))
				return
			}
			c.queue.Add(cache.MetaObjectToName(network))
		},
		UpdateFunc: func(before, after *samplecrdv1.Network) {
			overwritten := !status.IsSame(before.Status, after.Status) && !c.reconciler.HasOwnStatus(after)
			if needsSync(before, after) || overwritten {
				c.queue.Add(cache.MetaObjectToName(after)) // ⑦
			}
		},
		DeleteFunc: func(deleted cache.DeletedObject[*samplecrdv1.Network]) {
			c.queue.Add(deleted.GetObjectName())
		},
	}
}

// needsSync reports whether an update needs a sync, whatever its status. Most do not: they
// are the controller's own finalizer and status, or, after the informer has listed again,
// no change at all.
func needsSync(before, after *samplecrdv1.Network) bool {
	had, has := reconcile.HasFinalizer(before), reconcile.HasFinalizer(after)
	return before.UID != after.UID || // deleted and created again
		before.Generation != after.Generation || // another spec, or a deletion
		had && !has ||
		had == has && !maps.Equal(before.Annotations, after.Annotations) // those that the controller reads
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
	key, shutdown := c.queue.Get() // ⑧
	if shutdown || c.queue.ShuttingDown() {
		return false
	}
	defer c.queue.Done(key) // if the key was added meanwhile, a worker gets it again now

	ctx, end := c.queue.Begin(ctx, key) // for logs and observers
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
	network, err := c.networks.Get(key) // ⑨ Lister: nil if it does not exist
	if err != nil {
		return err
	}
	pass, err := c.reconciler.Begin(key, network)
	if err != nil {
		return err // it is edited without end, and has to wait
	}
	pass.Observe()          // the desired and the actual state: sends no request
	pass.Apply(ctx)         // ⑩ plan the next step and apply it, until no step is left
	return pass.Report(ctx) // ⑪ the status and events, if they change
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
		c.queue.AddRateLimited(key) // ⑫
	case reconcile.RetryLater: // Neutron requests a pause, or a user has to act first
		c.reconciler.LogFailure(ctx, key, err, "retrying later", "retryAfter", delay.Round(time.Second))
		c.queue.Forget(key)
		c.queue.AddAfter(key, delay)
	case reconcile.RetryNever: // only a change of the Network helps
		c.reconciler.LogFailure(ctx, key, err, "waiting for a change of the object")
		c.queue.Forget(key)
	}
}

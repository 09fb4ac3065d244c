package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/samplecrd/network-controller/pkg/glass"
)

// The debug page sees a program on controller-runtime through three of its options: how it
// makes informers and queues, and what a reconciler is. These functions are all that it needs.

type (
	request     = ctrl.Request
	newInformer = func(
		toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer
	newQueue = func(string, workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request]
)

// informersOn shows the informers of the Manager's cache.
func informersOn(page *glass.Page) newInformer {
	return func(from toolscache.ListerWatcher, object runtime.Object, resync time.Duration,
		by toolscache.Indexers) toolscache.SharedIndexInformer {
		informer := toolscache.NewSharedIndexInformer(from, object, resync, by)
		kind, err := apiutil.GVKForObject(object, scheme.Scheme)
		if err != nil {
			return informer // its kind is unknown
		}
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		return page.Informer(resource.Resource, informer)
	}
}

// queuesOn shows the queues of the Manager's controllers.
func queuesOn(page *glass.Page) newQueue {
	return func(name string, limiter workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request] {
		config := workqueue.TypedRateLimitingQueueConfig[request]{Name: name}
		queue := workqueue.NewTypedRateLimitingQueueWithConfig(limiter, config)
		return glass.Queue(page.Controller(glass.Config{Name: name}), queue, limiter)
	}
}

// syncsOn shows the requests and the errors of a reconciler in its journeys.
func syncsOn(controller *glass.Controller, next reconcile.Func) reconcile.Func {
	return func(ctx context.Context, key request) (result ctrl.Result, err error) {
		ctx, end := controller.Sync(ctx, key)
		defer func() { end(err) }()
		return next(ctx, key)
	}
}

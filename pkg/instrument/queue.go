// Package instrument makes the work of a controller visible from outside. The log
// lines of one sync carry its key and an ID. Each sync is a trace that is linked
// to its causes. A watchdog finds syncs that are stuck. Requests to Neutron are
// measured.
package instrument

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/samplecrd/network-controller/pkg/metrics"
	"github.com/samplecrd/network-controller/pkg/tracing"
	"github.com/samplecrd/network-controller/pkg/watchdog"
)

// Queue is a work queue that remembers, if syncs are traced, what put each key
// into it.
type Queue struct {
	workqueue.TypedRateLimitingInterface[cache.ObjectName]
	watchdog *watchdog.Watchdog

	mu     sync.Mutex
	causes map[cache.ObjectName][]trace.Link // until Begin
}

// maxCauses bounds the causes of one sync.
const maxCauses = 8

// NewQueue wraps a work queue.
func NewQueue(queue workqueue.TypedRateLimitingInterface[cache.ObjectName], watchdog *watchdog.Watchdog) *Queue {
	return &Queue{TypedRateLimitingInterface: queue, watchdog: watchdog, causes: map[cache.ObjectName][]trace.Link{}}
}

// ObserveNamespaces records the number of namespaces that have a key in the queue.
func ObserveNamespaces(namespaces int) { metrics.QueueNamespaces.Set(float64(namespaces)) }

// Add adds a key because of an event.
func (q *Queue) Add(key cache.ObjectName) { q.AddBecause("event")(key) }

// AddAfter adds a key after a delay, or because of an event if there is none.
func (q *Queue) AddAfter(key cache.ObjectName, delay time.Duration) {
	if delay <= 0 {
		q.Add(key)
		return
	}
	q.TypedRateLimitingInterface.AddAfter(key, delay)
}

// AddBecause returns a function that adds a key for another cause.
func (q *Queue) AddBecause(cause string) func(cache.ObjectName) {
	return func(key cache.ObjectName) {
		_, span := tracing.Tracer.Start(context.Background(), cause, trace.WithAttributes(attribute.String("samplecrd.network", key.String())))
		span.End()
		q.addCause(key, span.SpanContext(), cause)
		q.TypedRateLimitingInterface.Add(key)
	}
}

// Begin begins the sync of a key that Get has returned. The context that it
// returns carries the logger and the trace of the sync. The function that it
// returns ends the sync.
func (q *Queue) Begin(ctx context.Context, key cache.ObjectName) (context.Context, func(error)) {
	id := fmt.Sprintf("%08x", rand.Uint32()) //nolint:gosec // it only distinguishes log lines
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("network", klog.KRef(key.Parts()), "sync", id))
	ctx, stop := q.watchdog.Watch(ctx, "the sync of "+key.String())
	ctx, span := tracing.Tracer.Start(ctx, "sync", trace.WithNewRoot(), trace.WithLinks(q.takeCauses(key)...),
		trace.WithAttributes(attribute.String("samplecrd.network", key.String()), attribute.String("samplecrd.sync", id)))
	return ctx, func(err error) {
		if err != nil {
			q.addCause(key, span.SpanContext(), "retry")
		}
		tracing.End(span, err)
		stop()
	}
}

func (q *Queue) addCause(key cache.ObjectName, span trace.SpanContext, cause string) {
	if !span.IsSampled() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	link := trace.Link{SpanContext: span, Attributes: []attribute.KeyValue{attribute.String("samplecrd.cause", cause)}}
	if links := q.causes[key]; len(links) < maxCauses {
		q.causes[key] = append(links, link)
	}
}

func (q *Queue) takeCauses(key cache.ObjectName) []trace.Link {
	q.mu.Lock()
	defer q.mu.Unlock()
	links := q.causes[key]
	delete(q.causes, key)
	return links
}

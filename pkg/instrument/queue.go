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
	"github.com/samplecrd/network-controller/pkg/turns"
	"github.com/samplecrd/network-controller/pkg/watchdog"
)

// Queue is a work queue that remembers, if syncs are traced, what put each key
// into it. What a person changed precedes everything else.
type Queue struct {
	prioritized
	Observers

	mu     sync.Mutex
	causes map[cache.ObjectName][]trace.Link // until Begin
}

// prioritized is a fairqueue.Queue.
type prioritized interface {
	workqueue.TypedRateLimitingInterface[cache.ObjectName]
	AddInBackground(cache.ObjectName)
	IsUrgent(cache.ObjectName) bool
	Backoff(cache.ObjectName) time.Duration
}

// Observers observe a queue and the syncs of its keys.
type Observers struct {
	Watchdog *watchdog.Watchdog
	Recorder Recorder
}

// Recorder records the path of keys.
type Recorder interface {
	// Watch is called once, with a function that returns the number of keys in the
	// queue.
	Watch(length func() int)
	// Added is called before a key is added to the queue.
	Added(key cache.ObjectName, cause string)
	// Delayed is called before a key is added after a delay, because of failures in a
	// row or, if they are 0, for another reason.
	Delayed(key cache.ObjectName, delay time.Duration, failures int)
	// Taken is called when a worker has taken a key.
	Taken(key cache.ObjectName)
	// Begin begins the sync of a key that was taken, and returns the context of the
	// sync and a function that ends it.
	Begin(ctx context.Context, key cache.ObjectName, id string) (context.Context, func(error))
	// Done is called before the worker is done with a key.
	Done(key cache.ObjectName)
}

// maxCauses bounds the causes of one sync.
const maxCauses = 8

// NewQueue wraps a work queue.
func NewQueue(queue prioritized, observers Observers) *Queue {
	observers.Recorder.Watch(queue.Len)
	return &Queue{prioritized: queue, Observers: observers, causes: map[cache.ObjectName][]trace.Link{}}
}

// ObserveNamespaces records the number of namespaces that have a key in the queue.
func ObserveNamespaces(namespaces int) { metrics.QueueNamespaces.Set(float64(namespaces)) }

// Add adds a key because a person changed its Network.
func (q *Queue) Add(key cache.ObjectName) { q.AddBecause("event")(key) }

// AddAfter adds a key after a delay, in the background, or like Add if there is no
// delay.
func (q *Queue) AddAfter(key cache.ObjectName, delay time.Duration) {
	if delay <= 0 {
		q.Add(key)
		return
	}
	q.Recorder.Delayed(key, delay, 0)
	q.prioritized.AddAfter(key, delay)
}

// AddRateLimited adds a key whose sync failed, after a delay that grows with each
// failure in a row.
func (q *Queue) AddRateLimited(key cache.ObjectName) {
	delay := q.Backoff(key)
	q.Recorder.Delayed(key, delay, q.NumRequeues(key))
	q.prioritized.AddAfter(key, delay)
}

// Get waits for a key, as long as the queue is not shut down.
func (q *Queue) Get() (key cache.ObjectName, shutdown bool) {
	if key, shutdown = q.prioritized.Get(); !shutdown {
		q.Recorder.Taken(key)
	}
	return key, shutdown
}

// Done ends the work on a key.
func (q *Queue) Done(key cache.ObjectName) {
	q.Recorder.Done(key)
	q.prioritized.Done(key)
}

// AddInBackground adds a key because of a start: no person waits for it.
func (q *Queue) AddInBackground(key cache.ObjectName) { q.AddInBackgroundBecause("start")(key) }

// AddBecause returns a function that adds a key because a person did something else.
func (q *Queue) AddBecause(cause string) func(cache.ObjectName) {
	return func(key cache.ObjectName) {
		q.startCause(key, cause)
		q.Recorder.Added(key, cause)
		q.prioritized.Add(key)
	}
}

// AddInBackgroundBecause returns a function that adds a key that no person
// waits for.
func (q *Queue) AddInBackgroundBecause(cause string) func(cache.ObjectName) {
	return func(key cache.ObjectName) {
		q.startCause(key, cause)
		q.Recorder.Added(key, cause)
		q.prioritized.AddInBackground(key)
	}
}

func (q *Queue) startCause(key cache.ObjectName, cause string) {
	_, span := tracing.Tracer.Start(context.Background(), cause, trace.WithAttributes(attribute.String("samplecrd.network", key.String())))
	span.End()
	q.addCause(key, span.SpanContext(), cause)
}

// Begin begins the sync of a key that Get has returned. The context that it
// returns carries the logger and the trace of the sync, and the turn of its requests
// to Neutron. The function that it returns ends the sync.
func (q *Queue) Begin(ctx context.Context, key cache.ObjectName) (context.Context, func(error)) {
	id := fmt.Sprintf("%08x", rand.Uint32()) //nolint:gosec // it only distinguishes log lines
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("network", klog.KRef(key.Parts()), "sync", id))
	ctx = turns.NewContext(ctx, key.Namespace, q.IsUrgent(key))
	ctx, stop := q.Watchdog.Watch(ctx, "the sync of "+key.String())
	ctx, span := tracing.Tracer.Start(ctx, "sync", trace.WithNewRoot(), trace.WithLinks(q.takeCauses(key)...),
		trace.WithAttributes(attribute.String("samplecrd.network", key.String()), attribute.String("samplecrd.sync", id)))
	ctx, endRecord := q.Recorder.Begin(ctx, key, id)
	return ctx, func(err error) {
		endRecord(err)
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

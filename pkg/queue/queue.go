// Package queue decides whose turn it is. What a person changed precedes what a start,
// a resync or a retry brings, and each namespace has its turn: many keys of one namespace
// do not delay a single key of another one. A Queue orders the keys of a controller, and a
// Gate the requests of its workers.
package queue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/samplecrd/network-controller/pkg/observe"
)

// Queue is client-go's rate-limiting work queue, with two priorities. Add adds an urgent
// key: a person waits for it. A key that arrives after a delay, by AddRateLimited or by
// AddInBackground is not urgent. A waiting key that is added by Add becomes urgent.
type Queue struct {
	*observe.Queue[cache.ObjectName]
	order    *order
	observer observe.Observer
}

// New returns a Queue. Its name labels its metrics. The limiter delays keys whose sync
// has failed. The observer sees all keys and syncs.
func New(
	name string, limiter workqueue.TypedRateLimiter[cache.ObjectName], observer observe.Observer,
) *Queue {
	order := newOrder()
	ordered := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[cache.ObjectName]{Name: name, Queue: order})
	return &Queue{observe.NewQueue(name, ordered, limiter, observer), order, observer}
}

// Add adds a key because a person changed its object.
func (q *Queue) Add(key cache.ObjectName) {
	q.order.request(key)
	q.AddBecause(key, "event")
}

// AddInBackground adds a key because of a start: no person waits for it.
func (q *Queue) AddInBackground(key cache.ObjectName) { q.AddBecause(key, "start") }

// AddInBackgroundBecause returns a function that adds a key that no person waits for.
func (q *Queue) AddInBackgroundBecause(cause string) func(cache.ObjectName) {
	return func(key cache.ObjectName) { q.AddBecause(key, cause) }
}

// AddAfter adds a key after a delay, in the background, or like Add if there is no
// delay.
func (q *Queue) AddAfter(key cache.ObjectName, delay time.Duration) {
	if delay <= 0 {
		q.Add(key)
		return
	}
	q.Queue.AddAfter(key, delay)
}

// Front returns about the next keys that wait for a worker, at most a number of them.
func (q *Queue) Front(most int) []cache.ObjectName { return q.order.front(most) }

// Begin begins the sync of a key that Get has returned. The context that it returns
// carries the logger and the observer of the sync, and the turn of its requests. The
// function that it returns ends the sync.
func (q *Queue) Begin(ctx context.Context, key cache.ObjectName) (context.Context, func(error)) {
	id := fmt.Sprintf("%08x", rand.Uint32()) //nolint:gosec // it only distinguishes log lines
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("network", klog.KRef(key.Parts()), "sync", id))
	ctx = observe.NewContext(withTurn(ctx, key.Namespace, q.order.takeUrgent(key)), q.observer)
	ctx, end := q.observer.Begin(ctx, observe.Work{Kind: observe.Sync, Key: key, ID: id})
	return ctx, func(err error) { end(observe.Result{Err: err}) }
}

// order is the order of the queue. The work queue calls the methods of workqueue.Queue with
// a lock held, and never pushes a key that is waiting.
type order struct {
	mu   sync.Mutex
	line *line[cache.ObjectName]
	// requested are the keys that the next Push or Touch makes urgent. If another call
	// precedes the one that is meant, its worker sees the change as well.
	requested map[cache.ObjectName]struct{}
	urgent    map[cache.ObjectName]struct{} // those that a worker has, until their sync begins
}

func newOrder() *order {
	return &order{
		line:      newLine[cache.ObjectName](),
		requested: map[cache.ObjectName]struct{}{}, urgent: map[cache.ObjectName]struct{}{},
	}
}

func (o *order) request(key cache.ObjectName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.requested[key] = struct{}{}
}

// Push implements workqueue.Queue.
func (o *order) Push(key cache.ObjectName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.line.push(key.Namespace, key, take(o.requested, key))
}

// Touch implements workqueue.Queue: a waiting key is added again.
func (o *order) Touch(key cache.ObjectName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if take(o.requested, key) {
		o.line.raise(key.Namespace, key)
	}
}

// Len implements workqueue.Queue.
func (o *order) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.line.len
}

// Pop implements workqueue.Queue. The queue must not be empty.
func (o *order) Pop() cache.ObjectName {
	o.mu.Lock()
	defer o.mu.Unlock()
	key, urgent := o.line.pop()
	if urgent {
		o.urgent[key] = struct{}{}
	}
	return key
}

func (o *order) front(most int) []cache.ObjectName {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.line.front(most)
}

// takeUrgent reports whether a key that a worker has is urgent.
func (o *order) takeUrgent(key cache.ObjectName) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return take(o.urgent, key)
}

// take removes a key, and reports whether it was there.
func take(keys map[cache.ObjectName]struct{}, key cache.ObjectName) bool {
	_, found := keys[key]
	delete(keys, key)
	return found
}

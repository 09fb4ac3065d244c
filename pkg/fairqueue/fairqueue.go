// Package fairqueue is a work queue in which what a person changed precedes what a
// start, a resync or a retry brings. Each namespace has its turn: many keys of one
// namespace do not delay a single key of another one.
package fairqueue

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/samplecrd/network-controller/pkg/turns"
)

// Queue is a rate-limiting work queue with two priorities. Add adds an urgent key:
// a person waits for it. A key that arrives after a delay, by AddRateLimited or by
// AddInBackground is not urgent. A waiting key that is added by Add becomes urgent.
type Queue struct {
	workqueue.TypedRateLimitingInterface[cache.ObjectName]
	order   *order
	limiter workqueue.TypedRateLimiter[cache.ObjectName]
}

// New returns a Queue. Its name labels its metrics. Whenever the number of
// namespaces that have a waiting key changes, the queue passes it to observe, which
// must return immediately.
func New(name string, limiter workqueue.TypedRateLimiter[cache.ObjectName], observe func(namespaces int)) *Queue {
	order := newOrder(observe)
	return &Queue{newQueue(name, limiter, order), order, limiter}
}

// newQueue returns a work queue that returns keys in the given order.
func newQueue(name string, limiter workqueue.TypedRateLimiter[cache.ObjectName], order workqueue.Queue[cache.ObjectName]) workqueue.TypedRateLimitingInterface[cache.ObjectName] {
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[cache.ObjectName]{Name: name, Queue: order})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[cache.ObjectName]{Name: name, Queue: queue})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: name, DelayingQueue: delaying})
}

// Add adds a key that a person waits for.
func (q *Queue) Add(key cache.ObjectName) {
	if q.ShuttingDown() {
		return
	}
	q.order.request(key)
	q.TypedRateLimitingInterface.Add(key)
}

// AddInBackground adds a key that no person waits for.
func (q *Queue) AddInBackground(key cache.ObjectName) { q.TypedRateLimitingInterface.Add(key) }

// Backoff counts a failure of a key, and returns the delay after which it is to be added
// again. AddRateLimited is AddAfter with this delay.
func (q *Queue) Backoff(key cache.ObjectName) time.Duration { return q.limiter.When(key) }

// IsUrgent reports whether a key that Get has returned, and that is not done, was
// urgent.
func (q *Queue) IsUrgent(key cache.ObjectName) bool { return q.order.isUrgent(key) }

// Done ends the work on a key.
func (q *Queue) Done(key cache.ObjectName) {
	q.order.done(key)
	q.TypedRateLimitingInterface.Done(key)
}

// order is the order of the queue. The work queue calls the methods of
// workqueue.Queue with a lock held, and never pushes a key that is waiting.
type order struct {
	observe func(namespaces int)

	mu   sync.Mutex
	line *turns.Line[cache.ObjectName]
	// requested are the keys that the next Push or Touch makes urgent. If another call
	// precedes the one that is meant, its worker sees the change as well.
	requested map[cache.ObjectName]struct{}
	urgent    map[cache.ObjectName]struct{} // those being worked on
}

func newOrder(observe func(int)) *order {
	return &order{observe: observe, line: turns.New[cache.ObjectName](), requested: map[cache.ObjectName]struct{}{}, urgent: map[cache.ObjectName]struct{}{}}
}

func (o *order) request(key cache.ObjectName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.requested[key] = struct{}{}
}

func (o *order) takeRequest(key cache.ObjectName) bool {
	_, requested := o.requested[key]
	delete(o.requested, key)
	return requested
}

// Push implements workqueue.Queue.
func (o *order) Push(key cache.ObjectName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.line.Tenants()
	o.line.Push(key.Namespace, key, o.takeRequest(key))
	o.observeTenants(before)
}

// Touch implements workqueue.Queue: a waiting key is added again.
func (o *order) Touch(key cache.ObjectName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.takeRequest(key) {
		o.line.Raise(key.Namespace, key)
	}
}

// Len implements workqueue.Queue.
func (o *order) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.line.Len()
}

// Pop implements workqueue.Queue. The queue must not be empty.
func (o *order) Pop() cache.ObjectName {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.line.Tenants()
	key, urgent := o.line.Pop()
	if urgent {
		o.urgent[key] = struct{}{}
	}
	o.observeTenants(before)
	return key
}

func (o *order) observeTenants(before int) {
	if now := o.line.Tenants(); now != before {
		o.observe(now)
	}
}

func (o *order) isUrgent(key cache.ObjectName) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, urgent := o.urgent[key]
	return urgent
}

func (o *order) done(key cache.ObjectName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.urgent, key)
}

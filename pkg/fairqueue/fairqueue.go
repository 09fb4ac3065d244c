// Package fairqueue is a work queue in which each namespace has its turn: many keys
// of one namespace do not delay a single key of another one.
package fairqueue

import (
	"container/list"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// New returns a rate-limiting work queue that returns one key of each waiting
// namespace in turn. Its name labels its metrics. Whenever the number of namespaces
// that have a waiting key changes, the queue passes it to observe, which must return
// immediately.
func New(name string, limiter workqueue.TypedRateLimiter[cache.ObjectName], observe func(namespaces int)) workqueue.TypedRateLimitingInterface[cache.ObjectName] {
	return newQueue(name, limiter, newRoundRobin(observe))
}

// newQueue returns a work queue that returns keys in the given order.
func newQueue(name string, limiter workqueue.TypedRateLimiter[cache.ObjectName], order workqueue.Queue[cache.ObjectName]) workqueue.TypedRateLimitingInterface[cache.ObjectName] {
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[cache.ObjectName]{Name: name, Queue: order})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[cache.ObjectName]{Name: name, Queue: queue})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: name, DelayingQueue: delaying})
}

// roundRobin is the order of the queue: a first-in, first-out list for each
// namespace, and a ring of the namespaces that have one. Each operation takes
// constant time. A namespace without a key takes no memory. The work queue calls it
// with a lock held, and never pushes a key that is waiting.
type roundRobin struct {
	// turns are the waiting namespaces; the front one is next. The values are *keys.
	turns *list.List
	// of finds the element of a namespace in turns.
	of      map[string]*list.Element
	len     int
	observe func(namespaces int)
}

// keys are the waiting keys of a namespace, the oldest one first.
type keys []cache.ObjectName

func newRoundRobin(observe func(int)) *roundRobin {
	return &roundRobin{turns: list.New(), of: map[string]*list.Element{}, observe: observe}
}

// Touch implements workqueue.Queue. A key that is added again keeps its place.
func (*roundRobin) Touch(cache.ObjectName) {}

// Push implements workqueue.Queue. The last turn of all is that of a namespace
// that had no key yet.
func (r *roundRobin) Push(key cache.ObjectName) {
	r.len++
	if element, waiting := r.of[key.Namespace]; waiting {
		queued := element.Value.(*keys)
		*queued = append(*queued, key)
		return
	}
	r.of[key.Namespace] = r.turns.PushBack(&keys{key})
	r.observe(len(r.of))
}

// Len implements workqueue.Queue.
func (r *roundRobin) Len() int { return r.len }

// Pop implements workqueue.Queue. The namespace of the key that it returns goes to
// the end of the ring. The queue must not be empty.
func (r *roundRobin) Pop() cache.ObjectName {
	element := r.turns.Front()
	queued := element.Value.(*keys)
	key := (*queued)[0]
	(*queued)[0] = cache.ObjectName{} // for the garbage collector
	*queued = (*queued)[1:]
	r.len--
	if len(*queued) > 0 {
		r.turns.MoveToBack(element)
		return key
	}
	r.turns.Remove(element)
	delete(r.of, key.Namespace)
	r.observe(len(r.of))
	return key
}

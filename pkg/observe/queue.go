package observe

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Queue is a rate-limiting work queue whose keys an observer sees: when they are added, and
// when a delay begins and ends.
type Queue[K comparable] struct {
	workqueue.TypedRateLimitingInterface[K]
	next     workqueue.TypedInterface[K]
	limiter  workqueue.TypedRateLimiter[K]
	observer Observer
}

// NewQueue returns a Queue in front of another one, which it gives the keys that are due. Its
// name labels its metrics. The limiter delays keys whose sync has failed.
func NewQueue[K comparable](
	name string, next workqueue.TypedInterface[K], limiter workqueue.TypedRateLimiter[K], observer Observer,
) *Queue[K] {
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{
		Name: name, Queue: afterDelay[K]{next, observer},
	})
	limiting := workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[K]{Name: name, DelayingQueue: delaying})
	return &Queue[K]{limiting, next, limiter, observer}
}

// afterDelay is the queue to which the delaying queue adds keys that are due.
type afterDelay[K comparable] struct {
	workqueue.TypedInterface[K]
	observer Observer
}

// Add adds a key that is due.
func (q afterDelay[K]) Add(key K) {
	q.observer.Happened(NameOf(key), Event{Type: Due})
	q.TypedInterface.Add(key)
}

// Add adds a key because of an event.
func (q *Queue[K]) Add(key K) { q.AddBecause(key, "event") }

// AddBecause adds a key because of a cause.
func (q *Queue[K]) AddBecause(key K, cause string) {
	if q.ShuttingDown() {
		return
	}
	q.observer.Happened(NameOf(key), Event{Type: Added, Cause: cause})
	q.next.Add(key)
}

// AddAfter adds a key after a delay.
func (q *Queue[K]) AddAfter(key K, delay time.Duration) {
	if delay <= 0 {
		q.Add(key)
		return
	}
	q.observer.Happened(NameOf(key), Event{Type: Delayed, Delay: delay})
	q.TypedRateLimitingInterface.AddAfter(key, delay)
}

// AddRateLimited adds a key whose sync failed, after a delay that grows with each
// failure in a row.
func (q *Queue[K]) AddRateLimited(key K) {
	delay := q.limiter.When(key)
	q.observer.Happened(NameOf(key), Event{Type: Delayed, Delay: delay, Failures: q.NumRequeues(key)})
	q.TypedRateLimitingInterface.AddAfter(key, delay)
}

// NameOf returns what an Observer calls a key: the namespace and name, or for a key with
// another form than these, its text as the name.
func NameOf(key any) cache.ObjectName {
	if name, ok := key.(cache.ObjectName); ok {
		return name
	}
	namespace, name, found := strings.Cut(fmt.Sprint(key), "/")
	switch {
	case !found:
		return cache.ObjectName{Name: namespace}
	case namespace != "" && strings.Contains(name, "/"):
		return cache.ObjectName{Name: namespace + "/" + name}
	}
	return cache.ObjectName{Namespace: namespace, Name: name}
}

package queue

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/samplecrd/network-controller/pkg/observe"
)

func key(text string) cache.ObjectName {
	namespace, name, _ := strings.Cut(text, "/")
	return cache.NewObjectName(namespace, name)
}

func limiter() workqueue.TypedRateLimiter[cache.ObjectName] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](time.Second, time.Minute)
}

// TestPriority: what a person changed goes first, however its key arrived before.
func TestPriority(t *testing.T) {
	for name, test := range map[string]struct {
		arrive func(q *Queue)
		want   string // the keys in their order; "!" marks those that are urgent
	}{
		"a change precedes a start":      {func(q *Queue) { q.AddInBackground(key("a/1")); q.Add(key("a/2")) }, "!a/2 a/1"},
		"a waiting key that is changed":  {func(q *Queue) { q.AddInBackground(key("a/1")); q.AddInBackground(key("a/2")); q.Add(key("a/2")) }, "!a/2 a/1"},
		"a changed key stays urgent":     {func(q *Queue) { q.AddInBackground(key("a/1")); q.Add(key("a/2")); q.AddInBackground(key("a/2")) }, "!a/2 a/1"},
		"a delayed key is not urgent":    {func(q *Queue) { q.AddAfter(key("a/1"), time.Second); <-time.After(time.Second); q.Add(key("a/2")) }, "!a/2 a/1"},
		"a retry is not urgent":          {func(q *Queue) { q.AddRateLimited(key("a/1")); <-time.After(time.Second); q.Add(key("a/2")) }, "!a/2 a/1"},
		"a key that waits for its retry": {func(q *Queue) { q.AddInBackground(key("a/1")); q.AddRateLimited(key("a/2")); q.Add(key("a/2")) }, "!a/2 a/1"},
		"a key that is changed during work": {func(q *Queue) {
			q.AddInBackground(key("a/1"))
			work(q, func() { q.Add(key("a/1")); q.AddInBackground(key("a/2")) })
		}, "!a/1 a/2"},
		"a key that returns during work": {func(q *Queue) {
			q.Add(key("a/1"))
			work(q, func() { q.AddInBackground(key("a/1")); q.Add(key("a/2")) })
		}, "!a/2 a/1"},
		"both during work": {func(q *Queue) {
			q.Add(key("a/1"))
			work(q, func() { q.AddInBackground(key("a/1")); q.Add(key("a/1")); q.AddInBackground(key("a/0")) })
		}, "!a/1 a/0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := New("", limiter(), observe.Nothing{})
				defer q.ShutDown()
				test.arrive(q)
				synctest.Wait()
				var got []string
				for q.Len() > 0 {
					next, _ := q.Get()
					text := next.String()
					if q.order.takeUrgent(next) {
						text = "!" + text
					}
					got = append(got, text)
					q.Done(next)
				}
				if diff := cmp.Diff(strings.Fields(test.want), got); diff != "" {
					t.Errorf("order (-want +got):\n%s", diff)
				}
				if left := len(q.order.requested) + len(q.order.urgent); left > 0 {
					t.Errorf("%d keys are left in memory", left)
				}
			})
		})
	}
}

// work takes one key, and is done with it after an action.
func work(q *Queue, during func()) {
	next, _ := q.Get()
	q.order.takeUrgent(next) // as Begin does
	during()
	q.Done(next)
}

// events is an observer that keeps what happened.
type events struct {
	observe.Nothing
	mu  sync.Mutex
	all []string
}

func (e *events) Happened(key cache.ObjectName, event observe.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	names := map[observe.EventType]string{observe.Added: "added because of " + event.Cause, observe.Delayed: "delayed by " + event.Delay.String(), observe.Due: "due"}
	e.all = append(e.all, key.Name+" "+names[event.Type]+strings.Repeat("!", event.Failures))
}

// TestObserver: an observer sees why keys are added, and when the time of one that was
// delayed is over. An add in between does not look like that.
func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &events{}
		q := New("", limiter(), seen)
		defer q.ShutDown()
		q.AddAfter(key("a/later"), time.Minute)
		q.AddRateLimited(key("a/failed"))
		q.Add(key("a/later"))
		q.AddInBackground(key("b/other"))
		synctest.Wait()
		if diff := cmp.Diff([]cache.ObjectName{key("a/later"), key("b/other")}, q.Front(9)); diff != "" {
			t.Errorf("the next keys (-want +got):\n%s", diff)
		}
		work(q, func() { <-time.After(2 * time.Minute) })
		want := []string{"later delayed by 1m0s", "failed delayed by 1s!", "later added because of event", "other added because of start", "failed due", "later due"}
		if diff := cmp.Diff(want, seen.all); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

package fairqueue

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
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
				q := New("", limiter(), func(int) {})
				defer q.ShutDown()
				test.arrive(q)
				synctest.Wait()
				var got []string
				for q.Len() > 0 {
					next, _ := q.Get()
					text := next.String()
					if q.IsUrgent(next) {
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
	during()
	q.Done(next)
}

// TestNamespacesAreObserved: every change of the number of waiting namespaces is.
func TestNamespacesAreObserved(t *testing.T) {
	var got []int
	q := New("", limiter(), func(namespaces int) { got = append(got, namespaces) })
	defer q.ShutDown()
	q.Add(key("a/1"))
	q.AddInBackground(key("a/2"))
	q.AddInBackground(key("b/1"))
	for range 3 {
		work(q, func() {})
	}
	if diff := cmp.Diff([]int{1, 2, 1, 0}, got); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
}

// crowd is a work queue with many keys, and the workers of a controller.
type crowd struct {
	add, addInBackground func(cache.ObjectName)
	workqueue.TypedRateLimitingInterface[cache.ObjectName]

	mu   sync.Mutex
	done map[cache.ObjectName]chan struct{} // those that somebody waits for
}

const (
	workers  = 32
	others   = 10_000
	syncTime = 100 * time.Millisecond // on average
)

// run starts the workers. Each key takes from half to one and a half of syncTime.
func (c *crowd) run(running *sync.WaitGroup) {
	for worker := range workers {
		random := rand.New(rand.NewPCG(uint64(worker), 0))
		running.Go(func() {
			for {
				next, shutdown := c.Get()
				if shutdown || c.ShuttingDown() {
					return
				}
				<-time.After(syncTime/2 + time.Duration(random.Int64N(int64(syncTime))))
				c.mu.Lock()
				if done := c.done[next]; done != nil {
					close(done)
					delete(c.done, next)
				}
				c.mu.Unlock()
				c.Done(next)
			}
		})
	}
}

// measure returns how long each of 100 keys takes, which arrive every 200 ms on
// average.
func (c *crowd) measure(namespace string) []time.Duration {
	random := rand.New(rand.NewPCG(1, 2))
	took := make([]time.Duration, 100)
	var waiting sync.WaitGroup
	for i := range took {
		<-time.After(time.Duration(random.Int64N(int64(4 * syncTime))))
		waiting.Go(func() {
			next, done, begun := cache.NewObjectName(namespace, strconv.Itoa(i)), make(chan struct{}), time.Now()
			c.mu.Lock()
			c.done[next] = done
			c.mu.Unlock()
			c.add(next)
			<-done
			took[i] = time.Since(begun)
		})
	}
	waiting.Wait()
	slices.Sort(took)
	return took
}

// TestSecondTenant: beside 10,000 Networks of another tenant that were just created,
// a new one is synced within twice the time that it takes alone. So is an edit of one
// of 10,000 Networks that all need work after a start. (The 99th percentile of 100.)
func TestSecondTenant(t *testing.T) {
	fair := func(c *crowd) {
		q := New("", limiter(), func(int) {})
		c.TypedRateLimitingInterface, c.add, c.addInBackground = q, q.Add, q.AddInBackground
	}
	onlyTurns := func(c *crowd) {
		q := New("", limiter(), func(int) {})
		c.TypedRateLimitingInterface, c.add, c.addInBackground = q, q.AddInBackground, q.AddInBackground
	}
	arrival := func(c *crowd) {
		q := newQueue("", limiter(), workqueue.DefaultQueue[cache.ObjectName]())
		c.TypedRateLimitingInterface, c.add, c.addInBackground = q, q.Add, q.Add
	}
	created := func(c *crowd) { // by another tenant
		for i := range others {
			c.add(cache.NewObjectName("first", strconv.Itoa(i)))
		}
	}
	started := func(c *crowd) { // all Networks of the tenant need work, the edited ones included
		for i := range others {
			c.addInBackground(cache.NewObjectName("second", strconv.Itoa(others-1-i)))
		}
	}
	nothing := func(*crowd) {}
	p99 := map[string]time.Duration{}
	for _, test := range []struct {
		name    string
		order   func(*crowd)
		backlog func(*crowd)
		waits   bool // much longer than twice the time alone
	}{
		{"alone", fair, nothing, false},
		{"10,000 new, priorities and turns", fair, created, false},
		{"10,000 new, only turns", onlyTurns, created, false},
		{"10,000 new, order of arrival", arrival, created, true},
		{"start, priorities and turns", fair, started, false},
		{"start, only turns", onlyTurns, started, true},
		{"start, order of arrival", arrival, started, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := crowd{done: map[cache.ObjectName]chan struct{}{}}
				test.order(&c)
				test.backlog(&c)
				var running sync.WaitGroup
				c.run(&running)
				took := c.measure("second")
				p99[test.name] = took[98]
				ratio := float64(took[98]) / float64(p99["alone"])
				t.Logf("99th percentile %v, %.1f times that alone; median %v; %d keys are left", took[98].Round(time.Millisecond), ratio, took[49].Round(time.Millisecond), c.Len())
				if test.waits && ratio < 10 || !test.waits && ratio > 2 {
					t.Errorf("it is %.1f times that alone", ratio)
				}
				c.ShutDown()
				running.Wait()
			})
		})
	}
}

package fairqueue

import (
	"maps"
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

func TestOrder(t *testing.T) {
	for name, test := range map[string]struct {
		actions string // keys to push; "pop" pops one
		want    string // the keys in the order in which they are popped
	}{
		"one namespace is first in, first out":      {"a/1 a/2 a/3", "a/1 a/2 a/3"},
		"two namespaces alternate":                  {"a/1 a/2 a/3 b/1 b/2", "a/1 b/1 a/2 b/2 a/3"},
		"a late namespace waits for one key":        {"a/1 a/2 a/3 pop b/1", "a/1 a/2 b/1 a/3"},
		"every namespace has one turn":              {"a/1 a/2 b/1 b/2 c/1", "a/1 b/1 c/1 a/2 b/2"},
		"a namespace that was empty is last":        {"a/1 b/1 b/2 pop a/2", "a/1 b/1 a/2 b/2"},
		"a namespace does not gain by adding later": {"a/1 a/2 b/1 pop pop a/3 b/2", "a/1 b/1 a/2 b/2 a/3"},
	} {
		t.Run(name, func(t *testing.T) {
			order, got := newRoundRobin(func(int) {}), []string{}
			for action := range strings.FieldsSeq(test.actions) {
				if action == "pop" {
					got = append(got, order.Pop().String())
				} else {
					order.Push(key(action))
				}
			}
			for order.Len() > 0 {
				got = append(got, order.Pop().String())
			}
			if diff := cmp.Diff(strings.Fields(test.want), got); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

// TestProperties: with random keys, nothing is lost or invented, and the keys of a
// namespace stay in order. Between two turns of a namespace, each other one has at
// most one turn. An empty queue holds no memory.
func TestProperties(t *testing.T) {
	for seed := range uint64(200) {
		random, namespaces := rand.New(rand.NewPCG(seed, 0)), 0
		order, model := newRoundRobin(func(n int) { namespaces = n }), map[string][]cache.ObjectName{}
		waited := map[string]int{} // pops of others since the namespace's last turn
		pop := func() {
			got := order.Pop()
			if queued := model[got.Namespace]; len(queued) == 0 || queued[0] != got {
				t.Fatalf("seed %d: Pop() = %s, want the first of %v", seed, got, queued)
			}
			if model[got.Namespace] = model[got.Namespace][1:]; len(model[got.Namespace]) == 0 {
				delete(model, got.Namespace)
			}
			delete(waited, got.Namespace)
			for namespace := range model {
				if namespace != got.Namespace {
					waited[namespace]++
				}
				if waited[namespace] > 6 {
					t.Fatalf("seed %d: %s waited for %d turns of 6 other namespaces", seed, namespace, waited[namespace])
				}
			}
		}
		for i := range 500 {
			if order.Len() > 0 && random.IntN(2) == 0 {
				pop()
			} else {
				next := cache.NewObjectName(strconv.Itoa(min(random.IntN(20), 6)), strconv.Itoa(i)) // most are in one namespace
				order.Push(next)
				model[next.Namespace] = append(model[next.Namespace], next)
			}
			if namespaces != len(model) || len(order.of) != len(model) || order.turns.Len() != len(model) {
				t.Fatalf("seed %d: %d namespaces were observed, %d and %d are held, want %d", seed, namespaces, len(order.of), order.turns.Len(), len(model))
			}
		}
		for order.Len() > 0 {
			pop()
		}
		if len(model) > 0 || namespaces > 0 {
			t.Fatalf("seed %d: lost keys: %v", seed, slices.Sorted(maps.Keys(model)))
		}
	}
}

// TestSecondTenant compares the order of arrival with turns, as the work queue of a
// controller with five workers: how many Networks are created before the only one of
// a second tenant, if another tenant has just created 300?
func TestSecondTenant(t *testing.T) {
	const workers, others, syncTime = 5, 300, 400 * time.Millisecond
	for name, test := range map[string]struct {
		order       workqueue.Queue[cache.ObjectName]
		least, most int
	}{
		"order of arrival": {workqueue.DefaultQueue[cache.ObjectName](), others - workers, others},
		"turns":            {newRoundRobin(func(int) {}), 0, 2 * workers},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				queue := newQueue("", workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName](), test.order)
				var mu sync.Mutex
				var synced []cache.ObjectName
				var running sync.WaitGroup
				for i := range others {
					queue.Add(cache.NewObjectName("first", strconv.Itoa(i)))
				}
				for range workers {
					running.Go(func() {
						for {
							next, shutdown := queue.Get()
							if shutdown {
								return
							}
							<-time.After(syncTime)
							mu.Lock()
							synced = append(synced, next)
							mu.Unlock()
							queue.Done(next)
						}
					})
				}
				synctest.Wait() // all workers are busy
				begun := time.Now()
				queue.Add(key("second/only"))
				for range others + 1 {
					<-time.After(syncTime)
					synctest.Wait()
					if slices.Contains(synced, key("second/only")) {
						break
					}
				}
				before := slices.Index(synced, key("second/only"))
				t.Logf("%d Networks of the first tenant were synced before that of the second one, which waited %v", before, time.Since(begun))
				if before < test.least || before > test.most {
					t.Errorf("%d Networks were synced before that of the second tenant, want %d to %d", before, test.least, test.most)
				}
				queue.ShutDown()
				running.Wait()
			})
		})
	}
}

package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
)

// gone is the generation of a Network that no longer exists.
const gone = -1

// observer watches the Networks as a user does, and measures how long each takes.
type observer struct {
	stop   context.CancelFunc
	failed chan error // of the watch

	mu      sync.Mutex
	waiting map[cache.ObjectName]waiting
	took    []float64 // seconds
	missing int
	done    chan struct{} // closed when none is left
}

type waiting struct {
	since      time.Time
	generation int64
}

// observe starts to watch a namespace, or all if it is empty, until the context ends.
func observe(ctx context.Context, kube rest.Interface, namespace string) *observer {
	ctx, stop := context.WithCancel(ctx)
	o := &observer{waiting: map[cache.ObjectName]waiting{}, failed: make(chan error, 1), stop: stop}
	go func() {
		if err := watchNetworks(ctx, kube, namespace, o.handle); err != nil && ctx.Err() == nil {
			o.failed <- err
		}
	}()
	return o
}

// expect starts to count: n Networks will be expected.
func (o *observer) expect(n int) (done <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting, o.took, o.missing, o.done = map[cache.ObjectName]waiting{}, nil, n, make(chan struct{})
	return o.done
}

// begin is called before a request after which a Network will be ready with a
// generation, or gone.
func (o *observer) begin(namespace, name string, generation int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting[cache.NewObjectName(namespace, name)] = waiting{time.Now(), generation}
}

// times returns the times of the Networks that are done, in seconds.
func (o *observer) times() []float64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.took)
}

func (o *observer) handle(change watch.EventType, network *samplecrdv1.Network) {
	key := cache.MetaObjectToName(network)
	o.mu.Lock()
	defer o.mu.Unlock()
	expected, ok := o.waiting[key]
	isDone := change == watch.Deleted
	if expected.generation != gone {
		isDone = network.Generation >= expected.generation && isReady(network)
	}
	if !ok || !isDone {
		return
	}
	delete(o.waiting, key)
	o.took = append(o.took, time.Since(expected.since).Seconds())
	if o.missing--; o.missing == 0 {
		close(o.done)
	}
}

// left returns how many Networks are not done.
func (o *observer) left() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.missing
}

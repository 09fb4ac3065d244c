package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/test/bench/bare"
)

// gone is the generation of a Network that no longer exists.
const gone = -1

// observer watches the Networks as a user does, and measures how long each takes.
type observer struct {
	stop   context.CancelFunc
	failed chan error // of the watch

	mu      sync.Mutex
	waiting map[string]waiting
	took    []float64 // seconds
	left    int
	done    chan struct{} // closed when none is left
}

type waiting struct {
	since      time.Time
	generation int64
}

// observe starts to watch a namespace, or all if it is empty, until the context ends.
func observe(ctx context.Context, kube rest.Interface, namespace string) *observer {
	ctx, stop := context.WithCancel(ctx)
	o := &observer{waiting: map[string]waiting{}, failed: make(chan error, 1), stop: stop}
	go func() {
		if err := bare.Watch(ctx, kube, namespace, o.handle); err != nil && ctx.Err() == nil {
			o.failed <- err
		}
	}()
	return o
}

// expect starts to count: n Networks will be expected.
func (o *observer) expect(n int) (done <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting, o.took, o.left, o.done = map[string]waiting{}, nil, n, make(chan struct{})
	return o.done
}

// begin is called before a request after which a Network will be ready with a
// generation, or gone.
func (o *observer) begin(namespace, name string, generation int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting[namespace+"/"+name] = waiting{time.Now(), generation}
}

// times returns the sorted times of the Networks that are done.
func (o *observer) times() []float64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(slices.Values(o.took))
}

func (o *observer) handle(change watch.EventType, network *samplecrdv1.Network) {
	key := network.Namespace + "/" + network.Name
	o.mu.Lock()
	defer o.mu.Unlock()
	expected, ok := o.waiting[key]
	switch {
	case !ok:
		return
	case expected.generation == gone:
		if change != watch.Deleted {
			return
		}
	case network.Generation < expected.generation || !bare.IsReady(network):
		return
	}
	delete(o.waiting, key)
	o.took = append(o.took, time.Since(expected.since).Seconds())
	if o.left--; o.left == 0 {
		close(o.done)
	}
}

// percentile returns a percentile of sorted values.
func percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*p))]
}

package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/samplecrd/network-controller/test/bench/bare"
)

// gone is the generation of a Network that no longer exists.
const gone = -1

// observer watches the Networks as a user does, and measures how long each takes.
type observer struct {
	mu      sync.Mutex
	waiting map[string]waiting
	took    []float64 // seconds
	left    int
	done    chan struct{} // closed when none is left
	err     error         // of the watch
	stop    context.CancelFunc
}

type waiting struct {
	since      time.Time
	generation int64
}

// observe starts to watch a namespace, or all if it is empty, until the context ends.
func observe(ctx context.Context, kube *bare.Client, group, namespace string) *observer {
	ctx, stop := context.WithCancel(ctx)
	o := &observer{waiting: map[string]waiting{}, done: make(chan struct{}), stop: stop}
	go func() {
		err := kube.Watch(ctx, group, namespace, o.handle)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.err = err
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
func (o *observer) begin(key string, generation int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting[key] = waiting{time.Now(), generation}
}

// times returns the sorted times of the Networks that are done.
func (o *observer) times() []float64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(slices.Values(o.took))
}

func (o *observer) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

func (o *observer) handle(event bare.Event) {
	network := &event.Object
	o.mu.Lock()
	defer o.mu.Unlock()
	expected, ok := o.waiting[network.Key()]
	switch {
	case !ok:
		return
	case expected.generation == gone:
		if event.Type != "DELETED" {
			return
		}
	case network.Metadata.Generation < expected.generation || !network.IsReady():
		return
	}
	delete(o.waiting, network.Key())
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

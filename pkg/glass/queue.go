package glass

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"k8s.io/client-go/util/workqueue"

	"github.com/samplecrd/network-controller/pkg/observe"
)

// Queue returns a queue whose keys and syncs the page shows, in front of another one. A sync
// of a key begins with Get and ends with Done. It has failed if AddRateLimited adds the key
// in between. The limiter delays the keys of failed syncs, instead of that of the other queue.
// A key is shown as fmt.Sprint prints it.
func Queue[K comparable](
	c *Controller, next workqueue.TypedRateLimitingInterface[K], limiter workqueue.TypedRateLimiter[K],
) workqueue.TypedRateLimitingInterface[K] {
	if c.page.isOff() {
		return next
	}
	return &queue[K]{observe.NewQueue(c.Name, next, limiter, c), c}
}

// queue is a queue whose syncs a Controller sees.
type queue[K comparable] struct {
	*observe.Queue[K]
	controller *Controller
}

// errUnknown is the error of a sync that the program does not pass to the page.
var errUnknown = errors.New("the sync has failed (Controller.Sync would show its error)")

// Get begins the sync of the next key.
func (q *queue[K]) Get() (key K, shutdown bool) {
	if key, shutdown = q.Queue.Get(); shutdown {
		return key, shutdown
	}
	id := fmt.Sprintf("%08x", rand.Uint32()) //nolint:gosec // it only distinguishes syncs
	q.controller.beginSync(context.Background(), observe.Work{Kind: observe.Sync, Key: observe.NameOf(key), ID: id})
	return key, false
}

// AddRateLimited adds a key after a delay, because its sync has failed.
func (q *queue[K]) AddRateLimited(key K) {
	q.controller.failed(key, errUnknown)
	q.Queue.AddRateLimited(key)
}

// Done ends the sync of a key.
func (q *queue[K]) Done(key K) {
	if w := q.controller.running(key); w != nil {
		w.end(w.err)
	}
	q.Queue.Done(key)
}

// running returns the sync of a key that runs, or nil.
func (c *Controller) running(key any) *work {
	c.page.mu.Lock()
	defer c.page.mu.Unlock()
	return c.syncOf(observe.NameOf(key))
}

// failed notes the error of a running sync, unless there is one already.
func (c *Controller) failed(key any, err error) {
	c.page.mu.Lock()
	defer c.page.mu.Unlock()
	if w := c.syncOf(observe.NameOf(key)); w != nil && (w.err == nil || errors.Is(w.err, errUnknown)) {
		w.err = err
	}
}

// Sync returns the context of the sync of a key that the Get of Queue has returned: the
// journey of the key shows its requests, and what it passes to package observe. The function
// that it returns passes the error of the sync to the page.
func (c *Controller) Sync(ctx context.Context, key any) (context.Context, func(error)) {
	if c.page.isOff() {
		return ctx, func(error) {}
	}
	if w := c.running(key); w != nil {
		ctx = observe.NewContext(context.WithValue(ctx, workKey{}, w), c)
	}
	return ctx, func(err error) {
		if err != nil {
			c.failed(key, err)
		}
	}
}

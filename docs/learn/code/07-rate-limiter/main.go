// Command 07-rate-limiter syncs Networks without doing anything, and prints what its
// queue does. It can make two frequent mistakes: to send events through the rate limiter,
// and to omit Forget. A sync fails while its Network has the label fails.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/samplecrd/network-controller/docs/learn/code/start"
	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions"
	networkinformers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions/samplecrd/v1"
	listers "github.com/samplecrd/network-controller/pkg/client/listers/samplecrd/v1"
)

func main() {
	log.SetFlags(log.Ltime | log.Lmicroseconds)
	limitEvents := flag.Bool("limit-events", false, "add keys with AddRateLimited after events, too")
	forget := flag.Bool("forget", true, "call Forget after success")
	start.Main(func(ctx context.Context, config *rest.Config) error { return run(ctx, config, *limitEvents, *forget) })
}

func run(ctx context.Context, config *rest.Config, limitEvents, forget bool) error {
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	networks := factory.Samplecrd().V1().Networks()
	limiter := workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()
	c := &controller{
		networks: networks.Lister(), limiter: limiter, queue: workqueue.NewTypedRateLimitingQueue(limiter), forget: forget,
		failed: map[cache.ObjectName]bool{},
	}
	add := c.queue.Add
	if limitEvents {
		add = c.queue.AddRateLimited
	}
	enqueue := func(network *samplecrdv1.Network) {
		c.start.Do(func() { c.began = time.Now() })
		add(cache.MetaObjectToName(network))
	}
	if _, err := networks.TypedInformer().AddTypedEventHandler(networkinformers.NetworkHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, after *samplecrdv1.Network) { enqueue(after) },
	}, cache.HandlerOptions{}); err != nil {
		return fmt.Errorf("adding event handlers: %w", err)
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	context.AfterFunc(ctx, c.queue.ShutDown)
	for c.processNextWorkItem() {
	}
	return nil
}

// controller syncs Networks with one worker.
type controller struct {
	networks listers.NetworkLister
	limiter  workqueue.TypedRateLimiter[cache.ObjectName]
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
	forget   bool
	failed   map[cache.ObjectName]bool // whose last sync failed

	start sync.Once
	began time.Time // at the first event

	mu    sync.Mutex
	syncs int // since the last line
	last  time.Time
}

func (c *controller) processNextWorkItem() bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	c.count()
	network, err := c.networks.Networks(key.Namespace).Get(key.Name)
	if err == nil && network.Labels["fails"] != "" {
		delay := c.limiter.When(key)
		log.Printf("%s: failure %d, the retry follows in %v", key, c.limiter.NumRequeues(key), delay)
		c.queue.AddAfter(key, delay) // these two calls are AddRateLimited
		c.failed[key] = true
		return true
	}
	if c.failed[key] {
		log.Printf("%s: success", key)
		delete(c.failed, key)
	}
	if c.forget {
		c.queue.Forget(key)
	}
	return true
}

// count counts a sync. The first one of each second is printed with those after it.
func (c *controller) count() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.syncs++
	c.last = time.Now()
	if c.syncs == 1 {
		time.AfterFunc(time.Second, c.print)
	}
}

func (c *controller) print() {
	c.mu.Lock()
	defer c.mu.Unlock()
	log.Printf("%d syncs in a second, the last one %.1f s after the first event", c.syncs, c.last.Sub(c.began).Seconds())
	c.syncs = 0
}

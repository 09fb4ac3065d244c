// Command 00-smallest is the whole pattern of a Kubernetes controller and nothing
// else. It logs which network each Network object desires, and creates none.
//
//	informer ──event──▶ handler ──key──▶ work queue ──key──▶ worker ──▶ syncHandler
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions"
	networkinformers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions/samplecrd/v1"
	listers "github.com/samplecrd/network-controller/pkg/client/listers/samplecrd/v1"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "`path` of a kubeconfig file")
	workers := flag.Int("workers", 2, "number of workers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *workers); err != nil {
		fmt.Fprintln(os.Stderr, "00-smallest:", err)
		os.Exit(1) //nolint:gocritic // nothing is left that stop could end
	}
}

// run connects the parts: a client, an informer, and the controller.
func run(ctx context.Context, kubeconfig string, workers int) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0) // without resync
	controller, err := NewController(factory.Samplecrd().V1().Networks())
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	return controller.Run(ctx, workers)
}

// Controller logs the desired state of each Network.
type Controller struct {
	networks listers.NetworkLister // reads the cache that the informer fills
	synced   cache.DoneChecker     // done when the handlers have received the first list
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// NewController returns a Controller whose handlers wait for the informer's events.
func NewController(networks networkinformers.TypedNetworkInformer) (*Controller, error) {
	c := &Controller{
		networks: networks.Lister(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName](),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "Networks"}),
	}
	registration, err := networks.TypedInformer().AddTypedEventHandler(networkinformers.NetworkHandlerFuncs{
		AddFunc: func(network *samplecrdv1.Network) { c.queue.Add(cache.MetaObjectToName(network)) },
		UpdateFunc: func(before, after *samplecrdv1.Network) {
			if before.Generation != after.Generation || before.UID != after.UID { // another spec, or another object
				c.queue.Add(cache.MetaObjectToName(after))
			}
		},
		DeleteFunc: func(deleted networkinformers.DeletedNetwork) { c.queue.Add(deleted.GetObjectName()) },
	}, cache.HandlerOptions{})
	if err != nil {
		return nil, fmt.Errorf("adding event handlers: %w", err)
	}
	c.synced = registration.HasSyncedChecker()
	return c, nil
}

// Run waits for the cache and runs workers until the context ends.
func (c *Controller) Run(ctx context.Context, workers int) error {
	logger := klog.FromContext(ctx)
	logger.Info("Waiting for the informer's cache to sync")
	if !cache.WaitFor(ctx, "", c.synced) {
		return nil // stopped
	}
	logger.Info("Starting workers", "count", workers)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for c.processNextWorkItem(ctx) {
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
	running.Wait()
	logger.Info("Stopped")
	return nil
}

// processNextWorkItem syncs one key. It returns false when the queue is shut down.
func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key) // if the key was added meanwhile, a worker gets it again now
	if err := c.syncHandler(ctx, key); err != nil {
		klog.FromContext(ctx).Error(err, "Sync failed; retrying with backoff", "network", key)
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key) // the next failure starts with a short delay
	return true
}

// syncHandler logs the desired state of one Network. It does not know what happened,
// only what is now: a real controller would compare this with Neutron.
func (c *Controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	logger := klog.FromContext(ctx).WithValues("network", key)
	network, err := c.networks.Networks(key.Namespace).Get(key.Name)
	switch {
	case apierrors.IsNotFound(err):
		logger.Info("Desired: no network")
		return nil
	case err != nil:
		return fmt.Errorf("reading %s from the cache: %w", key, err)
	}
	logger.Info("Desired: a network", "cidr", network.Spec.CIDR, "gateway", network.Spec.Gateway)
	return nil
}

// Command 04-with-neutron is 00-smallest, and creates and deletes what each Network
// object desires in Neutron. It watches only Kubernetes, and sets no finalizer.
//
//	informer ──event──▶ handler ──key──▶ work queue ──key──▶ worker ──▶ syncHandler ──▶ Neutron
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

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
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "`path` of a kubeconfig file")
	workers := flag.Int("workers", 2, "number of workers")
	resync := flag.Duration("resync", 0, "resync `period` of the informer")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *workers, *resync); err != nil {
		fmt.Fprintln(os.Stderr, "04-with-neutron:", err)
		os.Exit(1) //nolint:gocritic // nothing is left that stop could end
	}
}

// run connects the parts: two clients, an informer, and the controller.
func run(ctx context.Context, kubeconfig string, workers int, resync time.Duration) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	neutronClient, err := openstack.New("http://127.0.0.1:9696", openstack.Options{}) // the lab's
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, resync)
	controller, err := NewController(factory.Samplecrd().V1().Networks(), neutronClient)
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	return controller.Run(ctx, workers)
}

// Controller makes a network in Neutron for each Network.
type Controller struct {
	networks listers.NetworkLister // reads the cache that the informer fills
	neutron  neutron.Client
	synced   cache.DoneChecker // done when the handlers have received the first list
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// NewController returns a Controller whose handlers wait for the informer's events.
func NewController(networks networkinformers.TypedNetworkInformer, neutronClient neutron.Client) (*Controller, error) {
	c := &Controller{
		networks: networks.Lister(),
		neutron:  neutronClient,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName](),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "Networks"}),
	}
	handlers := networkinformers.NetworkHandlerFuncs{AddFunc: c.added, UpdateFunc: c.updated, DeleteFunc: c.deleted}
	registration, err := networks.TypedInformer().AddTypedEventHandler(handlers, cache.HandlerOptions{})
	if err != nil {
		return nil, fmt.Errorf("adding event handlers: %w", err)
	}
	c.synced = registration.HasSyncedChecker()
	return c, nil
}

func (c *Controller) added(network *samplecrdv1.Network) {
	c.queue.Add(cache.MetaObjectToName(network))
}

func (c *Controller) updated(before, after *samplecrdv1.Network) {
	if before.ResourceVersion == after.ResourceVersion { // nothing has changed in Kubernetes
		klog.InfoS("Resync: ignored", "network", after.Name, "resourceVersion", after.ResourceVersion)
		return
	}
	c.queue.Add(cache.MetaObjectToName(after))
}

func (c *Controller) deleted(deleted networkinformers.DeletedNetwork) {
	// GetObjectName needs no object: a tombstone contains the key.
	key, tombstone := deleted.GetObjectName(), deleted.FinalStateUnknown != nil
	klog.InfoS("Event: deleted", "network", key, "tombstone", tombstone)
	c.queue.Add(key)
}

// Run waits for the cache and runs workers until the context ends.
func (c *Controller) Run(ctx context.Context, workers int) error {
	logger := klog.FromContext(ctx)
	logger.Info("Waiting for the informer's cache to sync")
	if !cache.WaitFor(ctx, "", c.synced) {
		return nil // stopped
	}
	logger.Info("Starting workers", "count", workers, "keys", c.queue.Len())
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

// syncHandler creates, updates or deletes the network of one Network. It does not know
// what happened, only what is now.
func (c *Controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	network, err := c.networks.Networks(key.Namespace).Get(key.Name)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return fmt.Errorf("reading %s from the cache: %w", key, err)
	}
	found, err := c.neutron.Networks(ctx, neutron.NetworkFilter{Name: key.Name})
	did := "nothing"
	switch {
	case err != nil:
		return fmt.Errorf("reading the network of %s: %w", key, err)
	case missing:
		for _, network := range found {
			did = "deleted the network"
			err = errors.Join(err, c.neutron.DeleteNetwork(ctx, network.ID, network.Revision))
		}
	case len(found) == 0:
		did = "created a network"
		_, err = c.neutron.CreateNetwork(ctx, neutron.NewNetwork{Name: key.Name, Description: network.Spec.Gateway})
	case found[0].Description != network.Spec.Gateway:
		did = "updated the network"
		change := neutron.NetworkUpdate{Description: network.Spec.Gateway, Revision: found[0].Revision}
		_, err = c.neutron.UpdateNetwork(ctx, found[0].ID, change)
	}
	if err == nil {
		klog.FromContext(ctx).Info("Synced", "network", key, "did", did)
	}
	return err
}

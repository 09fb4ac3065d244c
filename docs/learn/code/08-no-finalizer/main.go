// Command 08-no-finalizer creates a Neutron network for each Network, and deletes it
// when the Network is missing in the cache. It sets no finalizer: so it loses deletions.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/samplecrd/network-controller/docs/learn/code/start"
	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions"
	networkinformers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions/samplecrd/v1"
	listers "github.com/samplecrd/network-controller/pkg/client/listers/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

func main() {
	endpoint := flag.String("neutron-endpoint", "http://127.0.0.1:9696", "`URL` of Neutron")
	start.Main(func(ctx context.Context, config *rest.Config) error { return run(ctx, config, *endpoint) })
}

func run(ctx context.Context, config *rest.Config, endpoint string) error {
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	neutronClient, err := openstack.New(endpoint, openstack.Options{})
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	networks := factory.Samplecrd().V1().Networks()
	c := &controller{
		networks: networks.Lister(), neutron: neutronClient,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
	}
	registration, err := networks.TypedInformer().AddTypedEventHandler(c.handlers(), cache.HandlerOptions{})
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, c.queue.ShutDown)
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if !cache.WaitFor(ctx, "", registration.HasSyncedChecker()) {
		return nil // stopped
	}
	fmt.Printf("the first list has %d Networks; %d keys wait\n", len(networks.Informer().GetStore().ListKeys()), c.queue.Len())
	for c.processNextWorkItem(ctx) { // one worker
	}
	return nil
}

type controller struct {
	networks listers.NetworkLister
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
	neutron  neutron.Client
}

func (c *controller) handlers() networkinformers.NetworkHandlerFuncs {
	return networkinformers.NetworkHandlerFuncs{
		AddFunc:    func(network *samplecrdv1.Network) { c.queue.Add(cache.MetaObjectToName(network)) },
		UpdateFunc: func(_, after *samplecrdv1.Network) { c.queue.Add(cache.MetaObjectToName(after)) },
		DeleteFunc: func(deleted networkinformers.DeletedNetwork) {
			// GetObjectName needs no object: a tombstone contains the key.
			key, how := deleted.GetObjectName(), "the watch reported it"
			if deleted.FinalStateUnknown != nil {
				how = "a tombstone: missing in a new list"
			}
			fmt.Printf("event: %s is deleted (%s)\n", key, how)
			c.queue.Add(key)
		},
	}
}

func (c *controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if err := c.syncHandler(ctx, key); err != nil {
		fmt.Printf("sync of %s failed: %v\n", key, err)
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	return true
}

// syncHandler creates the network of a Network. If the Network is missing in the cache,
// it was deleted, and its network is deleted, too.
func (c *controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	_, err := c.networks.Networks(key.Namespace).Get(key.Name)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return err
	}
	found, err := c.neutron.Networks(ctx, neutron.NetworkFilter{Name: key.Name})
	switch {
	case err != nil:
		return err
	case missing:
		for _, network := range found {
			err = errors.Join(err, c.neutron.DeleteNetwork(ctx, network.ID, network.Revision))
		}
		if err == nil && len(found) > 0 {
			fmt.Printf("sync: %s: missing in the cache; deleted network %s\n", key, found[0].ID)
		}
	case len(found) == 0:
		var created neutron.Network
		if created, err = c.neutron.CreateNetwork(ctx, neutron.NewNetwork{Name: key.Name}); err == nil {
			fmt.Printf("sync: %s: created network %s\n", key, created.ID)
		}
	}
	return err
}

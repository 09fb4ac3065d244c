// Command 04-drift creates a Neutron network for each Network object, and watches only
// Kubernetes. Its informer resyncs every two seconds. As in many courses, its handler
// ignores an update without a new resourceVersion; -sync-on-resync changes that.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

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
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

const neutronAddress = "127.0.0.1:9604"

func main() {
	syncOnResync := flag.Bool("sync-on-resync", false, "sync each Network at each resync")
	start.Main(func(ctx context.Context, config *rest.Config) error { return run(ctx, config, *syncOnResync) })
}

func run(ctx context.Context, config *rest.Config, syncOnResync bool) error {
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	server := embedded.New(embedded.Options{}) // a Neutron in memory
	if err := server.Listen(neutronAddress); err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	neutronClient, err := openstack.New(server.URL(), openstack.Options{})
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 2*time.Second) // the resync period
	networks := factory.Samplecrd().V1().Networks()
	c := &controller{
		networks: networks.Lister(), neutron: neutronClient, server: server, syncOnResync: syncOnResync,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
	}
	if _, err := networks.TypedInformer().AddTypedEventHandler(c.handlers(), cache.HandlerOptions{}); err != nil {
		return err
	}
	context.AfterFunc(ctx, c.queue.ShutDown)
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	for c.processNextWorkItem(ctx) { // one worker
	}
	return nil
}

type controller struct {
	networks     listers.NetworkLister
	queue        workqueue.TypedRateLimitingInterface[cache.ObjectName]
	neutron      neutron.Client
	server       *embedded.Server // which counts the requests
	syncOnResync bool
}

func (c *controller) handlers() networkinformers.NetworkHandlerFuncs {
	return networkinformers.NetworkHandlerFuncs{
		AddFunc: func(network *samplecrdv1.Network) { c.queue.Add(cache.MetaObjectToName(network)) },
		UpdateFunc: func(before, after *samplecrdv1.Network) {
			if before.ResourceVersion == after.ResourceVersion { // no change: the informer resyncs
				verdict := "ignored"
				if c.syncOnResync {
					verdict = "synced"
					c.queue.Add(cache.MetaObjectToName(after))
				}
				fmt.Printf("resync: %s still has resourceVersion %s: %s\n", after.Name, after.ResourceVersion, verdict)
				return
			}
			c.queue.Add(cache.MetaObjectToName(after))
		},
		DeleteFunc: func(deleted networkinformers.DeletedNetwork) { c.queue.Add(deleted.GetObjectName()) },
	}
}

func (c *controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if err := c.syncHandler(ctx, key); err != nil {
		fmt.Printf("sync of %s failed: %v\n", key.Name, err)
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	return true
}

// syncHandler looks in Neutron, and creates or deletes a network.
func (c *controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	_, err := c.networks.Networks(key.Namespace).Get(key.Name)
	deleted := apierrors.IsNotFound(err)
	if err != nil && !deleted {
		return err
	}
	found, err := c.neutron.Networks(ctx, neutron.NetworkFilter{Name: key.Name})
	switch {
	case err != nil:
		return err
	case deleted:
		for _, network := range found {
			err = errors.Join(err, c.neutron.DeleteNetwork(ctx, network.ID, network.Revision))
		}
	case len(found) == 0:
		created, creating := c.neutron.CreateNetwork(ctx, neutron.NewNetwork{Name: key.Name})
		err = creating
		fmt.Printf("sync: %s: created network %s\n", key.Name, created.ID)
	default:
		fmt.Printf("sync: %s: exists in Neutron; %d requests to Neutron so far\n", key.Name, len(c.server.Requests()))
	}
	return err
}

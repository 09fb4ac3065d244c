// Command 05-in-the-handler creates Neutron networks in two ways: in the event handler
// itself, or with -queue, in workers behind a queue. Its Neutron is in memory and slow:
// each request takes half a second.
package main

import (
	"context"
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
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

const neutronAddress = "127.0.0.1:9605"

func main() {
	queue := flag.Bool("queue", false, "put a queue between the informer and the work")
	start.Main(func(ctx context.Context, config *rest.Config) error { return run(ctx, config, *queue) })
}

func run(ctx context.Context, config *rest.Config, withQueue bool) error {
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	server := embedded.New(embedded.Options{})
	if err := server.Listen(neutronAddress); err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	server.Inject(embedded.Fault{Path: "/v2.0/networks", Delay: time.Second / 2})
	neutronClient, err := openstack.New(server.URL(), openstack.Options{})
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	networks := factory.Samplecrd().V1().Networks()
	w := &work{neutron: neutronClient, server: server}
	handlers := w.inHandler(ctx)
	if withQueue {
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
		context.AfterFunc(ctx, queue.ShutDown)
		handlers = onlyKeys(queue)
		get := func(key cache.ObjectName) (*samplecrdv1.Network, error) {
			return networks.Lister().Networks(key.Namespace).Get(key.Name)
		}
		for range 2 { // they may start before the cache is filled: until then, the queue has no keys
			go w.runWorker(ctx, queue, get)
		}
	}
	if _, err := networks.TypedInformer().AddTypedEventHandler(handlers, cache.HandlerOptions{}); err != nil {
		return err
	}
	fmt.Println("running; with a queue:", withQueue)
	networks.Informer().RunWithContext(ctx)
	return nil
}

type work struct {
	neutron neutron.Client
	server  *embedded.Server // which counts the requests
}

// inHandler returns handlers that do the work themselves.
func (w *work) inHandler(ctx context.Context) networkinformers.NetworkHandlerFuncs {
	try := func(network *samplecrdv1.Network) {
		if err := w.sync(ctx, network); err != nil {
			fmt.Printf("FAILED  %s: %v; lost until its next edit or a restart\n", network.Name, err)
		}
	}
	return networkinformers.NetworkHandlerFuncs{AddFunc: try, UpdateFunc: func(_, after *samplecrdv1.Network) { try(after) }}
}

// onlyKeys returns handlers that put keys into a queue.
func onlyKeys(queue workqueue.TypedInterface[cache.ObjectName]) networkinformers.NetworkHandlerFuncs {
	return networkinformers.NetworkHandlerFuncs{
		AddFunc:    func(network *samplecrdv1.Network) { queue.Add(cache.MetaObjectToName(network)) },
		UpdateFunc: func(_, after *samplecrdv1.Network) { queue.Add(cache.MetaObjectToName(after)) },
	}
}

func (w *work) runWorker(ctx context.Context, queue workqueue.TypedRateLimitingInterface[cache.ObjectName], get func(cache.ObjectName) (*samplecrdv1.Network, error)) {
	for {
		key, shutdown := queue.Get()
		if shutdown {
			return
		}
		network, err := get(key)
		if err == nil {
			err = w.sync(ctx, network)
		}
		if err == nil || apierrors.IsNotFound(err) {
			queue.Forget(key)
		} else {
			fmt.Printf("FAILED  %s: %v; attempt %d, more will come\n", key.Name, err, queue.NumRequeues(key)+1)
			queue.AddRateLimited(key)
		}
		queue.Done(key)
	}
}

// sync gives the Neutron network of a Network the gateway as its description. It takes
// two requests.
func (w *work) sync(ctx context.Context, network *samplecrdv1.Network) error {
	found, err := w.neutron.Networks(ctx, neutron.NetworkFilter{Name: network.Name})
	if err == nil && len(found) == 0 {
		_, err = w.neutron.CreateNetwork(ctx, neutron.NewNetwork{Name: network.Name, Description: network.Spec.Gateway})
	} else if err == nil {
		_, err = w.neutron.UpdateNetwork(ctx, found[0].ID, neutron.NetworkUpdate{Description: network.Spec.Gateway, Revision: found[0].Revision})
	}
	if err != nil {
		return err
	}
	age := time.Since(network.CreationTimestamp.Time).Round(time.Second)
	fmt.Printf("handled %s %s %v after its creation; %d requests to Neutron so far\n", network.Name, network.Spec.Gateway, age, len(w.server.Requests()))
	return nil
}

// Command 02-two-handlers shows what an informer does, step by step: its requests,
// what enters its FIFO, and two handlers that share one watch. The connection to the
// API server can be pulled like a cable:
//
//	curl -X POST 127.0.0.1:8002/pull
//	curl -X POST 127.0.0.1:8002/plug
//	curl -X POST '127.0.0.1:8002/plug?history=lost'
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/docs/learn/code/start"
	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions"
	networkinformers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions/samplecrd/v1"
)

func main() {
	start.Main(run)
}

func run(ctx context.Context, config *rest.Config) error {
	cable := &cable{}
	cable.attach(config)
	go func() { fmt.Println(http.ListenAndServe("127.0.0.1:8002", cable)) }() //nolint:gosec // for one reader
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	networks := informers.NewSharedInformerFactory(client, 0).Samplecrd().V1().Networks()
	cached := func(name string) string {
		if network, err := networks.Lister().Networks("default").Get(name); err == nil {
			return gateway(network)
		}
		return "nothing"
	}
	// The transform is called when the Reflector puts an object into the FIFO. It collects
	// a list before, and calls the transform there, too: twice for each object of a list.
	err = networks.Informer().SetTransform(func(object any) (any, error) {
		if network, ok := object.(*samplecrdv1.Network); ok {
			fmt.Printf("  Reflector: %s %s → FIFO (in the cache: %s)\n", network.Name, gateway(network), cached(network.Name))
		}
		return object, nil
	})
	for name, work := range map[string]time.Duration{"fast handler": 0, "slow handler": time.Second} {
		handlers := printer{name, work, cached}.handlers(ctx)
		_, adding := networks.TypedInformer().AddTypedEventHandler(handlers, cache.HandlerOptions{})
		err = errors.Join(err, adding)
	}
	if err != nil {
		return err
	}
	networks.Informer().RunWithContext(ctx)
	return nil
}

func gateway(network *samplecrdv1.Network) string {
	return cmp.Or(network.Spec.Gateway, "no gateway")
}

// printer prints each event after some work, and what the cache had before that.
type printer struct {
	name   string
	work   time.Duration
	cached func(name string) string
}

func (p printer) handlers(ctx context.Context) networkinformers.NetworkHandlerFuncs {
	return networkinformers.NetworkHandlerFuncs{
		AddFunc: func(network *samplecrdv1.Network) { p.print(ctx, network.Name, "added", gateway(network)) },
		UpdateFunc: func(before, after *samplecrdv1.Network) {
			p.print(ctx, after.Name, "updated", gateway(before)+" → "+gateway(after))
		},
		DeleteFunc: func(deleted networkinformers.DeletedNetwork) {
			why := "because its deletion was received"
			if deleted.FinalStateUnknown != nil {
				why = "because it is missing in the new list: DeletedFinalStateUnknown"
			}
			p.print(ctx, deleted.GetObjectName().Name, "deleted", why)
		},
	}
}

func (p printer) print(ctx context.Context, name, event, details string) {
	had := p.cached(name)
	select {
	case <-time.After(p.work):
		fmt.Printf("  %s: %s %s %s (in the cache: %s)\n", p.name, event, name, details, had)
	case <-ctx.Done():
	}
}

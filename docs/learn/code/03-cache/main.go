// Command 03-cache reads a Network from the cache of an informer and from the API
// server, and counts the requests. With -damage, it changes what the lister returned.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/docs/learn/code/start"
	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	typedv1 "github.com/samplecrd/network-controller/pkg/client/clientset/versioned/typed/samplecrd/v1"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions"
	networkinformers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions/samplecrd/v1"
	listers "github.com/samplecrd/network-controller/pkg/client/listers/samplecrd/v1"
)

const name = "example-network" // in the namespace default

func main() {
	damage := flag.Bool("damage", false, "change what the lister returned")
	start.Main(func(ctx context.Context, config *rest.Config) error { return run(ctx, config, *damage) })
}

// requests counts the requests to the API server.
type requests struct {
	atomic.Int64
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	r.Add(1)
	return r.next.RoundTrip(request)
}

func run(ctx context.Context, config *rest.Config, damage bool) error {
	config.QPS = -1 // no limit on this side
	counter := &requests{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { counter.next = next; return counter })
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	networks := factory.Samplecrd().V1().Networks()
	_, err = networks.TypedInformer().AddTypedEventHandler(networkinformers.NetworkHandlerFuncs{
		UpdateFunc: func(before, after *samplecrdv1.Network) {
			verdict := "a sync is needed"
			if before.Spec.Gateway == after.Spec.Gateway {
				verdict = "no difference, IGNORED"
			}
			if damage {
				fmt.Printf("handler: gateway %s → %s: %s\n", before.Spec.Gateway, after.Spec.Gateway, verdict)
			}
		},
	}, cache.HandlerOptions{})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		return err
	}
	fmt.Printf("the informer has sent %d request\n", counter.Load())

	cached, server := networks.Lister().Networks("default"), client.SamplecrdV1().Networks("default")
	if damage {
		return damaged(ctx, cached, server)
	}
	if err := compare(ctx, cached, server, counter); err != nil {
		return err
	}
	return write(ctx, cached, server)
}

// write changes an object, and looks at once whether the cache has the change.
func write(ctx context.Context, cached listers.NetworkNamespaceLister, server typedv1.NetworkInterface) error {
	behind := 0
	for i := range 100 {
		patch := fmt.Sprintf(`{"spec":{"gateway":"192.168.2.%d"}}`, 1+i)
		written, err := server.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		if read, err := cached.Get(name); err != nil || read.ResourceVersion != written.ResourceVersion {
			behind++
		}
	}
	fmt.Printf("100 writes: directly afterwards, the cache was behind %d times\n", behind)
	return nil
}

// compare reads an object from the cache and from the API server.
func compare(ctx context.Context, cached listers.NetworkNamespaceLister, server typedv1.NetworkInterface,
	counter *requests) error {
	before, begun := counter.Load(), time.Now()
	for range 10_000 {
		if _, err := cached.Get(name); err != nil {
			return err
		}
	}
	fmt.Printf("10000 reads from the cache: %d requests, %v\n", counter.Load()-before, time.Since(begun))
	before, begun = counter.Load(), time.Now()
	for range 100 {
		if _, err := server.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
	}
	fmt.Printf("100 reads from the API server: %d requests, %v\n", counter.Load()-before, time.Since(begun))
	return nil
}

// damaged changes an object in the cache, as many controllers do by mistake.
func damaged(ctx context.Context, cached listers.NetworkNamespaceLister, server typedv1.NetworkInterface) error {
	network, err := cached.Get(name)
	if err != nil {
		return err
	}
	network.Spec.Gateway = "192.168.9.9" // the mistake: this needs network = network.DeepCopy() first
	again, _ := cached.Get(name)
	truth, err := server.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	fmt.Printf("the cache has %s, the API server has %s\n", again.Spec.Gateway, truth.Spec.Gateway)
	<-ctx.Done()
	return nil
}

// Command 14-greeting is a small controller that is complete: it keeps a ConfigMap for
// each Greeting. It is a template for your own. api has the type, controller.go the
// pattern, and this file connects them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/samplecrd/network-controller/docs/learn/code/14-greeting/api"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "`path` of a kubeconfig file")
	workers := flag.Int("workers", 2, "number of workers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *workers); err != nil {
		fmt.Fprintln(os.Stderr, "14-greeting:", err)
		os.Exit(1) //nolint:gocritic // nothing is left that stop could end
	}
}

// run connects the parts: clients, two informers, and the controller.
func run(ctx context.Context, kubeconfig string, workers int) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	greetings, err := newGreetingInformer(config)
	if err != nil {
		return err
	}
	// The label keeps the ConfigMaps of others out of the cache.
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.LabelSelector = labelManagedBy + "=" + controllerName
	}))
	controller, err := NewController(client, greetings, factory.Core().V1().ConfigMaps())
	if err != nil {
		return err
	}
	go greetings.RunWithContext(ctx)
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	return controller.Run(ctx, workers)
}

// newGreetingInformer returns an informer without a generated client: a REST client that
// knows the types is enough to list and watch.
func newGreetingInformer(config *rest.Config) (cache.TypedSharedIndexInformer[*api.Greeting], error) {
	scheme := runtime.NewScheme()
	api.AddToScheme(scheme)
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &api.GroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for Greetings: %w", err)
	}
	source := cache.NewListWatchFromClient(client, "greetings", metav1.NamespaceAll, fields.Everything())
	return cache.NewTypedSharedIndexInformer[*api.Greeting](cache.NewSharedIndexInformer(source, &api.Greeting{}, 0, cache.Indexers{})), nil
}

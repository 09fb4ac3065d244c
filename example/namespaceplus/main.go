// Command namespaceplus gives tenants a namespace with everything that a NamespacePlus
// requests: a quota, limits, permissions, policies and a network. This file connects the
// parts. To learn how it works, read controller.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/clientcmd"

	myv1 "github.com/samplecrd/network-controller/example/namespaceplus/apis/mygroup/v1"
	clientset "github.com/samplecrd/network-controller/example/namespaceplus/client/clientset/versioned"
	informers "github.com/samplecrd/network-controller/example/namespaceplus/client/informers/externalversions"
	"github.com/samplecrd/network-controller/example/namespaceplus/tenant"
	"github.com/samplecrd/network-controller/pkg/glass"
)

type options struct {
	kubeconfig, namespace string
	workers               int
	debugPage             glass.Options
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "`path` of a kubeconfig; not needed in a Pod")
	flag.StringVar(&o.namespace, "namespace", "namespaceplus-system", "namespace of the Secret "+tenant.SecretName)
	flag.IntVar(&o.workers, "workers", 4, "number of workers")
	o.debugPage.AddFlags(flag.CommandLine)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "namespaceplus:", err)
		os.Exit(1) //nolint:gocritic // nothing is left that stop could end
	}
}

// clients are the clients of the API server, and the page that shows what they do.
type clients struct {
	tenants  clientset.Interface
	objects  dynamic.Interface  // writes objects of any kind
	metadata metadata.Interface // reads the metadata of objects of any kind
	kube     kubernetes.Interface
	page     *glass.Page
}

func connect(ctx context.Context, o options) (c clients, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return c, err
	}
	if c.page, err = o.debugPage.Serve(ctx, glass.Process{Name: "namespaceplus"}); err != nil {
		return c, err
	}
	config.Wrap(c.page.Kubernetes)
	config.QPS = -1 // the API server limits requests
	config.UserAgent = tenant.FieldManager
	var errs [4]error
	c.tenants, errs[0] = clientset.NewForConfig(config)
	c.objects, errs[1] = dynamic.NewForConfig(config)
	c.metadata, errs[2] = metadata.NewForConfig(config)
	c.kube, errs[3] = kubernetes.NewForConfig(config)
	return c, errors.Join(errs[:]...)
}

func run(ctx context.Context, o options) error {
	c, err := connect(ctx, o)
	if err != nil {
		return err
	}
	ofTenants := informers.NewSharedInformerFactory(c.tenants, 0)
	labeled := func(options *metav1.ListOptions) { options.LabelSelector = myv1.LabelTenant }
	ofOwned := metadatainformer.NewFilteredSharedInformerFactory(c.metadata, 0, metav1.NamespaceAll, labeled)
	owned := map[tenant.Kind]kubeinformers.GenericInformer{}
	for _, kind := range tenant.Kinds {
		_, err := c.kube.Discovery().ServerResourcesForGroupVersion(kind.GroupVersion().String())
		if apierrors.IsNotFound(err) && kind == tenant.Network {
			continue // the CRD is not installed: an informer would wait for it
		}
		if err != nil {
			return fmt.Errorf("looking for %s: %w", kind.Kind, err)
		}
		owned[kind] = ofOwned.ForResource(tenant.Resource(kind))
	}
	controller, err := NewController(c, o.namespace, ofTenants.Mygroup().V1().NamespacePluses(), owned)
	if err != nil {
		return err
	}
	ofTenants.StartWithContext(ctx)
	ofOwned.Start(ctx.Done())
	defer ofTenants.Shutdown()
	defer ofOwned.Shutdown()
	controller.Run(ctx, o.workers)
	return nil
}

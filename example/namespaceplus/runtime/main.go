// Command runtime is the program namespaceplus, written with controller-runtime. It
// decides with the same package tenant, and has the same tests. reconciler.go is what a
// user of the library writes in place of controller.go.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	myv1 "github.com/samplecrd/network-controller/example/namespaceplus/apis/mygroup/v1"
	"github.com/samplecrd/network-controller/example/namespaceplus/tenant"
	"github.com/samplecrd/network-controller/pkg/glass"
)

func main() {
	var debugPage glass.Options
	debugPage.AddFlags(flag.CommandLine)
	flag.Parse() // controller-runtime defines -kubeconfig
	ctrl.SetLogger(klog.Background())
	if err := run(debugPage); err != nil {
		fmt.Fprintln(os.Stderr, "runtime:", err)
		os.Exit(1)
	}
}

func run(debugPage glass.Options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	page, err := debugPage.Serve(ctx, glass.Process{Name: "namespaceplus on controller-runtime"})
	if err != nil {
		return err
	}
	config.Wrap(page.Kubernetes)
	config.QPS = -1 // the API server limits requests
	if err := myv1.Install(scheme.Scheme); err != nil {
		return err
	}
	labeled, err := labels.Parse(myv1.LabelTenant) // the caches contain only the objects of tenants
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme.Scheme, Metrics: server.Options{BindAddress: "0"},
		Cache: cache.Options{
			NewInformer: informersOn(page), DefaultLabelSelector: labeled,
			ByObject: map[client.Object]cache.ByObject{&myv1.NamespacePlus{}: {Label: labels.Everything()}},
		},
	})
	if err != nil {
		return err
	}
	r := &Reconciler{Client: manager.GetClient(), live: manager.GetAPIReader(), kinds: tenant.Kinds}
	_, err = manager.GetRESTMapper().RESTMapping(tenant.Network.GroupKind(), tenant.Network.Version)
	if err == nil {
		r.kinds = append(r.kinds, tenant.Network)
	} else if !meta.IsNoMatchError(err) { // without the CRD, the manager would wait for it, and then end
		return fmt.Errorf("looking for the kind Network: %w", err)
	}
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](200*time.Millisecond, time.Minute)
	options := controller.Options{MaxConcurrentReconciles: 4, RateLimiter: backoff, NewQueue: queuesOn(page)}
	if err := r.SetupWithManager(manager, options, page); err != nil {
		return err
	}
	return manager.Start(ctx)
}

// metadataOf returns an object whose type stands for the metadata of a kind.
func metadataOf(kind tenant.Kind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

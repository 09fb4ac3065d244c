// Package bare reaches the Networks of an API server with as little work as client-go
// allows: no cache and no limit of requests. The benchmark itself uses it, and so does
// the roofline.
package bare

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
)

// Resource is the resource of Networks in requests.
const Resource = "networks"

// NewClient returns a client for the Networks of an API group.
func NewClient(config *rest.Config, group string) (*rest.RESTClient, error) {
	version := schema.GroupVersion{Group: group, Version: "v1"}
	types := runtime.NewScheme()
	types.AddKnownTypeWithName(version.WithKind("Network"), &samplecrdv1.Network{})
	types.AddKnownTypeWithName(version.WithKind("NetworkList"), &samplecrdv1.NetworkList{})
	metav1.AddToGroupVersion(types, version)

	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath, config.QPS = &version, "/apis", -1
	config.NegotiatedSerializer = serializer.NewCodecFactory(types).WithoutConversion()
	return rest.RESTClientFor(config)
}

// Watch calls a function for all Networks of a namespace that exist, and for each later
// change, until the context ends. An empty namespace stands for all.
func Watch(
	ctx context.Context, client rest.Interface, namespace string, handle func(watch.EventType, *samplecrdv1.Network),
) error {
	all := &samplecrdv1.NetworkList{}
	if err := client.Get().Namespace(namespace).Resource(Resource).Do(ctx).Into(all); err != nil {
		return fmt.Errorf("listing Networks: %w", err)
	}
	for i := range all.Items {
		handle(watch.Added, &all.Items[i])
	}
	changes := cache.NewListWatchFromClient(client, Resource, namespace, fields.Everything())
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, all.ResourceVersion, changes)
	if err != nil {
		return fmt.Errorf("watching Networks: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		switch object := event.Object.(type) {
		case *samplecrdv1.Network:
			handle(event.Type, object)
		case *metav1.Status:
			return fmt.Errorf("watching Networks: %s", object.Message)
		}
	}
	if ctx.Err() != nil {
		return nil // the caller ended the watch
	}
	return errors.New("watching Networks: the watch ended")
}

// IsReady reports whether a Network is ready with its current spec.
func IsReady(network *samplecrdv1.Network) bool {
	return network.Status.ObservedGeneration == network.Generation &&
		meta.IsStatusConditionTrue(network.Status.Conditions, samplecrdv1.ConditionReady)
}

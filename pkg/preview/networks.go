package preview

import (
	"context"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	"github.com/samplecrd/network-controller/pkg/store"
)

// networkLists are lists of Networks. The list of all namespaces has the key NamespaceAll.
type networkLists = store.ByNamespace[[]*samplecrdv1.Network]

// list lists the Networks of the watched namespaces.
func (c Command) list(ctx context.Context, client clientset.Interface) (networkLists, error) {
	listed := networkLists{}
	for _, namespace := range c.Kube.Namespaces() {
		listed[namespace] = nil
		pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.SamplecrdV1().Networks(namespace).List(ctx, options)
		})
		err := pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
			listed[namespace] = append(listed[namespace], object.(*samplecrdv1.Network))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("listing Networks: %w", c.Explain(err))
		}
	}
	return listed, nil
}

// selectFrom returns the Networks to plan. With -f, these are the Networks in the files,
// which replace those in the list.
func (c Command) selectFrom(listed networkLists, stdin io.Reader) (selected manifests, err error) {
	positions := map[cache.ObjectName]int{}
	for _, networks := range listed {
		for i, network := range networks {
			positions[cache.MetaObjectToName(network)] = i
		}
		selected.networks = append(selected.networks, networks...)
	}
	if len(c.files) == 0 {
		return selected, nil
	}
	read, err := readManifests(c.files, stdin, c.Kube.DefaultNamespace())
	if err != nil {
		return selected, err
	}
	selected = manifests{errors: read.errors}
	for _, manifest := range read.networks {
		source := metav1.NamespaceAll
		if c.Kube.AreNamespacesLimited() {
			source = manifest.Namespace
		}
		if _, watched := listed[source]; !watched {
			selected.reject("the Network %s/%s is not in a namespace of -namespaces: the controller would ignore it",
				manifest.Namespace, manifest.Name)
			continue
		}
		applied := apply(nil, manifest)
		if i, exists := positions[cache.MetaObjectToName(manifest)]; exists {
			applied = apply(listed[source][i], manifest)
			listed[source][i] = applied
		} else {
			listed[source] = append(listed[source], applied)
		}
		selected.networks = append(selected.networks, applied)
	}
	return selected, nil
}

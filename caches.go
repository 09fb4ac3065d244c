package main

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions/samplecrd/v1"
	listers "github.com/samplecrd/network-controller/pkg/client/listers/samplecrd/v1"
)

// byNamespace has an informer, or what comes of one, for each namespace that is
// watched; or a single one, under metav1.NamespaceAll, for the whole cluster.
type byNamespace[T any] map[string]T

// of returns what has the objects of a namespace; false where it is not watched.
func (b byNamespace[T]) of(namespace string) (T, bool) {
	if one, ok := b[namespace]; ok {
		return one, true
	}
	all, ok := b[metav1.NamespaceAll]
	return all, ok
}

// networkCache is what an informer has seen of Networks.
type networkCache struct {
	// overlaid has, on top of that, what we have written ourselves and not seen
	// come back yet.
	overlaid cache.MutationCache
	lister   listers.NetworkLister // without that
	synced   cache.DoneChecker
}

// newNetworkCache prepares an informer, and has it tell handler what changes.
func newNetworkCache(logger klog.Logger, informer informers.TypedNetworkInformer, handler func(cache.MutationCache) networkHandler) (networkCache, error) {
	shared := informer.Informer()
	if err := shared.AddIndexers(cache.Indexers{byAdoptedNetwork: adoptedNetwork}); err != nil {
		return networkCache{}, fmt.Errorf("adding an index to the informer: %w", err)
	}
	if err := shared.SetWatchErrorHandlerWithContext(logWatchError); err != nil {
		return networkCache{}, fmt.Errorf("setting the informer's error handler: %w", err)
	}
	overlaid := cache.NewIntegerResourceVersionMutationCacheWithOptions(
		logger, shared.GetStore(), cache.MutationCacheOptions{Indexer: shared.GetIndexer(), MaxCacheSize: 10_000})
	registration, err := informer.TypedInformer().AddTypedEventHandler(handler(overlaid), cache.HandlerOptions{Logger: &logger})
	if err != nil {
		return networkCache{}, fmt.Errorf("adding the event handler: %w", err)
	}
	return networkCache{overlaid: overlaid, lister: informer.Lister(), synced: registration.HasSyncedChecker()}, nil
}

type networkHandler = cache.TypedResourceEventHandlerFuncs[*samplecrdv1.Network]

// networkCaches are the caches of all that is watched.
type networkCaches struct{ byNamespace[networkCache] }

// get returns a Network, or nil where there is none.
func (n networkCaches) get(key cache.ObjectName) (*samplecrdv1.Network, error) {
	in, watched := n.of(key.Namespace)
	if !watched {
		return nil, nil
	}
	object, exists, err := in.overlaid.GetByKey(key.String())
	if err != nil || !exists {
		return nil, err
	}
	return object.(*samplecrdv1.Network), nil
}

// wrote notes a Network as it is after we have written it.
func (n networkCaches) wrote(network *samplecrdv1.Network) {
	if in, watched := n.of(network.Namespace); watched {
		in.overlaid.Mutation(network)
	}
}

// list returns all Networks, without what we have written ourselves.
func (n networkCaches) list() (all []*samplecrdv1.Network) {
	for _, in := range n.byNamespace {
		some, _ := in.lister.List(labels.Everything()) // a cache in memory has no errors
		all = append(all, some...)
	}
	return all
}

// adopting returns the Networks that ask for a network that was there before.
func (n networkCaches) adopting(networkID string) (all []*samplecrdv1.Network) {
	for _, in := range n.byNamespace {
		some, _ := in.overlaid.ByIndex(byAdoptedNetwork, networkID) // the index is there
		for _, object := range some {
			all = append(all, object.(*samplecrdv1.Network))
		}
	}
	return all
}

// knows reports whether all Networks of a namespace are there.
func (n networkCaches) knows(namespace string) bool {
	in, watched := n.of(namespace)
	return watched && cache.IsDone(in.synced)
}

// synced are done when the caches have what there was at the start, but for some
// namespaces.
func (n networkCaches) synced(but []string) (all []cache.DoneChecker) {
	for namespace, in := range n.byNamespace {
		if !slices.Contains(but, namespace) {
			all = append(all, in.synced)
		}
	}
	return all
}

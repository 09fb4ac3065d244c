// Package store holds the Network objects that the informers have received,
// overlaid with what this process has written itself: a stale cache must not
// make the controller act twice.
package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions/samplecrd/v1"
	listers "github.com/samplecrd/network-controller/pkg/client/listers/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/observe"
)

// ByNamespace maps each watched namespace to its informer, or to something that
// belongs to it. If the whole cluster is watched, there is a single entry,
// [metav1.NamespaceAll].
type ByNamespace[T any] map[string]T

// For returns the entry that holds the objects of a namespace, or false if the
// namespace is not watched.
func (b ByNamespace[T]) For(namespace string) (T, bool) {
	if one, ok := b[namespace]; ok {
		return one, true
	}
	all, ok := b[metav1.NamespaceAll]
	return all, ok
}

// Handlers are event handlers for Networks.
type Handlers = cache.TypedResourceEventHandlerDetailedFuncs[*samplecrdv1.Network]

// Networks are the Network objects of all watched namespaces.
type Networks struct {
	sources  ByNamespace[source]
	observer observe.Observer
	// division is nil, unless these are a part of all Networks.
	division *Division
}

// source is one informer of Networks.
type source struct {
	informer informers.TypedNetworkInformer
	lister   listers.NetworkLister
	// overlay returns what this process has written until the informer has
	// received it.
	overlay cache.MutationCache
	synced  cache.DoneChecker
}

// New returns the Networks of these informers, which must not have been started.
func New(
	logger klog.Logger, from ByNamespace[informers.TypedNetworkInformer], onWatchError cache.WatchErrorHandlerWithContext,
	observer observe.Observer,
) (*Networks, error) {
	networks := &Networks{sources: ByNamespace[source]{}, observer: observer}
	for namespace, informer := range from {
		source, err := newSource(logger, informer, onWatchError, observer)
		if err != nil {
			return nil, fmt.Errorf("preparing the informer of Networks: %w", err)
		}
		networks.sources[namespace] = source
	}
	return networks, nil
}

func newSource(logger klog.Logger, informer informers.TypedNetworkInformer,
	onWatchError cache.WatchErrorHandlerWithContext, observer observe.Observer) (source, error) {
	shared := informer.Informer()
	if err := shared.AddIndexers(indexers); err != nil {
		return source{}, fmt.Errorf("adding an index: %w", err)
	}
	if err := shared.SetWatchErrorHandlerWithContext(onWatchError); err != nil {
		return source{}, fmt.Errorf("setting the watch error handler: %w", err)
	}
	if err := shared.SetTransform(func(object any) (any, error) {
		if network, ok := object.(*samplecrdv1.Network); ok {
			observer.Happened(cache.MetaObjectToName(network),
				observe.Event{Type: observe.Received, ResourceVersion: network.ResourceVersion})
		}
		return strip(object)
	}); err != nil {
		return source{}, fmt.Errorf("setting the transform: %w", err)
	}
	overlay := cache.NewIntegerResourceVersionMutationCacheWithOptions(
		logger, shared.GetStore(), cache.MutationCacheOptions{Indexer: shared.GetIndexer(), MaxCacheSize: 10_000})
	registration, err := informer.TypedInformer().AddTypedEventHandler(Handlers{ // keeps the overlay small
		UpdateFunc: func(_, after *samplecrdv1.Network) { overlay.OnAddOrUpdate(after) },
	}, cache.HandlerOptions{Logger: &logger})
	if err != nil {
		return source{}, fmt.Errorf("adding an event handler: %w", err)
	}
	return source{informer: informer, lister: informer.Lister(), overlay: overlay,
		synced: registration.HasSyncedChecker()}, nil
}

// strip is the transform of the informers: it drops metadata that the controller does
// not read. It may be much larger than all that it does read. So a whole object
// must never be sent to the API server: only patches. What is left shares equal
// values with other objects: change only a copy.
func strip(object any) (any, error) {
	if network, ok := object.(*samplecrdv1.Network); ok {
		network.ManagedFields = nil
		network.Annotations = shared(keep(network.Annotations,
			samplecrdv1.AnnotationCloud, samplecrdv1.AnnotationRetry, samplecrdv1.AnnotationPaused))
		network.Labels = keep(network.Labels, samplecrdv1.LabelManagedBy, samplecrdv1.LabelDeployment,
			samplecrdv1.LabelSource)
		intern(&network.Namespace, &network.Status.Cloud)
		for i := range network.Finalizers {
			intern(&network.Finalizers[i])
		}
		for i := range network.Status.Conditions {
			condition := &network.Status.Conditions[i]
			intern(&condition.Type, (*string)(&condition.Status), &condition.Reason)
		}
	}
	return object, nil
}

// intern replaces texts that many Networks have by ones that these share.
func intern(texts ...*string) {
	for _, text := range texts {
		*text = unique.Make(*text).Value()
	}
}

// lastAnnotations are those of the last Network. A map with one entry takes a quarter
// of the memory of a Network, and nearly all Networks are in one cloud.
var lastAnnotations atomic.Pointer[map[string]string]

// shared returns annotations that Networks share if they are equal.
func shared(annotations map[string]string) map[string]string {
	if last := lastAnnotations.Load(); last != nil && maps.Equal(*last, annotations) {
		return *last
	}
	if annotations != nil {
		lastAnnotations.Store(&annotations)
	}
	return annotations
}

// maxValueLength bounds an annotation in the cache. No valid value is longer.
const maxValueLength = 1024

// keep returns the entries with these names, or nil.
func keep(all map[string]string, names ...string) map[string]string {
	var kept map[string]string
	for _, name := range names {
		if value, ok := all[name]; ok {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[name] = strings.Clone(value[:min(len(value), maxValueLength)])
		}
	}
	return kept
}

// AddHandlers registers event handlers. They receive each existing Network as an
// addition first, also if the informers were started long ago.
func (n *Networks) AddHandlers(logger klog.Logger, handlers Handlers) error {
	return n.AddUnobserved(logger, observe.Handlers(n.observer, handlers))
}

// AddUnobserved is AddHandlers for another controller, which the observer does not see.
func (n *Networks) AddUnobserved(logger klog.Logger, handlers Handlers) error {
	if n.division != nil {
		n.division.add(n, handlers)
		return nil
	}
	for _, source := range n.sources {
		if _, err := source.informer.TypedInformer().AddTypedEventHandler(handlers,
			cache.HandlerOptions{Logger: &logger}); err != nil {
			return fmt.Errorf("adding event handlers for Networks: %w", err)
		}
	}
	return nil
}

// WaitForSync waits until the initial list of each namespace has been received,
// except for the namespaces given. It returns false if the context ends first.
func (n *Networks) WaitForSync(ctx context.Context, except ...string) bool {
	var synced []cache.DoneChecker
	for namespace, source := range n.sources {
		if !slices.Contains(except, namespace) {
			synced = append(synced, source.synced)
		}
	}
	return cache.WaitFor(ctx, "", synced...)
}

// Get returns a Network, or nil if it does not exist or its namespace is not
// watched. It returns ErrElsewhere for one in another part of the Networks.
func (n *Networks) Get(key cache.ObjectName) (*samplecrdv1.Network, error) {
	source, watched := n.sources.For(key.Namespace)
	if !watched {
		return nil, nil
	}
	object, exists, err := source.overlay.GetByKey(key.String())
	if err != nil || !exists {
		return nil, err
	}
	network := object.(*samplecrdv1.Network)
	if !n.reconciles(network) {
		return nil, ErrElsewhere
	}
	return network, nil
}

// ErrOutdated ends a sync of an object that has changed since it was read. The retry
// reads the newer one.
var ErrOutdated = errors.New("the object that was read is outdated")

// Written records a Network as the API server returned it after a write. It must not be
// changed afterwards.
func (n *Networks) Written(network *samplecrdv1.Network) {
	if source, watched := n.sources.For(network.Namespace); watched {
		stripped, _ := strip(network) // never fails
		source.overlay.Mutation(stripped)
	}
}

// List returns all Networks as the informers have received them.
func (n *Networks) List() (all []*samplecrdv1.Network) {
	if n.division != nil {
		for _, namespace := range n.division.namespacesOf(n) {
			all = append(all, n.in(namespace)...)
		}
		return all
	}
	for _, source := range n.sources {
		some, _ := source.lister.List(everything) // a list from memory does not fail
		all = append(all, some...)
	}
	return all
}

// Adopting returns the Networks whose spec.networkID is this one.
func (n *Networks) Adopting(networkID string) (all []*samplecrdv1.Network) {
	for _, source := range n.sources {
		all = append(all, source.byIndex(byAdoptedNetwork, networkID)...)
	}
	return slices.DeleteFunc(all, func(network *samplecrdv1.Network) bool { return !n.has(network.Namespace) })
}

// WithNetwork returns the Networks of a namespace whose status names a network that
// was created for them.
func (n *Networks) WithNetwork(namespace string) []*samplecrdv1.Network {
	if source, watched := n.sources.For(namespace); watched {
		return source.byIndex(byNamespaceWithNetwork, namespace)
	}
	return nil
}

func (s source) byIndex(index, value string) (all []*samplecrdv1.Network) {
	objects, _ := s.overlay.ByIndex(index, value) // the index exists
	for _, object := range objects {
		all = append(all, object.(*samplecrdv1.Network))
	}
	return all
}

// IsComplete reports whether the initial list of a namespace has been received.
// If not, a Network that Get does not return may exist.
func (n *Networks) IsComplete(namespace string) bool {
	source, watched := n.sources.For(namespace)
	return watched && cache.IsDone(source.synced) && n.has(namespace)
}

var everything = labels.Everything()

// The indexes of Networks: by spec.networkID, and by namespace those for which a
// network was created.
const (
	byAdoptedNetwork       = "adoptedNetwork"
	byNamespaceWithNetwork = "namespaceWithNetwork"
)

var indexers = cache.Indexers{byAdoptedNetwork: adoptedNetwork, byNamespaceWithNetwork: namespaceWithNetwork}

func adoptedNetwork(object any) ([]string, error) {
	if network, ok := object.(*samplecrdv1.Network); ok && network.Spec.NetworkID != "" {
		return []string{network.Spec.NetworkID}, nil
	}
	return nil, nil
}

func namespaceWithNetwork(object any) ([]string, error) {
	if network, ok := object.(*samplecrdv1.Network); ok && network.Status.NetworkID != "" && network.Spec.NetworkID == "" {
		return []string{network.Namespace}, nil
	}
	return nil, nil
}

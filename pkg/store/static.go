package store

import (
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	listers "github.com/samplecrd/network-controller/pkg/client/listers/samplecrd/v1"
)

// NewStatic returns Networks that were listed once, by watched namespace. They do not
// change, so handlers cannot be added.
func NewStatic(logger klog.Logger, listed ByNamespace[[]*samplecrdv1.Network]) (*Networks, error) {
	networks, done := &Networks{sources: ByNamespace[source]{}}, make(chan struct{})
	close(done)
	for namespace, all := range listed {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		if err := indexer.AddIndexers(indexers); err != nil {
			return nil, err
		}
		for _, network := range all {
			if err := indexer.Add(network); err != nil {
				return nil, err
			}
		}
		networks.sources[namespace] = source{
			lister: listers.NewNetworkLister(indexer),
			overlay: cache.NewIntegerResourceVersionMutationCacheWithOptions(
				logger, indexer, cache.MutationCacheOptions{Indexer: indexer}),
			synced: doneChecker(done),
		}
	}
	return networks, nil
}

// doneChecker is a list that is complete.
type doneChecker chan struct{}

func (doneChecker) Name() string            { return "Networks that were listed once" }
func (d doneChecker) Done() <-chan struct{} { return d }

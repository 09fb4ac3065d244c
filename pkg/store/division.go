package store

import (
	"errors"
	"sync"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
)

// ErrElsewhere is the error of a Network whose namespace belongs to another part of the
// Networks, or leaves this one.
var ErrElsewhere = errors.New("another controller reconciles the Network, or it waits for one")

// Division divides Networks into parts by their namespaces. A part is like Networks that
// contain nothing else. There is one event handler for all of them, however many there are.
type Division struct {
	all    *Networks
	rest   *Networks
	wanted func(namespace string)

	mu       sync.RWMutex
	parts    map[string]*Networks // by namespace
	limits   map[string]limit     // by namespace
	handlers map[*Networks]Handlers
}

// limit reports whether a Network is still reconciled.
type limit func(*samplecrdv1.Network) bool

// Divide returns a Division in which no namespace belongs to a part. Wanted is called, often
// and from event handlers, with the namespaces that belong to none and of which there is a
// Network, or for which somebody asks the part Rest.
func (n *Networks) Divide(wanted func(namespace string)) *Division {
	d := &Division{all: n, wanted: wanted,
		parts: map[string]*Networks{}, limits: map[string]limit{}, handlers: map[*Networks]Handlers{}}
	d.rest = d.NewPart()
	return d
}

// Rest returns the part that is always there. Others are asked for namespaces by who writes
// to their clouds, and cannot want one.
func (d *Division) Rest() *Networks { return d.rest }

// Start passes on events to the parts from now on.
func (d *Division) Start(logger klog.Logger) error {
	return d.all.AddUnobserved(logger, Handlers{
		AddFunc: func(network *samplecrdv1.Network, isInInitialList bool) {
			if handlers, ok := d.handlersFor(network.Namespace, true); ok {
				handlers.AddFunc(network, isInInitialList)
			}
		},
		UpdateFunc: func(before, after *samplecrdv1.Network) {
			if handlers, ok := d.handlersFor(after.Namespace, true); ok {
				handlers.UpdateFunc(before, after)
			}
		},
		DeleteFunc: func(deleted cache.DeletedObject[*samplecrdv1.Network]) {
			if handlers, ok := d.handlersFor(deleted.GetObjectName().Namespace, false); ok {
				handlers.DeleteFunc(deleted)
			}
		},
	})
}

func (d *Division) handlersFor(namespace string, wanted bool) (handlers Handlers, ok bool) {
	d.mu.RLock()
	part := d.parts[namespace]
	handlers, ok = d.handlers[part]
	d.mu.RUnlock()
	if part == nil && wanted {
		d.wanted(namespace)
	}
	return handlers, ok
}

// NewPart returns an empty part.
func (d *Division) NewPart() *Networks {
	part := *d.all
	part.division = d
	return &part
}

// Drop forgets a part without namespaces.
func (d *Division) Drop(part *Networks) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.handlers, part)
}

// Assign makes a namespace belong to a part, or to none if the part is nil. The handlers of
// the part receive all Networks of the namespace, also if it belonged to it before. A limit
// ends.
func (d *Division) Assign(namespace string, part *Networks) {
	d.mu.Lock()
	delete(d.limits, namespace)
	if part == nil {
		delete(d.parts, namespace)
	} else {
		d.parts[namespace] = part
	}
	handlers, ok := d.handlers[part]
	d.mu.Unlock()
	if ok {
		d.all.replay(namespace, handlers)
	}
}

// Limit makes the part of a namespace reconcile only those Networks for which reconciled
// returns true, until the namespace is assigned again.
func (d *Division) Limit(namespace string, reconciled func(*samplecrdv1.Network) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limits[namespace] = reconciled
}

// In returns the Networks of a namespace, whatever part it belongs to.
func (d *Division) In(namespace string) []*samplecrdv1.Network { return d.all.in(namespace) }

func (d *Division) namespacesOf(part *Networks) (namespaces []string) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for namespace, its := range d.parts {
		if its == part {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}

// add sets the handlers of a part.
func (d *Division) add(part *Networks, handlers Handlers) {
	d.mu.Lock()
	d.handlers[part] = handlers
	d.mu.Unlock()
	for _, namespace := range d.namespacesOf(part) {
		d.all.replay(namespace, handlers)
	}
}

func (n *Networks) replay(namespace string, handlers Handlers) {
	for _, network := range n.in(namespace) {
		handlers.AddFunc(network, true)
	}
}

// in returns the Networks of a namespace as the informer has received them.
func (n *Networks) in(namespace string) []*samplecrdv1.Network {
	source, watched := n.sources.For(namespace)
	if !watched {
		return nil
	}
	all, _ := source.lister.Networks(namespace).List(everything) // a list from memory does not fail
	return all
}

// reconciles reports whether a Network is one of these, and is not kept from them by a limit.
func (n *Networks) reconciles(network *samplecrdv1.Network) bool {
	if !n.has(network.Namespace) || n.division == nil {
		return n.division == nil
	}
	n.division.mu.RLock()
	defer n.division.mu.RUnlock()
	reconciled := n.division.limits[network.Namespace]
	return reconciled == nil || reconciled(network)
}

// has reports whether a namespace belongs to these Networks.
func (n *Networks) has(namespace string) bool {
	if n.division == nil {
		return true
	}
	n.division.mu.RLock()
	part := n.division.parts[namespace]
	n.division.mu.RUnlock()
	if part == nil && n == n.division.rest {
		n.division.wanted(namespace)
	}
	return part == n
}

package main

import (
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/example/aggregated/v1alpha1"
)

type (
	network = v1alpha1.NeutronNetwork
	objects = map[cache.ObjectName]*network
)

// state is what is served: what etcd has for other API servers, and lost when the process
// ends. It is replaced as a whole, and never changed. Its version is a time in microseconds,
// so that of another process is none of this one.
type state struct {
	version  uint64
	objects  objects
	listed   time.Time     // when the list of Neutron began; zero before the first one
	failure  error         // why Neutron could not be listed since
	replaced chan struct{} // closed when there are other objects
}

// within is the version of the changes that lead to a state, which no state has: a client
// that has received some of them, and not all, cannot continue there, and lists again.
func (s *state) within() string { return strconv.FormatUint(s.version-1, 10) }

// replace makes a state the present one. Objects that are the same keep their version. So
// does the state, if all are.
func replace(present *atomic.Pointer[state], next *state) {
	last := present.Load()
	next.version = max(last.version+2, uint64(time.Now().UnixMicro()))
	isSame := len(next.objects) == len(last.objects) && last.version > 0
	for key, object := range next.objects {
		before := last.objects[key]
		if before != nil && before.UID == object.UID && equality.Semantic.DeepEqual(before.Status, object.Status) {
			next.objects[key] = before
			continue
		}
		object.ResourceVersion, isSame = next.within(), false
	}
	if isSame {
		next.version, next.replaced = last.version, last.replaced
		present.Store(next)
		return
	}
	next.replaced = make(chan struct{})
	present.Store(next)
	close(last.replaced)
}

// selection is what a request selects.
type selection struct {
	namespace string // or all
	options   *internalversion.ListOptions
}

func (s selection) of(all objects) objects {
	selected := objects{}
	for key, object := range all {
		if (s.namespace == metav1.NamespaceAll || s.namespace == object.Namespace) &&
			(s.options.LabelSelector == nil || s.options.LabelSelector.Matches(labels.Set(object.Labels))) &&
			(s.options.FieldSelector == nil || s.options.FieldSelector.Matches(object.Fields())) {
			selected[key] = object
		}
	}
	return selected
}

// difference returns the events that lead from one state to another, for a client that sees
// only the selection. As a controller does, it compares states: it does not matter how many
// there were between, so a slow client needs neither a buffer nor a history.
func (s selection) difference(from, to *state) (events []watch.Event) {
	before, after := s.of(from.objects), s.of(to.objects)
	for key, object := range after {
		switch was := before[key]; {
		case was == nil:
			events = append(events, watch.Event{Type: watch.Added, Object: object.DeepCopy()})
		case was != object:
			events = append(events, watch.Event{Type: watch.Modified, Object: object.DeepCopy()})
		}
	}
	for key, object := range before {
		if after[key] == nil {
			last := object.DeepCopy()
			last.ResourceVersion = to.within()
			events = append(events, watch.Event{Type: watch.Deleted, Object: last})
		}
	}
	return events
}

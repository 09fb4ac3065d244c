package observe

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// object is a pointer to an object of Kubernetes.
type object interface {
	comparable
	metav1.Object
}

// Handlers returns event handlers whose calls an observer sees.
func Handlers[T object](observer Observer,
	next cache.TypedResourceEventHandlerDetailedFuncs[T]) cache.TypedResourceEventHandlerDetailedFuncs[T] {
	return cache.TypedResourceEventHandlerDetailedFuncs[T]{
		AddFunc: func(object T, isInInitialList bool) {
			handle(observer, cache.MetaObjectToName(object), added(object), func() { next.AddFunc(object, isInInitialList) })
		},
		UpdateFunc: func(before, after T) {
			handle(observer, cache.MetaObjectToName(after), updated(before, after), func() { next.UpdateFunc(before, after) })
		},
		DeleteFunc: func(deleted cache.DeletedObject[T]) {
			handle(observer, deleted.GetObjectName(), Event{Cause: "deleted"}, func() { next.DeleteFunc(deleted) })
		},
	}
}

// Informer returns an informer with which an observer sees the calls of event handlers: of
// those that are added to what it returns.
func Informer(observer Observer, informer cache.SharedIndexInformer) cache.SharedIndexInformer {
	return observedInformer{informer, receiving{observer}}
}

// receiving is an observer of event handlers only: that an object was received is known when
// its handler begins.
type receiving struct{ Observer }

func (r receiving) Happened(key cache.ObjectName, event Event) {
	if event.Type == Handling {
		r.Observer.Happened(key, Event{Type: Received, ResourceVersion: event.ResourceVersion})
	}
	r.Observer.Happened(key, event)
}

type observedInformer struct {
	cache.SharedIndexInformer
	observer Observer
}

func (i observedInformer) AddEventHandler(
	next cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(next, cache.HandlerOptions{})
}

func (i observedInformer) AddEventHandlerWithResyncPeriod(
	next cache.ResourceEventHandler, period time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(next, cache.HandlerOptions{ResyncPeriod: &period})
}

func (i observedInformer) AddEventHandlerWithOptions(
	next cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithOptions(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, isInInitialList bool) {
			handle(i.observer, nameOf(object), added(metaOf(object)), func() { next.OnAdd(object, isInInitialList) })
		},
		UpdateFunc: func(before, after any) {
			handle(i.observer, nameOf(after), updated(metaOf(before), metaOf(after)), func() { next.OnUpdate(before, after) })
		},
		DeleteFunc: func(deleted any) {
			handle(i.observer, nameOf(deleted), Event{Cause: "deleted"}, func() { next.OnDelete(deleted) })
		},
	}, options)
}

func nameOf(object any) cache.ObjectName {
	name, _ := cache.DeletionHandlingObjectToName(object) // an informer keeps nothing without a name
	return name
}

func metaOf(object any) metav1.Object {
	if of, err := meta.Accessor(object); err == nil {
		return of
	}
	return &metav1.ObjectMeta{}
}

// handle calls an event handler, and lets an observer see it.
func handle(observer Observer, key cache.ObjectName, event Event, call func()) {
	event.Type = Handling
	observer.Happened(key, event)
	call()
	observer.Happened(key, Event{Type: Handled})
}

func added(object metav1.Object) Event {
	return Event{Cause: "added", ResourceVersion: object.GetResourceVersion()}
}

func updated(before, after metav1.Object) Event {
	return Event{Cause: "updated", ResourceVersion: after.GetResourceVersion(), Changed: changed(before, after)}
}

// changed names what an update has changed.
func changed(before, after metav1.Object) string {
	switch {
	case before.GetUID() != after.GetUID():
		return "object"
	case before.GetResourceVersion() == after.GetResourceVersion():
		return "nothing"
	case before.GetDeletionTimestamp() == nil && after.GetDeletionTimestamp() != nil:
		return "deletionTimestamp"
	case before.GetGeneration() != after.GetGeneration():
		return "spec"
	case !slices.Equal(before.GetFinalizers(), after.GetFinalizers()):
		return "finalizers"
	case !maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
		!maps.Equal(before.GetLabels(), after.GetLabels()):
		return "metadata"
	}
	return "status"
}

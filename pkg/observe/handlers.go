package observe

import (
	"maps"
	"slices"
	"time"

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
	handle := func(key cache.ObjectName, event Event, call func()) {
		event.Type = Handling
		observer.Happened(key, event)
		call()
		observer.Happened(key, Event{Type: Handled})
	}
	return cache.TypedResourceEventHandlerDetailedFuncs[T]{
		AddFunc: func(object T, isInInitialList bool) {
			event := Event{Cause: "added", ResourceVersion: object.GetResourceVersion()}
			handle(cache.MetaObjectToName(object), event, func() { next.OnAdd(object, isInInitialList) })
		},
		UpdateFunc: func(before, after T) {
			event := Event{Cause: "updated", ResourceVersion: after.GetResourceVersion(), Changed: changed(before, after)}
			handle(cache.MetaObjectToName(after), event, func() { next.OnUpdate(before, after) })
		},
		DeleteFunc: func(deleted cache.DeletedObject[T]) {
			handle(deleted.GetObjectName(), Event{Cause: "deleted"}, func() { next.OnDelete(deleted) })
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
	handlers := cache.TypedResourceEventHandlerDetailedFuncs[metav1.Object]{
		AddFunc:    func(object metav1.Object, isInInitialList bool) { next.OnAdd(object, isInInitialList) },
		UpdateFunc: func(before, after metav1.Object) { next.OnUpdate(before, after) },
		DeleteFunc: func(deleted cache.DeletedObject[metav1.Object]) {
			if unknown := deleted.FinalStateUnknown; unknown != nil {
				next.OnDelete(*unknown)
			} else {
				next.OnDelete(deleted.OptionalObj)
			}
		},
	}
	typed := cache.NewTypedSharedIndexInformer[metav1.Object](i.SharedIndexInformer)
	return typed.AddTypedEventHandler(Handlers(i.observer, handlers), options)
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

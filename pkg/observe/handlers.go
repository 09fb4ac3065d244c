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
	return observedInformer{informer, observer}
}

type observedInformer struct {
	cache.SharedIndexInformer
	observer Observer
}

// AddEventHandler implements cache.SharedInformer.
func (i observedInformer) AddEventHandler(
	next cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandler(handler{i.observer, next})
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer.
func (i observedInformer) AddEventHandlerWithResyncPeriod(
	next cache.ResourceEventHandler, period time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(handler{i.observer, next}, period)
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (i observedInformer) AddEventHandlerWithOptions(
	next cache.ResourceEventHandler, options cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithOptions(handler{i.observer, next}, options)
}

// handler is an event handler whose calls an observer sees.
type handler struct {
	observer Observer
	next     cache.ResourceEventHandler
}

// OnAdd implements cache.ResourceEventHandler.
func (h handler) OnAdd(object any, isInInitialList bool) {
	call := func() { h.next.OnAdd(object, isInInitialList) }
	if of, ok := object.(metav1.Object); ok {
		h.handle(cache.MetaObjectToName(of), added(of), call)
		return
	}
	call()
}

// OnUpdate implements cache.ResourceEventHandler.
func (h handler) OnUpdate(before, after any) {
	call := func() { h.next.OnUpdate(before, after) }
	was, ok := before.(metav1.Object)
	is, isObject := after.(metav1.Object)
	if ok && isObject {
		h.handle(cache.MetaObjectToName(is), updated(was, is), call)
		return
	}
	call()
}

// OnDelete implements cache.ResourceEventHandler.
func (h handler) OnDelete(object any) {
	call := func() { h.next.OnDelete(object) }
	if name, err := cache.DeletionHandlingObjectToName(object); err == nil {
		h.handle(name, Event{Cause: "deleted"}, call)
		return
	}
	call()
}

// handle calls the event handler. That the object was received is known only now.
func (h handler) handle(key cache.ObjectName, event Event, call func()) {
	h.observer.Happened(key, Event{Type: Received, ResourceVersion: event.ResourceVersion})
	handle(h.observer, key, event, call)
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

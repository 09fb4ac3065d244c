package observe

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// object is a pointer to an object of Kubernetes.
type object interface {
	comparable
	metav1.Object
}

// Handlers returns event handlers whose calls an observer sees.
func Handlers[T object](observer Observer, next cache.TypedResourceEventHandlerDetailedFuncs[T]) cache.TypedResourceEventHandlerDetailedFuncs[T] {
	handle := func(key cache.ObjectName, event Event, handler func()) {
		event.Type = Handling
		observer.Happened(key, event)
		handler()
		observer.Happened(key, Event{Type: Handled})
	}
	return cache.TypedResourceEventHandlerDetailedFuncs[T]{
		AddFunc: func(object T, isInInitialList bool) {
			handle(cache.MetaObjectToName(object), Event{Cause: "added", ResourceVersion: object.GetResourceVersion()},
				func() { next.AddFunc(object, isInInitialList) })
		},
		UpdateFunc: func(before, after T) {
			handle(cache.MetaObjectToName(after), Event{Cause: "updated", ResourceVersion: after.GetResourceVersion(), Changed: changed(before, after)},
				func() { next.UpdateFunc(before, after) })
		},
		DeleteFunc: func(deleted cache.DeletedObject[T]) {
			handle(deleted.GetObjectName(), Event{Cause: "deleted"}, func() { next.DeleteFunc(deleted) })
		},
	}
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
	case !maps.Equal(before.GetAnnotations(), after.GetAnnotations()) || !maps.Equal(before.GetLabels(), after.GetLabels()):
		return "metadata"
	}
	return "status"
}

package observe

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// registered is an informer that keeps the event handlers that are added.
type registered struct {
	cache.SharedIndexInformer
	handlers cache.ResourceEventHandler
}

func (r *registered) AddEventHandlerWithOptions(
	handlers cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	r.handlers = handlers
	return nil, nil
}

// TestInformer: event handlers receive what the informer passes to them, also the tombstone of
// an object whose deletion it has missed.
func TestInformer(t *testing.T) {
	var got []any
	informer := &registered{}
	_, err := Informer(Nothing{}, informer).AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(object any, isInInitialList bool) { got = append(got, object, isInInitialList) },
		UpdateFunc: func(before, after any) { got = append(got, before, after) },
		DeleteFunc: func(deleted any) { got = append(got, deleted) },
	})
	if err != nil {
		t.Fatal(err)
	}
	before, after := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadata{}
	tombstone := cache.DeletedFinalStateUnknown{Key: "default/example"}
	informer.handlers.OnAdd(before, true)
	informer.handlers.OnUpdate(before, after)
	informer.handlers.OnDelete(after)
	informer.handlers.OnDelete(tombstone)
	for i, want := range []any{before, true, before, after, after, tombstone} {
		if i >= len(got) || got[i] != want {
			t.Fatalf("the handlers received %v; %d is not %v", got, i, want)
		}
	}
}

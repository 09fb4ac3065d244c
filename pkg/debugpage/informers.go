package debugpage

import (
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/store"
)

// The kinds of the informers.
const (
	kindNetwork    = "Network"
	kindDeployment = "Deployment"
)

// informer is what is known of an informer.
type informer struct {
	kind, namespace string
	keys            func() []string // of the objects in its indexer
	// The following fields need the lock of the Recorder.
	activity       string
	since          time.Time
	lists, watches int
	lastError      string
}

// The activities of an informer.
const (
	listing  = "listing"
	watching = "watching"
	waiting  = "waiting"
)

// AddInformer adds an informer, which has not been started. The function returns the
// keys of the objects in its indexer.
func (r *Recorder) AddInformer(kind, namespace string, keys func() []string) {
	r.set(func() {
		r.informers = append(r.informers, &informer{kind: kind, namespace: namespace, keys: keys, activity: waiting, since: r.clock.Now()})
	})
}

// handling is an event while its handler runs.
type handling struct {
	cause Cause
	added bool // whether the handler has added the key
}

// Received implements store.Observer: it records that the API server sent an object.
func (r *Recorder) Received(network *samplecrdv1.Network) {
	if r.on {
		r.moments.add(r.clock.Now(), StageWatch, cache.MetaObjectToName(network), "resourceVersion "+network.ResourceVersion, 0, false)
	}
}

// Wrap implements store.Observer: it returns handlers that record their calls.
func (r *Recorder) Wrap(next store.Handlers) store.Handlers {
	if !r.on {
		return next
	}
	r.set(func() { r.leads = true }) // only a leader has handlers
	return store.Handlers{
		AddFunc: func(network *samplecrdv1.Network, isInInitialList bool) {
			end := r.handle(&r.handlers.Add, cache.MetaObjectToName(network), Cause{Type: "added", ResourceVersion: network.ResourceVersion})
			next.AddFunc(network, isInInitialList)
			end()
		},
		UpdateFunc: func(before, after *samplecrdv1.Network) {
			end := r.handle(&r.handlers.Update, cache.MetaObjectToName(after), Cause{Type: "updated", ResourceVersion: after.ResourceVersion, Changed: changed(before, after)})
			next.UpdateFunc(before, after)
			end()
		},
		DeleteFunc: func(deleted cache.DeletedObject[*samplecrdv1.Network]) {
			end := r.handle(&r.handlers.Delete, deleted.GetObjectName(), Cause{Type: "deleted"})
			next.DeleteFunc(deleted)
			end()
		},
	}
}

// handle records that a handler begins. The function that it returns records its end.
func (r *Recorder) handle(count *int, key cache.ObjectName, cause Cause) (end func()) {
	cause.Time = r.clock.Now()
	event := &handling{cause: cause}
	r.mu.Lock()
	*count++
	r.handling[key] = event
	r.mu.Unlock()
	text := cause.Type
	if cause.Changed != "" {
		text += ": " + cause.Changed
	}
	for _, stage := range []Stage{StageFIFO, StageIndexer, StageHandler} {
		r.moments.add(cause.Time, stage, key, text, 0, false)
	}
	return func() {
		r.mu.Lock()
		delete(r.handling, key)
		if !event.added {
			r.handlers.Skipped++
		}
		r.mu.Unlock()
		if !event.added {
			r.moments.add(r.clock.Now(), StageSkipped, key, text, 0, false)
		}
	}
}

// changed names what an update has changed.
func changed(before, after *samplecrdv1.Network) string {
	switch {
	case before.UID != after.UID:
		return "object"
	case before.ResourceVersion == after.ResourceVersion:
		return "nothing"
	case before.DeletionTimestamp == nil && after.DeletionTimestamp != nil:
		return "deletionTimestamp"
	case before.Generation != after.Generation:
		return "spec"
	case !slices.Equal(before.Finalizers, after.Finalizers):
		return "finalizers"
	case !maps.Equal(before.Annotations, after.Annotations) || !maps.Equal(before.Labels, after.Labels):
		return "metadata"
	}
	return "status"
}

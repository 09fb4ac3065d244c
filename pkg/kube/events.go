package kube

import (
	"context"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
)

// NewBroadcaster starts to send events in the background, until it is shut down.
// The last ones may be lost at shutdown: the status contains their text, too.
func NewBroadcaster(ctx context.Context, client kubernetes.Interface) (events.EventBroadcaster, error) {
	broadcaster := events.NewBroadcaster(eventSink{&events.EventSinkImpl{Interface: client.EventsV1()}})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, fmt.Errorf("starting to send events: %w", err)
	}
	return broadcaster, nil
}

// eventSink sends events, except to a namespace that is being deleted: it accepts
// none, and each would be logged as an error.
type eventSink struct{ events.EventSink }

// Create implements events.EventSink.
func (s eventSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	created, err := s.EventSink.Create(ctx, event)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return event, nil
	}
	return created, err
}

// RecordEvent records an event. Client-go merges events that differ only in their
// note, and keeps the first note. A hash of the note in the action, which is not
// displayed, prevents that.
func RecordEvent(recorder events.EventRecorder, regarding runtime.Object, eventType, reason, action, note string) {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(note)) // never fails
	recorder.Eventf(regarding, nil, eventType, reason, fmt.Sprintf("%s-%08x", action, hash.Sum32()), "%s", note)
}

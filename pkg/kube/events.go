package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// NewEventRecorder returns client-go's recorder of the events of a component about objects
// of a scheme, until the context ends. It never waits: events are sent in the background,
// limited for each object, and lost if the API server does not accept them.
func NewEventRecorder(
	ctx context.Context, client kubernetes.Interface, scheme *runtime.Scheme, component string,
) record.EventRecorder {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return broadcaster.NewRecorder(scheme, corev1.EventSource{Component: component})
}

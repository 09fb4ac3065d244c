package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/samplecrd/network-controller/pkg/turns"
)

// Why an event is lost.
const (
	LostLimit       = "limit"       // the object had too many events, or the same one a short time ago
	LostQueue       = "queue"       // the queue was full: the API server is too slow
	LostRejected    = "rejected"    // the API server rejected it
	LostNamespace   = "namespace"   // its namespace is being deleted, and accepts none
	LostUnavailable = "unavailable" // the API server was unavailable, several times
	LostStopped     = "stopped"     // the program ended first
)

// LostReasons are all reasons why an event is lost.
var LostReasons = []string{LostLimit, LostQueue, LostRejected, LostNamespace, LostUnavailable, LostStopped}

const (
	// maxQueuedEvents is more than a burst of Networks needs, and takes less than 5 MB.
	maxQueuedEvents = 10_000
	// flushTimeout limits how long Stop takes.
	flushTimeout = 5 * time.Second
	// patience is how long the events of other namespaces wait for a response: an
	// admission webhook may delay those of one namespace.
	patience = time.Second
	// maxSending bounds how many are being sent at a time.
	maxSending = 16
)

// sendBackoff are the attempts to send one event, which take half a minute.
var sendBackoff = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 6}

// Events records events: it limits them for each object, and sends them in the
// background, one after the other, and each namespace has its turn. A slow API server
// delays only them, and what is slow in a namespace delays only its own. An event is
// never merged with another one. It is an [events.EventRecorder].
//
// [events.EventRecorder]: https://pkg.go.dev/k8s.io/client-go/tools/events#EventRecorder
type Events struct {
	client               eventsclient.EventsGetter
	scheme               *runtime.Scheme
	controller, instance string
	clock                clock.PassiveClock
	logger               klog.Logger
	lost                 func(reason string)
	limits               *eventLimits

	mu       sync.Mutex
	queue    *turns.Line[*queuedEvent]
	sending  map[string][]*queuedEvent // by namespace of an event that is being sent: the next ones
	held     int                       // the number of these
	full     bool                      // an event was dropped since the queue was empty
	lastName int64                     // the time in the name of the last event
	unsent   int                       // how many events were not sent because of Stop

	changed  chan struct{} // has a value if next may have another result
	stopping chan struct{} // closed by Stop
	ended    chan struct{} // closed when nothing is sent any more
	cancel   context.CancelFunc
	stopOnce sync.Once
}

// queuedEvent is what an event consists of, in a fourth of the memory of one.
type queuedEvent struct {
	regarding                       *corev1.ObjectReference
	at                              time.Time
	eventType, reason, action, note string
}

// NewEvents starts to send events of a controller, until they are stopped. The
// function lost is called for each event that is not sent.
func NewEvents(ctx context.Context, client eventsclient.EventsGetter, scheme *runtime.Scheme, controller string, clock clock.PassiveClock, lost func(reason string)) *Events {
	hostname, _ := os.Hostname() // for people who read the event
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e := &Events{
		client: client, scheme: scheme, controller: controller, instance: controller + "-" + hostname,
		clock: clock, logger: klog.FromContext(ctx), lost: lost, limits: newEventLimits(clock),
		queue: turns.New[*queuedEvent](), sending: map[string][]*queuedEvent{},
		changed: make(chan struct{}, 1), stopping: make(chan struct{}), ended: make(chan struct{}), cancel: cancel,
	}
	go e.run(ctx)
	return e
}

// Eventf implements events.EventRecorder. It never waits. No event of this program has
// a related object.
func (e *Events) Eventf(regarding, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	object, err := reference.GetReference(e.scheme, regarding)
	if err != nil {
		e.lost(LostRejected)
		e.logger.Error(err, "An event was not recorded", "reason", reason)
		return
	}
	note = fmt.Sprintf(note, args...)
	allowed, omitted := e.limits.allow(keyOf(object, eventType), reason+note)
	if !allowed {
		e.lost(LostLimit)
		return
	}
	if omitted > 0 {
		note = withSuffix(note, fmt.Sprintf(" (%d earlier events were omitted.)", omitted))
	}
	e.enqueue(&queuedEvent{regarding: object, at: e.clock.Now(), eventType: eventType, reason: reason, action: action, note: note})
}

func (e *Events) enqueue(event *queuedEvent) {
	select {
	case <-e.ended:
		e.lost(LostStopped)
		return
	default:
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if queued := e.queue.Len() + e.held; queued == maxQueuedEvents {
		e.lost(LostQueue)
		if !e.full {
			e.logger.Error(nil, "Events are lost: the API server is too slow to accept them", "queued", queued)
		}
		e.full = true
		return
	}
	e.queue.Push(event.regarding.Namespace, event, false)
	e.notify()
}

// notify lets run call next again.
func (e *Events) notify() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// Stop sends what is queued, for a bounded time, and ends the sending.
func (e *Events) Stop() {
	e.stopOnce.Do(func() { close(e.stopping) })
	e.notify()
	timer := time.AfterFunc(flushTimeout, e.cancel)
	defer timer.Stop()
	<-e.ended
}

func (e *Events) run(ctx context.Context) {
	defer close(e.ended)
	defer e.cancel()
	for {
		event, isIdle := e.next()
		if event == nil {
			select {
			case <-e.stopping:
				if isIdle {
					e.logUnsent()
					return
				}
			default:
			}
			<-e.changed
			continue
		}
		proceed := make(chan struct{})
		next := sync.OnceFunc(func() { close(proceed) })
		go func() {
			defer next()
			e.send(ctx, event, next)
			e.release(event.regarding.Namespace)
		}()
		<-proceed
	}
}

// next returns the next event to send, or nil if there is none at the moment. It is idle
// if there is none at all.
func (e *Events) next() (event *queuedEvent, isIdle bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.queue.Len() > 0 && len(e.sending) < maxSending {
		event, _ := e.queue.Pop()
		namespace := event.regarding.Namespace
		if later, busy := e.sending[namespace]; busy {
			e.sending[namespace] = append(later, event)
			e.held++
			continue
		}
		e.sending[namespace] = nil
		return event, false
	}
	isIdle = e.queue.Len() == 0 && len(e.sending) == 0
	e.full = e.full && !isIdle
	return nil, isIdle
}

// release is called after an event of a namespace.
func (e *Events) release(namespace string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.sending[namespace] {
		e.queue.Push(namespace, event, false)
	}
	e.held -= len(e.sending[namespace])
	delete(e.sending, namespace)
	e.notify()
}

// logUnsent is called when nothing is sent any more.
func (e *Events) logUnsent() {
	if e.unsent > 0 {
		e.logger.Error(nil, "Events were lost: the API server did not accept them before the program stopped", "count", e.unsent)
	}
}

// send sends an event. It repeats the request if that may help: the name of the event
// prevents a duplicate. It calls slow if a response takes long.
func (e *Events) send(ctx context.Context, queued *queuedEvent, slow func()) {
	event, reason := e.event(queued), LostUnavailable
	var err error
	waitErr := wait.ExponentialBackoffWithContext(ctx, sendBackoff, func(ctx context.Context) (bool, error) {
		timer := time.AfterFunc(patience, slow)
		defer timer.Stop()
		_, err = e.client.Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
		switch {
		case apierrors.IsAlreadyExists(err): // the response to the first request was lost
			err = nil
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsNotFound(err):
			reason = LostNamespace
		case isRejected(err):
			reason = LostRejected
		case err != nil:
			return false, nil // try again
		}
		return true, nil
	})
	switch {
	case err == nil && waitErr == nil:
		return
	case ctx.Err() != nil:
		reason = LostStopped
		e.mu.Lock()
		e.unsent++
		e.mu.Unlock()
	}
	e.lost(reason)
	if reason != LostNamespace && reason != LostStopped {
		e.logger.Error(err, "An event was lost", "object", klog.KRef(event.Namespace, event.Regarding.Name), "reason", event.Reason, "note", event.Note)
	}
}

// isRejected reports whether the API server has rejected a request, and would reject
// it again.
func isRejected(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code <= 500 && !apierrors.IsTooManyRequests(err) && !apierrors.IsUnauthorized(err)
}

func (e *Events) event(queued *queuedEvent) *eventsv1.Event {
	namespace := queued.regarding.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	e.mu.Lock()
	e.lastName = max(e.lastName+1, queued.at.UnixNano()) // unique
	name := util.GenerateEventName(queued.regarding.Name, e.lastName)
	e.mu.Unlock()
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: name},
		EventTime:           metav1.NewMicroTime(queued.at),
		ReportingController: e.controller,
		ReportingInstance:   e.instance,
		Regarding:           *queued.regarding,
		Type:                queued.eventType,
		Reason:              queued.reason,
		Action:              queued.action,
		Note:                queued.note,
	}
}

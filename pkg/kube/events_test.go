package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/utils/clock"
)

// sink is an API server that accepts events, or answers with an error.
type sink struct {
	eventsclient.EventInterface // nothing but Create is called

	mu       sync.Mutex
	answer   func(ctx context.Context, event *eventsv1.Event) error
	accepted map[string]*eventsv1.Event
	requests int
	lost     map[string]int
}

func newSink(answer func(context.Context, *eventsv1.Event) error) *sink {
	return &sink{answer: answer, accepted: map[string]*eventsv1.Event{}, lost: map[string]int{}}
}

func (s *sink) Events(string) eventsclient.EventInterface { return s }

func (s *sink) Create(ctx context.Context, event *eventsv1.Event, _ metav1.CreateOptions) (*eventsv1.Event, error) {
	s.mu.Lock()
	s.requests++
	_, exists := s.accepted[event.Name]
	s.mu.Unlock()
	if exists {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, event.Name)
	}
	err := s.answer(ctx, event)
	if err == nil || errors.Is(err, errLostResponse) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.accepted[event.Name] = event
	}
	return event, err
}

func (s *sink) notes() (all []string) {
	for _, event := range s.accepted {
		all = append(all, event.Note)
	}
	slices.Sort(all)
	return all
}

var errLostResponse = errors.New("connection reset by peer")

func accept(context.Context, *eventsv1.Event) error { return nil }

// slowly accepts an event after somewhat more than a second.
func slowly(ctx context.Context, _ *eventsv1.Event) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(1100 * time.Millisecond):
		return nil
	}
}

func (s *sink) start(t *testing.T) *Events {
	return NewEvents(t.Context(), s, scheme.Scheme, "test-controller", clock.RealClock{}, func(reason string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lost[reason]++
	})
}

func pod(i int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("pod-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i))}}
}

func record(events *Events, i int, note string) {
	events.Eventf(pod(i), nil, corev1.EventTypeNormal, "Created", "Create", "%s", note)
}

// TestEventsAreSent: an event has what people look for, and none is merged with another.
func TestEventsAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newSink(accept)
		events := server.start(t)
		record(events, 1, "100% done")
		record(events, 1, "done again") // at the same instant: the clock of this test stands still
		events.Stop()
		if got := server.notes(); !slices.Equal(got, []string{"100% done", "done again"}) {
			t.Fatalf("the API server has the events %q", got)
		}
		for _, event := range server.accepted {
			if event.Regarding.Kind != "Pod" || event.Regarding.UID != "uid-1" || event.Namespace != "shop" || event.EventTime.IsZero() ||
				event.ReportingController != "test-controller" || event.ReportingInstance == "" || event.Action != "Create" || event.Reason != "Created" || event.Type != "Normal" {
				t.Errorf("an event is incomplete: %+v", event)
			}
		}
		record(events, 2, "too late")
		if server.lost[LostStopped] != 1 || len(server.lost) != 1 {
			t.Errorf("lost: %v, want the event after Stop", server.lost)
		}
	})
}

// TestEventsOfSlowServer: a worker never waits for the API server. What does not fit
// into the queue is counted, and the rest is sent when the server accepts it.
func TestEventsOfSlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var available atomic.Bool
		server := newSink(func(context.Context, *eventsv1.Event) error {
			if !available.Load() {
				return apierrors.NewServiceUnavailable("overloaded")
			}
			return nil
		})
		events, began := server.start(t), time.Now()
		const beyond = 100
		record(events, 0, "the one that is being sent")
		synctest.Wait()
		for i := range maxQueuedEvents + beyond {
			record(events, i+1, "created")
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("recording took %v of waiting", took)
		}
		if server.lost[LostQueue] != beyond {
			t.Errorf("lost: %v, want %d because of the queue", server.lost, beyond)
		}
		available.Store(true)
		time.Sleep(time.Minute) //nolint:forbidigo // no time passes in a bubble
		synctest.Wait()
		if got := len(server.accepted); got != maxQueuedEvents+1 {
			t.Errorf("%d events were sent, want %d", got, maxQueuedEvents+1)
		}
		events.Stop()
	})
}

// TestEventsOfSlowNamespace: a namespace whose admission webhook does not answer delays
// the events of other namespaces by a moment, and has one request at a time. If the API
// server is unavailable, no other event is tried meanwhile: it would be lost, too.
func TestEventsOfSlowNamespace(t *testing.T) {
	for name, test := range map[string]struct {
		answer          func(context.Context) error
		accepted, tried int // in other namespaces, after a short time
	}{
		"no answer":   {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 20, 20},
		"unavailable": {func(context.Context) error { return apierrors.NewServiceUnavailable("") }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var slow, others atomic.Int32
				server := newSink(func(ctx context.Context, event *eventsv1.Event) error {
					if event.Namespace == "slow" {
						slow.Add(1)
						return test.answer(ctx)
					}
					others.Add(1)
					return nil
				})
				events := server.start(t)
				for i := range 3 {
					object := pod(i)
					object.Namespace = "slow"
					events.Eventf(object, nil, corev1.EventTypeNormal, "Created", "Create", "created")
				}
				for i := range 20 {
					record(events, 3+i, "created")
				}
				time.Sleep(patience) //nolint:forbidigo // no time passes in a bubble
				synctest.Wait()
				if got := len(server.accepted); slow.Load() > 2 || got != test.accepted || int(others.Load()) != test.tried {
					t.Errorf("%d requests of the slow namespace, %d of others, %d accepted; want %d and %d",
						slow.Load(), others.Load(), got, test.tried, test.accepted)
				}
				events.Stop()
			})
		})
	}
}

// TestEventsThatFail: a request is repeated if that may help, and no event is lost
// without a reason.
func TestEventsThatFail(t *testing.T) {
	terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, test := range map[string]struct {
		err      error
		times    int // how often the server answers with it
		requests int
		lost     string
	}{
		"unavailable for a while":  {apierrors.NewServiceUnavailable(""), 3, 4, ""},
		"unavailable":              {apierrors.NewServiceUnavailable(""), 99, sendBackoff.Steps, LostUnavailable},
		"too many requests":        {apierrors.NewTooManyRequestsError(""), 1, 2, ""},
		"lost response":            {errLostResponse, 1, 2, ""},
		"no right":                 {apierrors.NewForbidden(schema.GroupResource{}, "", nil), 99, 1, LostRejected},
		"invalid":                  {apierrors.NewBadRequest(""), 99, 1, LostRejected},
		"broken admission webhook": {apierrors.NewInternalError(errors.New("failed calling webhook")), 99, 1, LostRejected},
		"namespace being deleted":  {terminating, 99, 1, LostNamespace},
		"namespace deleted":        {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop"), 99, 1, LostNamespace},
		"wrapped":                  {fmt.Errorf("sending: %w", apierrors.NewBadRequest("")), 99, 1, LostRejected},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				left := test.times
				server := newSink(func(context.Context, *eventsv1.Event) error {
					if left--; left >= 0 {
						return test.err
					}
					return nil
				})
				events := server.start(t)
				record(events, 1, "created")
				time.Sleep(5 * time.Minute) //nolint:forbidigo // no time passes in a bubble
				events.Stop()
				if server.requests != test.requests || test.lost == "" && len(server.lost) > 0 || test.lost != "" && server.lost[test.lost] != 1 {
					t.Errorf("%d requests, lost %v; want %d and %q", server.requests, server.lost, test.requests, test.lost)
				}
			})
		})
	}
}

// TestStopEvents: what is queued is sent when the program stops, but a server that
// does not answer delays the stop only for a bounded time.
func TestStopEvents(t *testing.T) {
	const n = 50
	for name, test := range map[string]struct {
		answer func(context.Context, *eventsv1.Event) error
		took   time.Duration
		sent   int
	}{
		"a server that accepts": {accept, 0, n},
		"a slow server":         {slowly, flushTimeout, 4},
		"no answer":             {func(ctx context.Context, _ *eventsv1.Event) error { <-ctx.Done(); return ctx.Err() }, flushTimeout, 0},
		"an unavailable server": {func(context.Context, *eventsv1.Event) error { return apierrors.NewServiceUnavailable("") }, flushTimeout, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newSink(test.answer)
				events := server.start(t)
				for i := range n {
					record(events, i, "created")
				}
				began := time.Now()
				events.Stop()
				if took := time.Since(began); took != test.took || len(server.accepted) != test.sent || server.lost[LostStopped] != n-test.sent {
					t.Errorf("Stop took %v; %d events were sent, lost: %v; want %v and %d", took, len(server.accepted), server.lost, test.took, test.sent)
				}
			})
		})
	}
}

// TestLongNotes: a note that gets a suffix still fits.
func TestLongNotes(t *testing.T) {
	suffix := " (4 earlier events were omitted.)"
	if got := withSuffix(strings.Repeat("ä", maxNote/2), suffix); len(got) > maxNote || !strings.HasSuffix(got, "ä…"+suffix) {
		t.Errorf("withSuffix() = %q", got)
	}
}

// TestEventMemory: the limits and the queue of 10,000 objects stay small.
func TestEventMemory(t *testing.T) {
	server := newSink(func(context.Context, *eventsv1.Event) error { return http.ErrHandlerTimeout })
	server.accepted = nil
	events := server.start(t)
	before := heap()
	for i := range maxQueuedEvents {
		record(events, i, "Created network 6f1d3c5e-7a8b-4c9d-8e0f-1a2b3c4d5e6f with subnet 10.0.0.0/24, gateway 10.0.0.1.")
	}
	queued := heap() - before
	events.cancel()
	events.Stop()
	limits := heap() - before
	t.Logf("%d events: %d bytes each while they are queued, %d afterwards", maxQueuedEvents, queued/maxQueuedEvents, limits/maxQueuedEvents)
	if queued > maxQueuedEvents*1500 || limits > maxQueuedEvents*600 {
		t.Errorf("%d events hold %d bytes while they are queued, and %d afterwards", maxQueuedEvents, queued, limits)
	}
	runtime.KeepAlive(events)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}

package kube

import (
	"fmt"
	"sync"
	"unicode/utf8"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// eventBurst is how many events of one type an object may get at once, and
	// eventRate how many it gets from then on, in a second.
	eventBurst = 10
	eventRate  = rate.Limit(1.0 / 60)
	// maxLimiters bounds the memory: the limits of the objects that had no event for the
	// longest time are dropped.
	maxLimiters = 10_000
	// maxNote is the longest note that the API server accepts.
	maxNote = 1024
)

// LimitEvents returns a recorder that limits the events of each object: a burst, and
// then one a minute. The next event that is recorded says how many were omitted.
// Normal events and warnings have separate limits, so that no number of edits hides a
// warning. The object itself contains the current state in any case.
func LimitEvents(recorder events.EventRecorder, clock clock.PassiveClock) events.EventRecorder {
	return &limitedRecorder{EventRecorder: recorder, clock: clock, limiters: lru.New(maxLimiters)}
}

type limitedRecorder struct {
	events.EventRecorder
	clock clock.PassiveClock

	mu       sync.Mutex
	limiters *lru.Cache // *eventLimiter by eventKey
}

// eventKey is an object and a type of events.
type eventKey struct {
	uid             types.UID
	namespace, name string
	eventType       string
}

type eventLimiter struct {
	limiter *rate.Limiter
	omitted int
}

// Eventf implements events.EventRecorder.
func (r *limitedRecorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	allowed, omitted := r.allow(keyOf(regarding, eventType))
	if !allowed {
		return
	}
	text := fmt.Sprintf(note, args...)
	if omitted > 0 {
		text = withSuffix(text, fmt.Sprintf(" (%d earlier events were omitted.)", omitted))
	}
	r.EventRecorder.Eventf(regarding, related, eventType, reason, action, "%s", text)
}

// allow reports whether an event may be recorded, and how many were omitted since
// the last one.
func (r *limitedRecorder) allow(key eventKey) (allowed bool, omitted int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, _ := r.limiters.Get(key)
	limiter, known := found.(*eventLimiter)
	if !known {
		limiter = &eventLimiter{limiter: rate.NewLimiter(eventRate, eventBurst)}
		r.limiters.Add(key, limiter)
	}
	if !limiter.limiter.AllowN(r.clock.Now(), 1) {
		limiter.omitted++
		return false, 0
	}
	omitted, limiter.omitted = limiter.omitted, 0
	return true, omitted
}

// keyOf returns the key of an object, which may be a reference to it.
func keyOf(regarding runtime.Object, eventType string) eventKey {
	key := eventKey{eventType: eventType}
	if reference, ok := regarding.(*corev1.ObjectReference); ok {
		key.uid, key.namespace, key.name = reference.UID, reference.Namespace, reference.Name
	} else if object, err := meta.Accessor(regarding); err == nil {
		key.uid, key.namespace, key.name = object.GetUID(), object.GetNamespace(), object.GetName()
	}
	return key
}

// withSuffix appends to a note, which it shortens if it gets too long.
func withSuffix(note, suffix string) string {
	if cut := maxNote - len(suffix) - len("…"); len(note) > cut+len("…") {
		for !utf8.RuneStart(note[cut]) {
			cut--
		}
		note = note[:cut] + "…"
	}
	return note + suffix
}

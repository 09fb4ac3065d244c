package kube

import (
	"hash/maphash"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// eventBurst is how many events of one type an object may get at once, and
	// eventRate how many it gets from then on, in a second.
	eventBurst = 10
	eventRate  = rate.Limit(1.0 / 60)
	// repeatPeriod is the shortest time between two equal events in a row.
	repeatPeriod = 10 * time.Minute
	// maxLimiters bounds the memory: the limits of the objects that had no event for the
	// longest time are dropped. client-go's own recorder keeps as many.
	maxLimiters = 4096
	// maxNote is the longest note that the API server accepts.
	maxNote = 1024
)

var hashSeed = maphash.MakeSeed()

// eventLimits limits the events of each object: a burst, and then one a minute; and an
// event that equals the last one, one in ten minutes. The next event that is recorded
// says how many were omitted. Normal events and warnings have separate limits, so that
// no number of edits hides a warning. The object itself contains the current state in
// any case.
type eventLimits struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	limiters *lru.Cache // *eventLimiter by the hash of its eventKey
}

type eventKey struct {
	uid                        types.UID
	namespace, name, eventType string
}

// eventLimiter limits the events of one object and type.
type eventLimiter struct {
	limiter *rate.Limiter
	omitted int       // since the last event
	last    uint64    // the hash of the last event
	lastAt  time.Time // when that was recorded
}

func newEventLimits(clock clock.PassiveClock) *eventLimits {
	return &eventLimits{clock: clock, limiters: lru.New(maxLimiters)}
}

// allow reports whether an event with a text may be recorded. It returns how many were
// omitted before it.
func (l *eventLimits) allow(key eventKey, text string) (allowed bool, omitted int) {
	id, hash, now := maphash.Comparable(hashSeed, key), maphash.String(hashSeed, text), l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	found, _ := l.limiters.Get(id)
	limiter, known := found.(*eventLimiter)
	if !known {
		limiter = &eventLimiter{limiter: rate.NewLimiter(eventRate, eventBurst)}
		l.limiters.Add(id, limiter)
	}
	repeated := limiter.last == hash && now.Sub(limiter.lastAt) < repeatPeriod
	if repeated || !limiter.limiter.AllowN(now, 1) {
		limiter.omitted++
		return false, 0
	}
	omitted, limiter.omitted, limiter.last, limiter.lastAt = limiter.omitted, 0, hash, now
	return true, omitted
}

func keyOf(regarding *corev1.ObjectReference, eventType string) eventKey {
	return eventKey{uid: regarding.UID, namespace: regarding.Namespace, name: regarding.Name, eventType: eventType}
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

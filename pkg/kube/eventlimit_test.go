package kube

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
)

// TestEventLimits: an object gets a burst of events of each type and then one a minute,
// and a repeated event every ten minutes. The next event says what was omitted.
func TestEventLimits(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(1_000_000, 0))
	limits := newEventLimits(clock)
	edits := 0
	record := func(doing string, n int, uid types.UID, eventType, text string, wantAllowed, wantOmitted int) {
		t.Helper()
		var allowed, omitted int
		for range n {
			edits++
			ok, before := limits.allow(eventKey{uid: uid, eventType: eventType}, strings.ReplaceAll(text, "N", strconv.Itoa(edits)))
			if omitted += before; ok {
				allowed++
			}
		}
		if allowed != wantAllowed || omitted != wantOmitted {
			t.Errorf("%s: %d events were recorded, %d omitted before them; want %d, %d", doing, allowed, omitted, wantAllowed, wantOmitted)
		}
	}
	later := func(by time.Duration) { clock.SetTime(clock.Now().Add(by)) }
	record("a burst", 100, "a", "Normal", "edit N", eventBurst, 0)
	record("a warning after the burst", 1, "a", "Warning", "failed", 1, 0)
	record("the same warning", 3, "a", "Warning", "failed", 0, 0)
	record("another warning", 1, "a", "Warning", "failed otherwise", 1, 3)
	record("another object", 1, "b", "Normal", "edit", 1, 0)
	later(time.Minute)
	record("a minute later", 5, "a", "Normal", "edit N", 1, 90)
	later(time.Hour)
	record("after an hour", 100, "a", "Normal", "edit N", eventBurst, 4)
	record("the first of a failure without end", 1, "c", "Warning", "forbidden", 1, 0)
	for range 6 {
		for range 9 {
			later(time.Minute)
			record("a minute of it", 3, "c", "Warning", "forbidden", 0, 0)
		}
		later(time.Minute)
		record("ten minutes of it", 1, "c", "Warning", "forbidden", 1, 27)
	}

	for i := range 2 * maxLimiters {
		record("one each", 1, types.UID(strconv.Itoa(i)), "Normal", "edit", 1, 0)
	}
	if got := limits.limiters.Len(); got > maxLimiters {
		t.Errorf("%d limits are held, want at most %d", got, maxLimiters)
	}
}

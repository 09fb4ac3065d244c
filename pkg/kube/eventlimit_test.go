package kube

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
)

// notes are the notes of the events that were recorded.
type notes struct{ recorded []string }

func (n *notes) Eventf(_, _ runtime.Object, _, _, _, note string, args ...any) {
	n.recorded = append(n.recorded, fmt.Sprintf(note, args...))
}

func TestLimitEvents(t *testing.T) {
	clock, recorded := testingclock.NewFakePassiveClock(time.Unix(1_000_000, 0)), &notes{}
	recorder := LimitEvents(recorded, clock)
	object := func(uid types.UID) runtime.Object { return &corev1.ObjectReference{UID: uid} }
	record := func(n int, uid types.UID, eventType, note string) {
		for range n {
			RecordEvent(recorder, object(uid), eventType, "Updated", "Update", note)
		}
	}
	want := func(doing string, count int, last string) {
		t.Helper()
		if got := recorded.recorded; len(got) != count || count > 0 && got[len(got)-1] != last {
			t.Errorf("%s: %d events were recorded, the last one: %q; want %d and %q", doing, len(got), got[max(0, len(got)-1):], count, last)
		}
		recorded.recorded = nil
	}
	record(100, "a", "Normal", "100% edited")
	want("a burst", eventBurst, "100% edited")
	record(1, "a", "Warning", "failed")
	want("a warning after the burst", 1, "failed")
	record(1, "b", "Normal", "edited")
	want("another object", 1, "edited")
	clock.SetTime(clock.Now().Add(time.Minute))
	record(5, "a", "Normal", "edited")
	want("a minute later", 1, "edited (90 earlier events were omitted.)")
	clock.SetTime(clock.Now().Add(time.Minute))
	record(1, "a", "Normal", strings.Repeat("ä", maxNote/2))
	if len(recorded.recorded) != 1 || len(recorded.recorded[0]) > maxNote || !strings.HasSuffix(recorded.recorded[0], "ä… (4 earlier events were omitted.)") {
		t.Errorf("a long note: %q", recorded.recorded)
	}
	recorded.recorded = nil
	clock.SetTime(clock.Now().Add(time.Hour))
	record(100, "a", "Normal", "edited")
	want("after an hour", eventBurst, "edited")

	for i := range 2 * maxLimiters {
		record(1, types.UID(strconv.Itoa(i)), "Normal", "edited")
	}
	if got := recorder.(*limitedRecorder).limiters.Len(); got > maxLimiters {
		t.Errorf("%d limits are held, want at most %d", got, maxLimiters)
	}
}

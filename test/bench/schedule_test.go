package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSchedule: what the limit of time cuts off comes last: other programs with many
// Networks. One round of everything, and this controller with many, come first.
func TestSchedule(t *testing.T) {
	b := &bench{peers: allPeers(""), sizes: []int{100, 1000, 10000}, latency: []time.Duration{0, 20 * time.Millisecond}, rounds: 3}
	var names []string
	for _, step := range b.schedule() {
		names = append(names, step.name)
	}
	last := -1
	for _, want := range []string{
		"roofline-schemaless, N=1000, latency 0s, round 1", "controller, N=1000, latency 0s, round 1",
		"course, N=1000, latency 20ms, round 1", "controller, N=100, latency 20ms, round 1",
		"controller, killed", "controller, beside N=10000", "controller, beside N=3000", "controller, N=10000, latency 20ms, round 1",
		"roofline, N=1000, latency 0s, round 2", "roofline, N=1000, latency 0s, round 3", "controller, at rest with N=1000", "roofline, N=10000, latency 20ms",
	} {
		i := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, want) })
		if i <= last {
			t.Errorf("%q is number %d, want it after number %d", want, i, last)
		}
		last = i
	}
	if all := len(slices.Compact(slices.Sorted(slices.Values(names)))); all != len(names) {
		t.Errorf("%d of %d measurements are repeated", len(names)-all, len(names))
	}
}

package debugpage

import (
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/pkg/status"
)

// Bounds of the journeys that are kept. The oldest one makes room for a new one.
const (
	maxJourneys       = 400
	maxJourneysOfKey  = 40
	maxJourneyBytes   = 4 << 20 // of all, as estimated
	maxSteps          = 40      // of a journey
	maxRequestsOfStep = 8
	maxTextBytes      = 400
)

// journeys are those that are kept, the oldest first.
type journeys struct {
	all   []*kept
	byKey map[cache.ObjectName][]*kept
	bytes int
}

// kept is a journey that is kept.
type kept struct {
	key     cache.ObjectName
	journey Journey
	bytes   int // that were counted
}

// add keeps a journey.
func (j *journeys) add(key cache.ObjectName, journey Journey) *kept {
	added := &kept{key: key, journey: journey}
	j.all, j.byKey[key] = append(j.all, added), append(j.byKey[key], added)
	j.resize(added)
	if ofKey := j.byKey[key]; len(ofKey) > maxJourneysOfKey {
		j.drop(ofKey[0])
	}
	if len(j.all) > maxJourneys {
		j.drop(j.all[0])
	}
	return added
}

// resize counts the memory of a journey again, and makes room.
func (j *journeys) resize(changed *kept) {
	size := sizeOf(&changed.journey)
	j.bytes += size - changed.bytes
	changed.bytes = size
	for j.bytes > maxJourneyBytes && len(j.all) > 1 {
		j.drop(j.all[0])
	}
}

func (j *journeys) drop(dropped *kept) {
	isIt := func(other *kept) bool { return other == dropped }
	j.all = slices.DeleteFunc(j.all, isIt)
	if j.byKey[dropped.key] = slices.DeleteFunc(j.byKey[dropped.key], isIt); len(j.byKey[dropped.key]) == 0 {
		delete(j.byKey, dropped.key)
	}
	j.bytes -= dropped.bytes
	dropped.bytes = 0
}

// isKept reports whether a journey was not dropped.
func (j *journeys) isKept(one *kept) bool { return slices.Contains(j.byKey[one.key], one) }

// recentKeys returns the keys of the journeys, that of the last one first.
func (j *journeys) recentKeys() (keys []string) {
	seen := map[cache.ObjectName]bool{}
	for _, one := range slices.Backward(j.all) {
		if !seen[one.key] {
			seen[one.key], keys = true, append(keys, one.key.String())
		}
	}
	return keys
}

// sizeOf estimates the memory that a journey takes.
func sizeOf(j *Journey) int {
	size := 400 + len(j.Key) + len(j.Desired) + len(j.Actual) + len(j.Outcome) + 120*len(j.Causes)
	for i := range j.Steps {
		size += 120 + len(j.Steps[i].Text) + len(j.Steps[i].Error) + 100*len(j.Steps[i].Requests)
	}
	return size
}

// copyOf returns a copy of a journey that does not change.
func copyOf(j *Journey) Journey {
	journey := *j
	journey.Causes = slices.Clone(j.Causes)
	journey.Steps = slices.Clone(j.Steps)
	for i := range journey.Steps {
		journey.Steps[i].Requests = slices.Clone(journey.Steps[i].Requests)
	}
	return journey
}

// journeysOf returns the journeys of a key, the newest first. If the key is in the
// queue, the first one has no worker.
func (r *Recorder) journeysOf(key cache.ObjectName) []Journey {
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	found := []Journey{}
	if e := r.keys[key]; e != nil {
		if r.addDue(key, e, now); e.queued {
			found = append(found, copyOf(&Journey{ID: pendingID, Key: key.String(), Causes: e.causes, CauseCount: e.causeCount, Queued: e.since, Steps: []JourneyStep{}}))
		}
	}
	for _, one := range slices.Backward(r.journeys.byKey[key]) {
		found = append(found, copyOf(&one.journey))
	}
	return found
}

// pendingID is the ID of a journey whose sync has not begun.
const pendingID = "pending"

// clip makes a text fit to be displayed and short.
func clip(text string) string {
	cut := func(text string) string {
		if len(text) <= maxTextBytes {
			return text
		}
		end := maxTextBytes - len("…")
		for !utf8.RuneStart(text[end]) {
			end--
		}
		return text[:end] + "…"
	}
	return cut(status.Printable(strings.ToValidUTF8(cut(text), "�")))
}

package chaos

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// journal has what happened in a round, in its order.
type journal struct {
	began time.Time

	mu      sync.Mutex
	entries []journalEntry
	names   map[string]string // of the Networks, by the ID of a network or subnet
}

type journalEntry struct {
	at         time.Duration
	name, text string // no name: it concerns all
}

// maxShown limits the entries that are shown of one Network: the latest ones.
const maxShown = 70

func newJournal() *journal { return &journal{began: time.Now(), names: map[string]string{}} }

func (j *journal) add(name, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, journalEntry{time.Since(j.began), name, fmt.Sprintf(format, args...)})
}

// learn records that an ID in Neutron belongs to a Network.
func (j *journal) learn(id, name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if id != "" && name != "" {
		j.names[id] = name
	}
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}`)

// concerns returns the name of the Network that a text with IDs or an owner marker
// is about.
func (j *journal) concerns(text string) string {
	if owner, ok := ownerIn(text); ok {
		return owner.Name
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range uuids.FindAllString(text, -1) {
		if name := j.names[id]; name != "" {
			return name
		}
	}
	return ""
}

// of returns the latest entries about a Network and about everything.
func (j *journal) of(name string) string {
	chosen := j.lines(func(e journalEntry) bool { return e.name == "" || e.name == name })
	if n := len(chosen) - maxShown; n > 0 {
		chosen = chosen[n:]
		chosen[0] = fmt.Sprintf("… (%d earlier entries: CHAOS_LOGS=DIR writes all of them)", n+1)
	}
	return "  " + strings.Join(chosen, "\n  ") + "\n"
}

// count returns the number of entries with a text.
func (j *journal) count(text string) int {
	return len(j.lines(func(e journalEntry) bool { return strings.Contains(e.text, text) }))
}

func (j *journal) String() string {
	return strings.Join(j.lines(func(journalEntry) bool { return true }), "\n")
}

func (j *journal) lines(isChosen func(journalEntry) bool) (lines []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		if isChosen(e) {
			lines = append(lines, e.String())
		}
	}
	return lines
}

func (e journalEntry) String() string {
	text := uuids.ReplaceAllStringFunc(e.text, func(id string) string { return id[:8] })
	text = strings.ReplaceAll(ownerForm.ReplaceAllString(text, "$1"), "\n", " ")
	return fmt.Sprintf("%7.3fs %s: %s", e.at.Seconds(), e.name, text)
}

// The forms of owner markers. Networks, subnets and retained networks have
// different ones.
var ownerForm = regexp.MustCompile(`samplecrd\.k8s\.io (network owner|owner|retained): ([^/" ]+)/([^/" ]+)/([^/"& ]+)`)

// ownerIn returns the owner in a text that contains an owner marker of any form.
func ownerIn(text string) (neutron.Owner, bool) {
	match := ownerForm.FindStringSubmatch(text)
	if match == nil {
		return neutron.Owner{}, false
	}
	return neutron.Owner{Cluster: match[2], Namespace: match[3], Name: match[4]}, true
}

// isRetained reports whether an owner marker is that of a retained network.
func isRetained(description string) bool {
	match := ownerForm.FindStringSubmatch(description)
	return match != nil && match[1] == "retained"
}

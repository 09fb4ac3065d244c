package chaos

import (
	"fmt"
	"regexp"
	"slices"
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
}

// journalEntry is about a Network, or about all if the name is empty, or about the Networks
// whose objects in Neutron its text names.
type journalEntry struct {
	at         time.Duration
	name, text string
}

const ofNeutron = "neutron"

// maxShown limits the entries that are shown of one Network: the latest ones.
const maxShown = 70

func (j *journal) add(name, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, journalEntry{time.Since(j.began), name, fmt.Sprintf(format, args...)})
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}`)

// of returns the latest entries about a Network and about everything.
func (j *journal) of(name string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var chosen []string
	ids := map[string]bool{} // of the objects of the Network
	for _, e := range j.entries {
		isOfIt := e.name == "" || e.name == name
		if owner, _ := ownerIn(e.text); e.name == ofNeutron {
			named := uuids.FindAllString(e.text, -1)
			isOfIt = owner.Name == name || slices.ContainsFunc(named, func(id string) bool { return ids[id] })
			for _, id := range named {
				ids[id] = ids[id] || owner.Name == name
			}
		}
		if isOfIt {
			chosen = append(chosen, e.String())
		}
	}
	if n := len(chosen) - maxShown; n > 0 {
		chosen = chosen[n:]
		chosen[0] = fmt.Sprintf("… (%d earlier entries: CHAOS_LOGS=DIR writes all of them)", n+1)
	}
	return "  " + strings.Join(chosen, "\n  ") + "\n"
}

// count returns the number of entries with a text.
func (j *journal) count(text string) int { return strings.Count(j.String(), text) }

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var lines strings.Builder
	for _, e := range j.entries {
		lines.WriteString(e.String() + "\n")
	}
	return lines.String()
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

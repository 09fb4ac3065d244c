package status

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// Drifted is the reason of an event that reports a difference that was found in
// Neutron, and how the controller corrected it.
const Drifted = "Drifted"

// Event is a Kubernetes event without the object that it regards.
type Event struct {
	Type, Reason, Note string
}

// EventsOf returns the events for the steps that a sync applied to a Network: one for
// the outcome, and one for each duplicate that it deleted. The ID is that of the network
// that belongs to the Network afterwards.
func EventsOf(network *samplecrdv1.Network, steps []plan.Step, networkID string) (all []Event) {
	var did []string
	reasons, drifted := map[string]bool{}, false
	for _, step := range steps {
		reason := plan.EventOf(step)
		if reason == "" {
			continue
		}
		text := plan.Did(step)
		switch reason {
		case plan.DuplicateDeleted:
			all = append(all, Event{corev1.EventTypeNormal, reason, Clip(capitalized(text) + ".")})
			continue
		case networkCreated:
			text += " " + networkID
		}
		did, reasons[reason] = append(did, text), true
		drifted = drifted || IsDrift(network, step)
	}
	text := strings.Join(did, ", ") + "."
	switch {
	case did == nil:
		return all
	case drifted:
		note := Clip("Corrected a difference in Neutron: " + missing(network, reasons) + text)
		return append(all, Event{corev1.EventTypeWarning, Drifted, note})
	}
	return append(all, Event{corev1.EventTypeNormal, reasonOf(reasons), Clip(capitalized(text))})
}

// IsDrift reports whether a step corrects a difference that was found in Neutron:
// Neutron matched the spec before, and the spec has not changed since.
func IsDrift(network *samplecrdv1.Network, step plan.Step) bool {
	return plan.MayCorrect(step) && network.DeletionTimestamp == nil && HasMatched(network)
}

const networkCreated = "NetworkCreated"

// reasonOf returns the reason of the event for several steps: what happened to the network,
// or else to its subnet, or else to its router.
func reasonOf(steps map[string]bool) string {
	steps["SubnetReplaced"] = steps["SubnetDeleted"] && steps["SubnetCreated"]
	steps["RouterReplaced"] = steps["RouterAttached"] && steps["RouterDetached"]
	for _, reason := range []string{
		networkCreated, "NetworkRetained", "NetworkDeleted", "NetworkUpdated",
		"SubnetReplaced", "SubnetCreated", "SubnetDeleted", "SubnetUpdated", "RouterReplaced", "RouterAttached",
	} {
		if steps[reason] {
			return reason
		}
	}
	return "RouterDetached"
}

// missing describes what Neutron did not have although it matched the spec before. The
// cause is unknown: a user deleted it, or Neutron lost its data.
func missing(network *samplecrdv1.Network, steps map[string]bool) string {
	switch {
	case steps[networkCreated]:
		return fmt.Sprintf("network %s did not exist; ", network.Status.NetworkID)
	case steps["SubnetCreated"] && !steps["SubnetDeleted"]:
		return "the subnet did not exist; "
	case steps["RouterAttached"] && !steps["RouterDetached"]:
		return "the subnet was not attached to its router; "
	}
	return ""
}

// Clip makes a text fit to be displayed: it escapes what is not printable, such as
// line breaks and the control sequences of terminals, and shortens it to 1 KiB, the
// maximum length of an event's note.
func Clip(text string) string {
	const most = 1024
	text = Printable(text)
	if len(text) <= most {
		return text
	}
	cut := most - len("…")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// Printable escapes the characters of a text that are not printable, as in a Go
// string: texts of users and of Neutron must not move the cursor of a terminal or
// forge a line.
func Printable(text string) string {
	isRaw := func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }
	if strings.IndexFunc(text, isRaw) < 0 {
		return text
	}
	var escaped strings.Builder
	for _, r := range text {
		if isRaw(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			escaped.WriteString(quoted[1 : len(quoted)-1])
		} else {
			escaped.WriteRune(r)
		}
	}
	return escaped.String()
}

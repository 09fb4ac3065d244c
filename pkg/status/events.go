package status

import (
	"fmt"
	"slices"
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
// the outcome, and one for each duplicate that it deleted. Record is what Neutron has
// afterwards.
func EventsOf(network *samplecrdv1.Network, steps []plan.Step, record plan.Record) (all []Event) {
	o, drifted := outcome{record: record, before: network.Status, changes: map[string]bool{}}, false
	for _, step := range steps {
		deletion, _ := step.(plan.DeleteNetwork)
		switch {
		case !plan.ChangesNeutron(step):
		case deletion.DuplicateOf != "":
			all = append(all, Event{corev1.EventTypeNormal, "DuplicateDeleted", Clip(fmt.Sprintf(
				"Deleted network %s: it was a duplicate of %s, created by another request.", deletion.ID, deletion.DuplicateOf))})
		default:
			o.add(step)
			drifted = drifted || IsDrift(network, step)
		}
	}
	text := strings.Join(o.sentences, ", ") + "."
	switch {
	case text == ".":
		return all
	case drifted:
		note := Clip("Corrected a difference in Neutron: " + o.missing() + text)
		return append(all, Event{corev1.EventTypeWarning, Drifted, note})
	}
	return append(all, Event{corev1.EventTypeNormal, o.reason(), Clip(capitalized(text))})
}

// IsDrift reports whether a step corrects a difference that was found in Neutron:
// Neutron matched the spec before, and the spec has not changed since.
func IsDrift(network *samplecrdv1.Network, step plan.Step) bool {
	switch step.(type) {
	case plan.RemoveTag, plan.RetainNetwork, plan.DeleteNetwork:
		return false
	}
	return plan.ChangesNeutron(step) && network.DeletionTimestamp == nil && HasMatched(network)
}

// outcome is what the steps of a sync changed in Neutron, in words.
type outcome struct {
	record    plan.Record
	before    samplecrdv1.NetworkStatus
	changes   map[string]bool // those that there were, as reasons of an event
	sentences []string        // in the past tense
	replaced  plan.DeleteSubnet
}

func (o *outcome) add(step plan.Step) {
	say := func(change, format string, values ...any) {
		o.changes[change] = true
		o.sentences = append(o.sentences, fmt.Sprintf(format, values...))
	}
	switch step := step.(type) {
	case plan.CreateNetwork:
		say("NetworkCreated", "created network %s", o.record.NetworkID)
	case plan.UpdateNetwork:
		say("NetworkUpdated", "changed %s", changesText(step.Changes))
	case plan.RetainNetwork:
		say("NetworkRetained", "kept network %s for the next Network of this name", step.ID)
	case plan.DeleteNetwork:
		text := step.ID
		if o.before.CIDR != "" {
			text += " with subnet " + o.before.CIDR
		}
		say("NetworkDeleted", "deleted network %s", text)
	case plan.AddTag:
		say("NetworkUpdated", "added tag %q", step.Tag)
	case plan.RemoveTag:
		say("NetworkUpdated", "removed tag %q", step.Tag)
	case plan.CreateSubnet:
		o.createdSubnet()
	case plan.UpdateSubnet:
		say("SubnetUpdated", "changed %s", changesText(step.Changes))
	case plan.DeleteSubnet:
		o.deletedSubnet(step)
	case plan.AttachRouter:
		say("RouterAttached", "attached the subnet to router %s", step.Interface.RouterID)
	case plan.DetachRouter:
		say("RouterDetached", "detached the subnet from router %s", step.Interface.RouterID)
	default:
		say("NetworkUpdated", "%s", step)
	}
}

// deletedSubnet describes a subnet that was deleted, possibly after the one that replaces
// it was created.
func (o *outcome) deletedSubnet(step plan.DeleteSubnet) {
	o.changes["SubnetDeleted"], o.replaced = true, step
	text := o.withGateway(o.record.CIDR.String())
	if i := slices.Index(o.sentences, "created subnet "+text); i >= 0 && step.For != "" && !step.Duplicate {
		o.sentences[i] = fmt.Sprintf("replaced subnet %s by %s", step.From, text)
		return
	}
	o.sentences = append(o.sentences, fmt.Sprintf("deleted subnet %s", step.From))
}

// createdSubnet describes a subnet that was created, possibly in place of another one. It is
// part of a network that was created with it.
func (o *outcome) createdSubnet() {
	o.changes["SubnetCreated"] = true
	text := o.withGateway(o.record.CIDR.String())
	switch last, from, by := len(o.sentences)-1, o.replaced.From, o.replaced.For; {
	case by != "" && !strings.HasPrefix(by, o.record.CIDR.String()): // from a subnet pool
		o.sentences[last] = fmt.Sprintf("replaced subnet %s by %s (%s)", from, text, by)
	case by != "": // with its IPv6 modes
		o.sentences[last] = fmt.Sprintf("replaced subnet %s by %s", from, o.withGateway(by))
	case o.changes["NetworkCreated"]:
		o.sentences[last] += " with subnet " + text
	default:
		o.sentences = append(o.sentences, "created subnet "+text)
	}
}

// withGateway describes a subnet by its range and the gateway that it has, if any.
func (o *outcome) withGateway(cidr string) string {
	if !o.record.Gateway.IsValid() {
		return cidr
	}
	return cidr + ", gateway " + o.record.Gateway.String()
}

// reason returns the reason of the event: what happened to the network, or else to
// its subnet, or else to its router.
func (o *outcome) reason() string {
	o.changes["SubnetReplaced"] = o.changes["SubnetDeleted"] && o.changes["SubnetCreated"]
	o.changes["RouterReplaced"] = o.changes["RouterAttached"] && o.changes["RouterDetached"]
	for _, change := range []string{
		"NetworkCreated", "NetworkRetained", "NetworkDeleted", "NetworkUpdated",
		"SubnetReplaced", "SubnetCreated", "SubnetDeleted", "SubnetUpdated", "RouterReplaced", "RouterAttached",
	} {
		if o.changes[change] {
			return change
		}
	}
	return "RouterDetached"
}

// missing describes what Neutron did not have although it matched the spec before. The
// cause is unknown: a user deleted it, or Neutron lost its data.
func (o *outcome) missing() string {
	switch {
	case o.changes["NetworkCreated"]:
		return fmt.Sprintf("network %s did not exist; ", o.before.NetworkID)
	case o.changes["SubnetCreated"] && !o.changes["SubnetDeleted"]:
		return "the subnet did not exist; "
	case o.changes["RouterAttached"] && !o.changes["RouterDetached"]:
		return "the subnet was not attached to its router; "
	}
	return ""
}

func changesText(changes []plan.Change) string {
	words := make([]string, len(changes))
	for i, change := range changes {
		words[i] = change.String()
	}
	return strings.Join(words, " and ")
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

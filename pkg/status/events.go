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
	var others []plan.Step
	drifted := false
	for _, step := range steps {
		deletion, _ := step.(plan.DeleteNetwork)
		switch {
		case !plan.ChangesNeutron(step):
		case deletion.DuplicateOf != "":
			all = append(all, Event{
				Type: corev1.EventTypeNormal, Reason: "DuplicateDeleted",
				Note: Clip(fmt.Sprintf("Deleted network %s: it was a duplicate of %s, created by another request.", deletion.ID, deletion.DuplicateOf)),
			})
		default:
			others, drifted = append(others, step), drifted || IsDrift(network, step)
		}
	}
	if others == nil {
		return all
	}
	o := outcomeOf(others, network, record)
	event := Event{Type: corev1.EventTypeNormal, Reason: o.reason(), Note: Clip(capitalized(strings.Join(o.sentences, ", ")) + ".")}
	if drifted {
		event.Type, event.Reason = corev1.EventTypeWarning, Drifted
		event.Note = Clip("Corrected a difference in Neutron: " + o.missing() + strings.Join(o.sentences, ", ") + ".")
	}
	return append(all, event)
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
	network, subnet, router map[string]bool // which kinds of change there were
	sentences               []string        // in the past tense
	before                  string          // the network that the status named
}

// outcomeOf describes steps. A subnet is part of the network that is created with
// it, and one that replaces another is described once.
func outcomeOf(steps []plan.Step, network *samplecrdv1.Network, record plan.Record) outcome {
	o := outcome{network: map[string]bool{}, subnet: map[string]bool{}, router: map[string]bool{}, before: network.Status.NetworkID}
	var replaced plan.DeleteSubnet
	say := func(format string, values ...any) { o.sentences = append(o.sentences, fmt.Sprintf(format, values...)) }
	for _, step := range steps {
		switch step := step.(type) {
		case plan.CreateNetwork:
			o.network["Created"] = true
			say("created network %s", record.NetworkID)
		case plan.UpdateNetwork:
			o.network["Updated"] = true
			say("changed %s", changesText(step.Changes))
		case plan.RetainNetwork:
			o.network["Retained"] = true
			say("kept network %s for the next Network of this name", step.ID)
		case plan.DeleteNetwork:
			o.network["Deleted"] = true
			say("deleted network %s%s", step.ID, withSubnet(network.Status.CIDR, ""))
		case plan.AddTag:
			o.network["Updated"] = true
			say("added tag %q", step.Tag)
		case plan.RemoveTag:
			o.network["Updated"] = true
			say("removed tag %q", step.Tag)
		case plan.CreateSubnet:
			o.createdSubnet(replaced, record)
		case plan.UpdateSubnet:
			o.subnet["Updated"] = true
			say("changed %s", changesText(step.Changes))
		case plan.DeleteSubnet:
			o.deletedSubnet(step, record)
			replaced = step
		default:
			say("%s", o.other(step))
		}
	}
	return o
}

// deletedSubnet describes a subnet that was deleted, possibly after the one that replaces
// it was created.
func (o *outcome) deletedSubnet(step plan.DeleteSubnet, record plan.Record) {
	o.subnet["Deleted"] = true
	created := "created subnet " + withGateway(record.CIDR.String(), gatewayOf(record))
	if i := slices.Index(o.sentences, created); i >= 0 && step.For != "" && !step.Duplicate {
		o.sentences[i] = fmt.Sprintf("replaced subnet %s by %s", step.From, withGateway(record.CIDR.String(), gatewayOf(record)))
		return
	}
	o.sentences = append(o.sentences, fmt.Sprintf("deleted subnet %s", step.From))
}

// createdSubnet describes a subnet that was created, possibly in place of another one.
func (o *outcome) createdSubnet(replaced plan.DeleteSubnet, record plan.Record) {
	o.subnet["Created"] = true
	text := withGateway(record.CIDR.String(), gatewayOf(record))
	switch last := len(o.sentences) - 1; {
	case replaced.For != "" && !strings.HasPrefix(replaced.For, record.CIDR.String()): // from a subnet pool
		o.sentences[last] = fmt.Sprintf("replaced subnet %s by %s (%s)", replaced.From, text, replaced.For)
	case replaced.For != "": // with its IPv6 modes
		o.sentences[last] = fmt.Sprintf("replaced subnet %s by %s", replaced.From, withGateway(replaced.For, gatewayOf(record)))
	case last >= 0 && o.network["Created"]:
		o.sentences[last] += " with subnet " + text
	default:
		o.sentences = append(o.sentences, "created subnet "+text)
	}
}

// other describes a step that changes neither the network nor the subnet itself.
func (o outcome) other(step plan.Step) string {
	switch step := step.(type) {
	case plan.AttachRouter:
		o.router["Attached"] = true
		return "attached the subnet to router " + step.Interface.RouterID
	case plan.DetachRouter:
		o.router["Detached"] = true
		return "detached the subnet from router " + step.Interface.RouterID
	}
	o.network["Updated"] = true
	return step.String()
}

// reason returns the reason of the event: what happened to the network, or else to
// its subnet, or else to its router.
func (o outcome) reason() string {
	for _, kind := range []string{"Created", "Retained", "Deleted", "Updated"} {
		if o.network[kind] {
			return "Network" + kind
		}
	}
	switch {
	case o.subnet["Deleted"] && o.subnet["Created"]:
		return "SubnetReplaced"
	case o.subnet["Created"]:
		return "SubnetCreated"
	case o.subnet["Deleted"]:
		return "SubnetDeleted"
	case o.subnet["Updated"]:
		return "SubnetUpdated"
	case o.router["Attached"] && o.router["Detached"]:
		return "RouterReplaced"
	case o.router["Attached"]:
		return "RouterAttached"
	}
	return "RouterDetached"
}

// missing describes what Neutron did not have although it matched the spec before. The
// cause is unknown: a user deleted it, or Neutron lost its data.
func (o outcome) missing() string {
	switch {
	case o.network["Created"]:
		return fmt.Sprintf("network %s did not exist; ", o.before)
	case o.subnet["Created"] && !o.subnet["Deleted"]:
		return "the subnet did not exist; "
	case o.router["Attached"] && !o.router["Detached"]:
		return "the subnet was not attached to its router; "
	}
	return ""
}

func gatewayOf(record plan.Record) string {
	if !record.Gateway.IsValid() {
		return ""
	}
	return record.Gateway.String()
}

func withSubnet(cidr, gateway string) string {
	if cidr == "" {
		return ""
	}
	return " with subnet " + withGateway(cidr, gateway)
}

func withGateway(cidr, gateway string) string {
	if gateway == "" {
		return cidr
	}
	return cidr + ", gateway " + gateway
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

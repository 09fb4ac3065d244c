package plan

import (
	"fmt"
	"strings"
)

// Words describes the desired state for people.
func (d Desired) Words() string {
	switch {
	case d.Absent && d.Leave == LeaveAll:
		return "no Network object; what is in Neutron stays"
	case d.Absent && d.Leave == LeaveNetwork:
		return "no Network object and no subnet; the adopted network stays"
	case d.Absent:
		return "no Network object, and nothing in Neutron"
	case d.Invalid != "":
		return "invalid: " + d.Invalid
	}
	words := []string{"a new network"}
	if d.Adopted != "" {
		words[0] = "the network " + d.Adopted
	}
	words = append(words, "subnet "+d.RangeText())
	switch {
	case d.NoGateway:
		words = append(words, "no gateway")
	case d.Gateway.IsValid():
		words = append(words, "gateway "+d.Gateway.String())
	}
	if len(d.Tags) > 0 {
		words = append(words, "tags "+strings.Join(d.Tags, " "))
	}
	if d.Router != nil {
		words = append(words, "router "+d.Router.ID+d.Router.Name)
	}
	return strings.Join(words, ", ")
}

// SuccessWord is the outcome of a sync that reaches the desired state.
func (d Desired) SuccessWord() string {
	if d.Absent {
		return "Deleted"
	}
	return "Ready"
}

// Words describes the known part of the actual state for people.
func (a Actual) Words(desired Desired) string {
	ours := a.Ours(desired)
	source := "recorded in the status"
	if a.Cached {
		source = "in the cache of Neutron's state"
	}
	if ours.NetworkID == "" && !a.Cached && !a.Finalizer {
		return "no finalizer yet, so nothing in Neutron"
	}
	if ours.NetworkID == "" {
		return "no network " + source
	}
	text := fmt.Sprintf("network %s", ours.NetworkID)
	if ours.CIDR.IsValid() {
		text += ", subnet " + ours.CIDR.String()
		if ours.Gateway.IsValid() {
			text += ", gateway " + ours.Gateway.String()
		}
	} else {
		text += ", no subnet"
	}
	return text + ", " + source
}

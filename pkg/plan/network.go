package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// towardsNewNetwork makes the network, with all settings that this Neutron has.
func towardsNewNetwork(desired Desired, actual Actual) Step {
	network := neutron.NewNetwork{Name: desired.Owner.String(), Description: desired.Owner.Marker()}
	for _, s := range settings {
		if !s.asked(desired.Settings) {
			continue
		}
		has, known := actual.canDo(s.extension)
		if !known {
			return FindExtensions{}
		}
		if has {
			s.set(&network.NetworkSettings, desired.Settings)
		}
	}
	return CreateNetwork{network}
}

// towardsNetwork puts our own network right: its name, its mark, its settings;
// nil where they are. One that was adopted stays as it is.
func towardsNetwork(desired Desired, actual Actual, network neutron.Network) Step {
	if desired.Adopted != "" {
		return nil
	}
	name, mark := desired.Owner.String(), desired.Owner.Marker()
	if step := provenOurs(desired, actual, network); step != nil {
		return step
	}
	update := neutron.NetworkUpdate{Name: name, Description: mark, Revision: network.Revision}
	var changes []Change
	if network.Name != name {
		changes = append(changes, Change{"name", strconv.Quote(network.Name), strconv.Quote(name)})
	}
	if network.Description != mark {
		changes = append(changes, Change{"description", strconv.Quote(network.Description), strconv.Quote(mark)})
	}
	wanted := wantedSettings(desired, actual, network)
	for _, s := range settings {
		if s.same(wanted, network.NetworkSettings) {
			continue
		}
		has, known := actual.canDo(s.extension)
		if !known {
			return FindExtensions{}
		}
		if has {
			s.set(&update.NetworkSettings, wanted)
			changes = append(changes, Change{s.what, s.text(network.NetworkSettings), s.text(wanted)})
		}
	}
	if changes == nil {
		return nil
	}
	return UpdateNetwork{ID: network.ID, Changes: changes, Update: update}
}

// provenOurs returns why a network must not be treated as ours: nil where it has
// our mark, or had it when an earlier object went, or where our subnet on it
// proves it ours though somebody took the mark away.
func provenOurs(desired Desired, actual Actual, network neutron.Network) Step {
	if isOurs(desired.Owner, network) {
		return nil
	}
	subnets, known := actual.subnetsOf(network)
	isMarked := func(s neutron.Subnet) bool { return s.Description == desired.Owner.Marker() }
	switch {
	case neutron.IsMarker(network.Description):
		return notOurs(desired.Owner, network)
	case !known:
		return FindSubnets{neutron.SubnetFilter{NetworkID: network.ID}}
	case !slices.ContainsFunc(subnets, isMarked):
		return notOurs(desired.Owner, network)
	}
	return nil
}

// wantedSettings returns what a network's settings should be: Neutron's own
// where the spec says nothing; nil where it does not matter.
func wantedSettings(desired Desired, actual Actual, network neutron.Network) neutron.NetworkSettings {
	wanted := desired.Settings
	if wanted.AdminStateUp == nil {
		wanted.AdminStateUp = new(true)
	}
	if wanted.PortSecurity == nil && network.PortSecurity != nil {
		wanted.PortSecurity = new(true)
	}
	if wanted.DNSDomain == nil && network.DNSDomain != nil {
		wanted.DNSDomain = new("")
	}
	if wanted.MTU == nil && network.MTU != nil && *network.MTU != actual.defaultMTU(desired, network) {
		wanted.MTU = new(0)
	}
	return wanted
}

// defaultMTU returns what is known to be the MTU that Neutron gives our network
// by itself; 0 where it has to be asked. Neutron does not tell: it is noted when
// Neutron was left to choose. There is no note in a status that is older than
// notes are; nor in one that does not speak of the network yet, and then Neutron
// chose, unless another spec or another object did.
func (a Actual) defaultMTU(desired Desired, network neutron.Network) int {
	older := a.NetworkID == network.ID && a.MTU == 0
	retained := network.Description == desired.Owner.RetainedMarker()
	unnoted := a.NetworkID != network.ID && !retained && !desired.Edited
	if a.DefaultMTU == 0 && (older || unnoted) && desired.Settings.MTU == nil {
		return mtuOf(network)
	}
	return a.DefaultMTU
}

func mtuOf(network neutron.Network) int {
	if network.MTU == nil {
		return 0
	}
	return *network.MTU
}

// setting is one of a network's settings.
type setting struct {
	what      string // in a step's text
	field     string // in the spec
	extension string // which it needs; empty for none
	asked     func(neutron.NetworkSettings) bool
	same      func(wanted, have neutron.NetworkSettings) bool
	set       func(to *neutron.NetworkSettings, from neutron.NetworkSettings)
	text      func(neutron.NetworkSettings) string
}

var settings = []setting{
	settingOf("MTU", "mtu", neutron.ExtensionMTU, func(s *neutron.NetworkSettings) **int { return &s.MTU }),
	settingOf("admin state up", "adminStateUp", "", func(s *neutron.NetworkSettings) **bool { return &s.AdminStateUp }),
	settingOf("port security", "portSecurityEnabled", neutron.ExtensionPortSecurity, func(s *neutron.NetworkSettings) **bool { return &s.PortSecurity }),
	settingOf("DNS domain", "dnsDomain", neutron.ExtensionDNS, func(s *neutron.NetworkSettings) **string { return &s.DNSDomain }),
}

func settingOf[T comparable](what, field, extension string, of func(*neutron.NetworkSettings) **T) setting {
	return setting{
		what: what, field: field, extension: extension,
		asked: func(s neutron.NetworkSettings) bool { return *of(&s) != nil },
		same: func(wanted, have neutron.NetworkSettings) bool {
			w, h := *of(&wanted), *of(&have)
			return w == nil || h != nil && *w == *h
		},
		set: func(to *neutron.NetworkSettings, from neutron.NetworkSettings) { *of(to) = *of(&from) },
		text: func(s neutron.NetworkSettings) string {
			value := *of(&s)
			var none T
			switch {
			case value == nil:
				return "unknown"
			case *value == none && what == "MTU":
				return "the largest allowed"
			case *value == none && what == "DNS domain":
				return "none"
			}
			return fmt.Sprint(*value)
		},
	}
}

// canDo reports whether this Neutron has an extension, as far as that is known.
func (a Actual) canDo(extension string) (has, known bool) {
	switch {
	case extension == "":
		return true, true
	case a.extensions == nil:
		return false, false
	}
	return slices.Contains(*a.extensions, extension), true
}

// towardsTags puts our tags on our network, and takes away those of them that
// are no longer asked for. It comes last: a tag gives the network another
// revision.
func towardsTags(desired Desired, actual Actual, network neutron.Network) Step {
	if desired.Adopted != "" {
		return nil
	}
	var toAdd, toNote []string
	for _, tag := range desired.Tags {
		if !slices.Contains(network.Tags, tag) {
			toAdd = append(toAdd, tag)
			if !slices.Contains(actual.Tags, tag) {
				toNote = append(toNote, tag)
			}
		}
	}
	isGone := func(tag string) bool {
		return !slices.Contains(desired.Tags, tag) && slices.Contains(network.Tags, tag)
	}
	toRemove := slices.IndexFunc(actual.Tags, isGone)
	if toAdd == nil && toRemove < 0 {
		return nil
	}
	has, known := actual.canDo(neutron.ExtensionTags)
	switch {
	case !known:
		return FindExtensions{}
	case !has:
		return nil
	case toNote != nil:
		return NoteTags{slices.Sorted(slices.Values(slices.Concat(actual.Tags, toNote)))}
	case toAdd != nil:
		return AddTag{ID: network.ID, Tag: toAdd[0]}
	}
	return RemoveTag{ID: network.ID, Tag: actual.Tags[toRemove]}
}

// missing ends a plan that has done what can be done: it names what of the spec
// this Neutron cannot do.
func missing(desired Desired, network neutron.Network) Step {
	var words []string
	for _, s := range settings {
		if s.asked(desired.Settings) && !s.same(desired.Settings, network.NetworkSettings) {
			words = append(words, fmt.Sprintf("spec.%s needs %q", s.field, s.extension))
		}
	}
	lacksTag := func(tag string) bool { return !slices.Contains(network.Tags, tag) }
	if desired.Adopted == "" && slices.ContainsFunc(desired.Tags, lacksTag) {
		words = append(words, fmt.Sprintf("spec.tags needs %q", neutron.ExtensionTags))
	}
	if words == nil {
		return Nothing{}
	}
	return Blocked{Reason: ReasonExtensionMissing, Message: fmt.Sprintf(
		"this cloud lacks an extension of Neutron: %s. All else is as asked for. Leave the field out, or ask whoever runs the cloud for the extension.", strings.Join(words, ", "))}
}

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// stepToNewNetwork creates the network, with all desired settings that this
// Neutron supports. It is blocked if the network may exist already: the object may
// have been restored from a backup of another cluster.
func stepToNewNetwork(desired Desired, actual Actual) Step {
	if actual.OthersUnknown {
		return FindOtherClusters{Name: desired.Owner.String()}
	}
	owner := desired.Owner
	if others := actual.OtherClusters; len(others) > 0 {
		return blocked(ReasonOtherCluster,
			"Neutron has a network of a Network %s that belongs to the cluster %q, but this cluster is %q. "+
				"If this cluster replaces that one, start the controller with -cluster-name=%s. "+
				"If both clusters share the OpenStack project, start it with -other-clusters=%s.",
			owner, strings.Join(others, ", "), owner.Cluster, others[0], strings.Join(others, ","))
	}
	network := neutron.NewNetwork{Name: owner.String(), Description: owner.NetworkMarker(desired.Request, false)}
	for _, s := range settings {
		if !s.isSet(desired.Settings) {
			continue
		}
		has, known := actual.hasExtension(s.extension)
		if !known {
			return FindExtensions{}
		}
		if has {
			s.set(&network.NetworkSettings, desired.Settings)
		}
	}
	return CreateNetwork{network}
}

// stepToSettings updates the name, the owner marker and the settings of our
// network. It returns nil if they are as desired. An adopted network is not
// changed.
func stepToSettings(desired Desired, actual Actual, network neutron.Network) Step {
	if desired.Adopted != "" {
		return nil
	}
	if step := stepToProofOfOwnership(desired, actual, network); step != nil {
		return step
	}
	name, marker := desired.Owner.String(), desired.markerOf(network)
	update := neutron.NetworkUpdate{Name: name, Description: marker, Revision: network.Revision}
	changes := labelChanges(network.Name, name, network.Description, marker)
	target := desired.settingsFor(actual, network)
	for _, s := range settings {
		if s.matches(target, network.NetworkSettings) {
			continue
		}
		has, known := actual.hasExtension(s.extension)
		if !known {
			return FindExtensions{}
		}
		if has {
			s.set(&update.NetworkSettings, target)
			changes = append(changes, Change{s.label, s.text(network.NetworkSettings), s.text(target)})
		}
	}
	if changes == nil {
		return nil
	}
	return UpdateNetwork{ID: network.ID, Changes: changes, Update: update}
}

func labelChanges(name, desiredName, description, desiredDescription string) (changes []Change) {
	if name != desiredName {
		changes = append(changes, Change{"name", strconv.Quote(name), strconv.Quote(desiredName)})
	}
	if description != desiredDescription {
		changes = append(changes, Change{"description", strconv.Quote(description), strconv.Quote(desiredDescription)})
	}
	return changes
}

// settingsFor returns the desired settings of a network. A setting that the spec
// omits has Neutron's default, or nil if this Neutron does not have it.
func (d Desired) settingsFor(actual Actual, network neutron.Network) neutron.NetworkSettings {
	target := d.Settings
	target.AdminStateUp = cmp.Or(target.AdminStateUp, new(true))
	if target.PortSecurity == nil && network.PortSecurity != nil {
		target.PortSecurity = new(true)
	}
	if target.DNSDomain == nil && network.DNSDomain != nil {
		target.DNSDomain = new("")
	}
	if target.MTU == nil && network.MTU != nil && *network.MTU != actual.defaultMTU(d, network) {
		target.MTU = new(0)
	}
	return target
}

// defaultMTU returns the MTU that Neutron chose for our network, or 0 if it is
// unknown. Neutron does not return it separately, so the status records it
// whenever Neutron chooses.
//
// An older version of the controller did not record it, and no status records the
// network before the first one is written. Then Neutron chose the MTU that the
// network has, unless another spec or another object set it.
func (a Actual) defaultMTU(desired Desired, network neutron.Network) int {
	olderVersion := a.NetworkID == network.ID && a.MTU == 0
	retained := desired.Owner.HasRetainedMarker(network.Description)
	unrecorded := a.NetworkID != network.ID && !retained && !desired.Edited
	if a.DefaultMTU == 0 && (olderVersion || unrecorded) && desired.Settings.MTU == nil {
		return mtuOf(network)
	}
	return a.DefaultMTU
}

// stepToTags adds the desired tags to our network, and removes those of our tags
// that are no longer desired. It comes last, because a tag changes the revision
// of the network.
func stepToTags(desired Desired, actual Actual, network neutron.Network) Step {
	if desired.Adopted != "" {
		return nil
	}
	var toAdd, toRecord []string
	for _, tag := range desired.Tags {
		if !slices.Contains(network.Tags, tag) {
			toAdd = append(toAdd, tag)
			if !slices.Contains(actual.Tags, tag) {
				toRecord = append(toRecord, tag)
			}
		}
	}
	isUndesired := func(tag string) bool {
		return !slices.Contains(desired.Tags, tag) && slices.Contains(network.Tags, tag)
	}
	toRemove := slices.IndexFunc(actual.Tags, isUndesired)
	if toAdd == nil && toRemove < 0 {
		return nil
	}
	has, known := actual.hasExtension(neutron.ExtensionTags)
	switch {
	case !known:
		return FindExtensions{}
	case !has:
		return nil
	case toRecord != nil:
		return RecordTags{slices.Sorted(slices.Values(slices.Concat(actual.Tags, toRecord)))}
	case toAdd != nil:
		return AddTag{ID: network.ID, Tag: toAdd[0]}
	}
	return RemoveTag{ID: network.ID, Tag: actual.Tags[toRemove]}
}

// retain leaves a network to the next object of the same name.
func retain(desired Desired, network neutron.Network) Step {
	return RetainNetwork{ID: network.ID, Update: neutron.NetworkUpdate{
		Name: desired.Owner.String(), Description: desired.Owner.RetainedMarker(), Revision: network.Revision,
	}}
}

// setting is one of a network's settings.
type setting struct {
	label     string // in the text of a step
	field     string // in the spec
	extension string // that it requires; empty for none
	access
}

// access are the functions of a setting.
type access struct {
	isSet   func(neutron.NetworkSettings) bool
	matches func(desired, actual neutron.NetworkSettings) bool
	set     func(to *neutron.NetworkSettings, from neutron.NetworkSettings)
	text    func(neutron.NetworkSettings) string
}

type networkSettings = neutron.NetworkSettings

var settings = []setting{
	{"MTU", "mtu", neutron.ExtensionMTU,
		accessTo(func(s *networkSettings) **int { return &s.MTU }, "the largest allowed")},
	{"admin state up", "adminStateUp", "",
		accessTo(func(s *networkSettings) **bool { return &s.AdminStateUp }, "false")},
	{"port security", "portSecurityEnabled", neutron.ExtensionPortSecurity,
		accessTo(func(s *networkSettings) **bool { return &s.PortSecurity }, "false")},
	{"DNS domain", "dnsDomain", neutron.ExtensionDNS,
		accessTo(func(s *networkSettings) **string { return &s.DNSDomain }, "none")},
}

// accessTo returns the functions of the setting that fieldOf points to. Its zero value is
// written as zeroText.
func accessTo[T comparable](fieldOf func(*networkSettings) **T, zeroText string) access {
	return access{
		isSet: func(s networkSettings) bool { return *fieldOf(&s) != nil },
		matches: func(desired, actual networkSettings) bool {
			d, a := *fieldOf(&desired), *fieldOf(&actual)
			return d == nil || a != nil && *d == *a
		},
		set: func(to *networkSettings, from networkSettings) { *fieldOf(to) = *fieldOf(&from) },
		text: func(s networkSettings) string {
			switch value := *fieldOf(&s); {
			case value == nil:
				return "unknown"
			case *value == *new(T):
				return zeroText
			default:
				return fmt.Sprint(*value)
			}
		},
	}
}

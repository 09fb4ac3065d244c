package plan

import (
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
	if len(actual.OtherClusters) > 0 {
		return Blocked{Reason: ReasonOtherCluster, Message: fmt.Sprintf(
			"Neutron has a network of a Network %s that belongs to the cluster %q, but this cluster is %q. If this cluster replaces that one, start the controller with -cluster-name=%s. "+
				"If both clusters share the OpenStack project, start it with -other-clusters=%s.",
			desired.Owner, strings.Join(actual.OtherClusters, ", "), desired.Owner.Cluster, actual.OtherClusters[0], strings.Join(actual.OtherClusters, ","))}
	}
	network := neutron.NewNetwork{Name: desired.Owner.String(), Description: desired.Owner.NetworkMarker(desired.Request, false)}
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

// labelChanges returns the changes of a name and of a description.
func labelChanges(name, desiredName, description, desiredDescription string) (changes []Change) {
	if name != desiredName {
		changes = append(changes, Change{"name", strconv.Quote(name), strconv.Quote(desiredName)})
	}
	if description != desiredDescription {
		changes = append(changes, Change{"description", strconv.Quote(description), strconv.Quote(desiredDescription)})
	}
	return changes
}

// stepToProofOfOwnership returns nil if a network belongs to the owner. It does if
// it has the owner marker or the retained marker. It also does if a user removed
// its marker, but our subnet is on it.
func stepToProofOfOwnership(desired Desired, actual Actual, network neutron.Network) Step {
	owner := desired.Owner
	if owner.HasMarker(network.Description) || owner.HasRetainedMarker(network.Description) {
		return nil
	}
	subnets, known := actual.subnetsOf(network)
	hasMarker := func(s neutron.Subnet) bool { return owner.HasMarker(s.Description) }
	switch {
	case neutron.IsMarker(network.Description):
		return notOurs(owner, network)
	case !known:
		return FindSubnets{neutron.SubnetFilter{NetworkID: network.ID}}
	case !slices.ContainsFunc(subnets, hasMarker):
		return notOurs(owner, network)
	}
	return nil
}

// settingsFor returns the desired settings of a network. A setting that the spec
// omits has Neutron's default, or nil if this Neutron does not have it.
func (d Desired) settingsFor(actual Actual, network neutron.Network) neutron.NetworkSettings {
	target := d.Settings
	if target.AdminStateUp == nil {
		target.AdminStateUp = new(true)
	}
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

func mtuOf(network neutron.Network) int {
	if network.MTU == nil {
		return 0
	}
	return *network.MTU
}

// setting is one of a network's settings.
type setting struct {
	label     string // in the text of a step
	field     string // in the spec
	extension string // that it requires; empty for none
	isSet     func(neutron.NetworkSettings) bool
	matches   func(desired, actual neutron.NetworkSettings) bool
	set       func(to *neutron.NetworkSettings, from neutron.NetworkSettings)
	text      func(neutron.NetworkSettings) string
}

var settings = []setting{
	newSetting("MTU", "mtu", neutron.ExtensionMTU, "the largest allowed", func(s *neutron.NetworkSettings) **int { return &s.MTU }),
	newSetting("admin state up", "adminStateUp", "", "false", func(s *neutron.NetworkSettings) **bool { return &s.AdminStateUp }),
	newSetting("port security", "portSecurityEnabled", neutron.ExtensionPortSecurity, "false", func(s *neutron.NetworkSettings) **bool { return &s.PortSecurity }),
	newSetting("DNS domain", "dnsDomain", neutron.ExtensionDNS, "none", func(s *neutron.NetworkSettings) **string { return &s.DNSDomain }),
}

// newSetting returns a setting that fieldOf points to. Its zero value is written
// as zeroText.
func newSetting[T comparable](label, field, extension, zeroText string, fieldOf func(*neutron.NetworkSettings) **T) setting {
	return setting{
		label: label, field: field, extension: extension,
		isSet: func(s neutron.NetworkSettings) bool { return *fieldOf(&s) != nil },
		matches: func(desired, actual neutron.NetworkSettings) bool {
			d, a := *fieldOf(&desired), *fieldOf(&actual)
			return d == nil || a != nil && *d == *a
		},
		set: func(to *neutron.NetworkSettings, from neutron.NetworkSettings) { *fieldOf(to) = *fieldOf(&from) },
		text: func(s neutron.NetworkSettings) string {
			value := *fieldOf(&s)
			var zero T
			switch {
			case value == nil:
				return "unknown"
			case *value == zero:
				return zeroText
			}
			return fmt.Sprint(*value)
		},
	}
}

// hasExtension reports whether this Neutron has an extension, if that is known.
func (a Actual) hasExtension(extension string) (has, known bool) {
	switch {
	case extension == "":
		return true, true
	case a.extensions == nil:
		return false, false
	}
	return slices.Contains(*a.extensions, extension), true
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

// endOfPlan returns the end of a plan in which everything possible is done:
// Nothing, or Blocked with the fields that this Neutron does not support.
func endOfPlan(desired Desired, actual Actual, network neutron.Network) Step {
	var unsupported []string
	for _, s := range settings {
		if s.isSet(desired.Settings) && !s.matches(desired.Settings, network.NetworkSettings) {
			unsupported = append(unsupported, fmt.Sprintf("spec.%s requires %q", s.field, s.extension))
		}
	}
	isMissing := func(tag string) bool { return !slices.Contains(network.Tags, tag) }
	if slices.ContainsFunc(desired.Tags, isMissing) {
		unsupported = append(unsupported, fmt.Sprintf("spec.tags requires %q", neutron.ExtensionTags))
	}
	if has, known := actual.hasExtension(neutron.ExtensionRouter); known && !has && desired.Router != nil {
		unsupported = append(unsupported, fmt.Sprintf("spec.router requires %q", neutron.ExtensionRouter))
	}
	if unsupported == nil {
		return Nothing{}
	}
	return Blocked{Reason: ReasonExtensionMissing, Message: fmt.Sprintf(
		"this cloud lacks a Neutron extension: %s. Everything else is as desired. Omit the field, or ask the operator of the cloud for the extension.",
		strings.Join(unsupported, ", "))}
}

package plan

import (
	"cmp"
	"slices"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// A process that dies, or is cut off, can leave a request that Neutron has not finished.
// The next process does not find its network yet, and creates another one. Each of the
// two names its request in its owner marker. So the one that the status does not name
// is proven to be ours, whenever it was created: somebody who copies the marker of a
// network copies its request, too.

// selectDuplicate returns the network to keep out of several with our owner
// marker, and the others. It keeps the one that the status names; or else one
// that has subnets; or else the oldest one.
func selectDuplicate(networks []neutron.Network, inStatus string) (kept neutron.Network, others []neutron.Network) {
	if len(networks) == 1 { // as usual
		return networks[0], nil
	}
	sorted := slices.Clone(networks)
	slices.SortFunc(sorted, func(a, b neutron.Network) int {
		return cmp.Or(
			trueFirst(a.ID == inStatus, b.ID == inStatus),
			trueFirst(len(a.SubnetIDs) != 0, len(b.SubnetIDs) != 0),
			a.CreatedAt.Compare(b.CreatedAt),
			cmp.Compare(a.ID, b.ID))
	})
	return sorted[0], sorted[1:]
}

// trueFirst compares two values so that true is sorted before false.
func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// duplicatesAmong returns those of the other networks that are proven to be duplicates of
// the kept one: each looks as we create it, and names a request of its own.
func duplicatesAmong(desired Desired, actual Actual, kept neutron.Network, others []neutron.Network) []neutron.Network {
	count := map[string]int{"": 2, neutron.RequestOf(kept.Description): 2}
	for _, other := range others {
		count[neutron.RequestOf(other.Description)]++
	}
	isForeign := func(tag string) bool {
		return !slices.Contains(desired.Tags, tag) && !slices.Contains(actual.Tags, tag)
	}
	return slices.DeleteFunc(slices.Clone(others), func(n neutron.Network) bool {
		return n.Name != desired.Owner.String() || !desired.Owner.HasMarker(n.Description) ||
			count[neutron.RequestOf(n.Description)] != 1 || slices.ContainsFunc(n.Tags, isForeign)
	})
}

func areDuplicates(desired Desired, actual Actual, kept neutron.Network, others []neutron.Network) bool {
	return len(duplicatesAmong(desired, actual, kept, others)) == len(others)
}

// stepToNoDuplicates deletes the duplicates of a network. It returns nil if there
// are none. Neutron refuses to delete a network that has ports, such as those of a
// router: the status records no router for a duplicate.
//
// While the object is being deleted, a network that is no proven duplicate, or that
// others use, is left: it must not block the deletion.
func stepToNoDuplicates(desired Desired, actual Actual, kept neutron.Network, others []neutron.Network) Step {
	duplicates := duplicatesAmong(desired, actual, kept, others)
	all := append([]neutron.Network{kept}, others...)
	ambiguity := ambiguous("networks", networkIDs(all), desired.Owner, actual.NetworkID)
	if len(duplicates) < len(others) && !desired.Absent {
		return ambiguity
	}
	for _, duplicate := range duplicates {
		step, isFree := stepToNoDuplicate(desired, actual, kept, duplicate)
		switch {
		case isFree:
			return step
		case !desired.Absent:
			return ambiguity
		}
	}
	return nil
}

// stepToNoDuplicate deletes a duplicate, or retains it again if it was taken over. It
// returns false if something of others is on it.
func stepToNoDuplicate(desired Desired, actual Actual, kept, duplicate neutron.Network) (step Step, isFree bool) {
	if neutron.IsTakenOver(duplicate.Description) {
		return retain(desired, duplicate), true
	}
	subnets, known := actual.subnetsOf(duplicate)
	if !known {
		return FindSubnets{neutron.SubnetFilter{NetworkID: duplicate.ID}}, true
	}
	isForeign := func(s neutron.Subnet) bool { return !desired.Owner.HasMarker(s.Description) }
	if slices.ContainsFunc(subnets, isForeign) || len(subnets) < len(duplicate.SubnetIDs) { // one is on it that we cannot see
		return nil, false
	}
	return DeleteNetwork{ID: duplicate.ID, Revision: duplicate.Revision, DuplicateOf: kept.ID}, true
}

// retain leaves a network to the next object of the same name.
func retain(desired Desired, network neutron.Network) Step {
	return RetainNetwork{ID: network.ID, Update: neutron.NetworkUpdate{
		Name: desired.Owner.String(), Description: desired.Owner.RetainedMarker(), Revision: network.Revision,
	}}
}

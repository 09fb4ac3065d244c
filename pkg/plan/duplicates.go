package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// DuplicateWindow is the longest time between the creation times of two networks
// that were created for one object. A process that dies can leave a request that
// Neutron has not finished. The next process does not find its network yet, and
// creates another one. Both creation times, by Neutron's own clock, lie within
// the time that one request can take.
const DuplicateWindow = 2 * time.Minute

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

// areDuplicates reports whether the other networks are proven to be duplicates of
// the kept one: each looks exactly as we create it, and was created at the same
// time. A copied description alone is no proof.
func areDuplicates(desired Desired, actual Actual, kept neutron.Network, others []neutron.Network) bool {
	isForeign := func(tag string) bool {
		return !slices.Contains(desired.Tags, tag) && !slices.Contains(actual.Tags, tag)
	}
	return !slices.ContainsFunc(others, func(n neutron.Network) bool {
		return n.Name != desired.Owner.String() || n.Description != desired.Owner.Marker() ||
			slices.ContainsFunc(n.Tags, isForeign) || !createdTogether(kept.CreatedAt, n.CreatedAt)
	})
}

// createdTogether reports whether two creation times lie within the
// DuplicateWindow. Unknown times do not.
func createdTogether(a, b time.Time) bool {
	return !a.IsZero() && a.Sub(b).Abs() <= DuplicateWindow
}

// stepToNoDuplicates deletes the duplicates of a network. It returns nil if there
// are none. Neutron refuses to delete a network that has ports, such as those of a
// router: the status records no router for a duplicate.
func stepToNoDuplicates(desired Desired, actual Actual, kept neutron.Network, others []neutron.Network) Step {
	if len(others) == 0 {
		return nil
	}
	all := append([]neutron.Network{kept}, others...)
	ambiguity := ambiguous("networks", networkIDs(all), desired.Owner, actual.NetworkID)
	if !areDuplicates(desired, actual, kept, others) {
		return ambiguity
	}
	duplicate := others[0]
	subnets, known := actual.subnetsOf(duplicate)
	if !known {
		return FindSubnets{neutron.SubnetFilter{NetworkID: duplicate.ID}}
	}
	for _, subnet := range subnets {
		if subnet.Description != desired.Owner.Marker() || !createdTogether(subnet.CreatedAt, duplicate.CreatedAt) {
			return ambiguity
		}
	}
	if len(subnets) < len(duplicate.SubnetIDs) { // a subnet is on it that we cannot see
		return ambiguity
	}
	return DeleteNetwork{ID: duplicate.ID, Revision: duplicate.Revision, DuplicateOf: kept.ID}
}

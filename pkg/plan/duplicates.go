package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// DuplicateWindow is how far apart the births of two networks can be that were made
// for one object. A process that dies leaves a request behind that Neutron may
// still be at; the next process looks, finds nothing, and asks again. Whatever
// had been born by then would have been found, so both are born within the time
// that a request may take, by Neutron's own clock.
const DuplicateWindow = 2 * time.Minute

// choose returns the one of several networks with our mark that is to be kept,
// and the others: the one that the status names; or else one that has subnets;
// or else the eldest.
func choose(networks []neutron.Network, inStatus string) (kept neutron.Network, others []neutron.Network) {
	sorted := slices.SortedFunc(slices.Values(networks), func(a, b neutron.Network) int {
		return cmp.Or(
			first(a.ID == inStatus, b.ID == inStatus),
			first(len(a.SubnetIDs) > 0, len(b.SubnetIDs) > 0),
			a.CreatedAt.Compare(b.CreatedAt),
			cmp.Compare(a.ID, b.ID))
	})
	return sorted[0], sorted[1:]
}

// first orders what has a property before what has not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// areTwins reports whether networks are provably ours although there is another
// one: they are what we would have made, and nothing else, and were born when we
// were making it. Whose description was copied from ours is not that.
func areTwins(desired Desired, actual Actual, kept neutron.Network, others []neutron.Network) bool {
	isTheirs := func(tag string) bool {
		return !slices.Contains(desired.Tags, tag) && !slices.Contains(actual.Tags, tag)
	}
	return !slices.ContainsFunc(others, func(n neutron.Network) bool {
		return n.Name != desired.Owner.String() || n.Description != desired.Owner.Marker() ||
			slices.ContainsFunc(n.Tags, isTheirs) || !bornTogether(kept.CreatedAt, n.CreatedAt)
	})
}

func bornTogether(a, b time.Time) bool {
	return !a.IsZero() && !b.IsZero() && a.Sub(b).Abs() <= DuplicateWindow
}

// withoutTwins takes away what several processes have made for one object, but
// for what is kept. It returns nil where there is nothing of that kind. What
// ports are on is not deleted: Neutron refuses that.
func withoutTwins(desired Desired, actual Actual, kept neutron.Network, others []neutron.Network) Step {
	if len(others) == 0 {
		return nil
	}
	all := append([]neutron.Network{kept}, others...)
	ambiguity := ambiguous("networks", networkIDs(all), desired.Owner, actual.NetworkID)
	if !areTwins(desired, actual, kept, others) {
		return ambiguity
	}
	twin := others[0]
	subnets, known := actual.subnetsOf(twin)
	if !known {
		return FindSubnets{neutron.SubnetFilter{NetworkID: twin.ID}}
	}
	for _, subnet := range subnets {
		if subnet.Description != desired.Owner.Marker() || !bornTogether(subnet.CreatedAt, twin.CreatedAt) {
			return ambiguity
		}
	}
	if len(subnets) < len(twin.SubnetIDs) { // there is one that we are not shown
		return ambiguity
	}
	return DeleteNetwork{ID: twin.ID, Revision: twin.Revision, DuplicateOf: kept.ID}
}

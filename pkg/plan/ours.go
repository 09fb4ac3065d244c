package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
)

// selectNetwork returns the network of the object, or nil if it is known to be
// absent; and the other networks with our owner marker. It returns a step if the
// network is unknown or ambiguous.
func selectNetwork(desired Desired, actual Actual) (network *neutron.Network, others []neutron.Network, step Step) {
	id, found := desired.Adopted, actual.byID
	if desired.Adopted == "" {
		if actual.byName == nil {
			return nil, nil, FindNetwork{neutron.NetworkFilter{Name: desired.Owner.String()}}
		}
		id = actual.NetworkID
		if ours := desired.networksOf(actual); len(ours) > 0 {
			found = ours
		}
	}
	switch {
	case found == nil && id != "":
		return nil, nil, FindNetwork{neutron.NetworkFilter{ID: id}}
	case len(found) == 0:
		return nil, nil, nil
	}
	kept, others := selectDuplicate(found, actual.NetworkID)
	if desired.Gone {
		return &kept, nil, nil // one after the other
	}
	if kept.ID != actual.NetworkID && !areDuplicates(desired, actual, kept, others) {
		return nil, nil, ambiguous("networks", networkIDs(found), desired.Owner, actual.NetworkID)
	}
	return &kept, others, nil
}

// networksOf returns the networks that may be the one of the object, out of those with
// its name: the ones with its owner marker, and the one that waits for it, unless one of
// the others is in use. An object that is deleted with its network must not delete what an
// earlier object retained.
func (d Desired) networksOf(actual Actual) []neutron.Network {
	isRetained := func(n neutron.Network) bool { return d.Owner.HasRetainedMarker(n.Description) }
	isUsed := func(n neutron.Network) bool { return n.ID == actual.NetworkID || len(n.SubnetIDs) > 0 }
	ours := filter(actual.byName, func(n neutron.Network) bool {
		isInStatus := isRetained(n) && n.ID == actual.NetworkID && d.mayTakeOver()
		hasClaim := !d.Gone || d.Claims.Has(n.Description)
		return (d.Owner.HasMarker(n.Description) || isInStatus) && hasClaim && !actual.isLeft(d, n)
	})
	if d.mayTakeOver() && !slices.ContainsFunc(ours, isUsed) {
		return append(filter(actual.byName, isRetained), ours...) // ours are of requests that Neutron executed late
	}
	return ours
}

// isLeft reports whether a network stays although its object is being deleted: a
// duplicate that is in use, or a copy of what the plan has deleted or retained.
func (a Actual) isLeft(desired Desired, network neutron.Network) bool {
	isCopy := !desired.Gone && slices.Contains(a.ended, neutron.RequestOf(network.Description))
	return desired.Absent && (isCopy || slices.Contains(a.left, network.ID))
}

// A process that dies, or is cut off, can leave a request that Neutron has not finished.
// The next process does not find its network yet, and creates another one. Each of the
// two names its request in its owner marker. So the one that the status does not name
// is proven to be ours, whenever it was created: somebody who copies the marker of a
// network copies its request, too.

// selectDuplicate returns the network to keep out of several with our owner
// marker, and the others. It keeps the one that the status names; or else one that an
// earlier object retained; or else one that has subnets; or else the oldest one.
func selectDuplicate(networks []neutron.Network, inStatus string) (kept neutron.Network, others []neutron.Network) {
	if len(networks) == 1 { // as usual
		return networks[0], nil
	}
	wasRetained := func(n neutron.Network) bool {
		_, isRetained := neutron.ParseRetainedMarker(n.Description)
		return isRetained || neutron.IsTakenOver(n.Description)
	}
	sorted := slices.SortedFunc(slices.Values(networks), func(a, b neutron.Network) int {
		return cmp.Or(
			trueFirst(a.ID == inStatus, b.ID == inStatus),
			trueFirst(wasRetained(a), wasRetained(b)),
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

func areDuplicates(desired Desired, actual Actual, kept neutron.Network, others []neutron.Network) bool {
	return len(duplicatesAmong(desired, actual, kept, others)) == len(others)
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
	return filter(others, func(n neutron.Network) bool {
		return n.Name == desired.Owner.String() && desired.Owner.HasMarker(n.Description) &&
			count[neutron.RequestOf(n.Description)] == 1 && !slices.ContainsFunc(n.Tags, isForeign)
	})
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
	if !desired.hasAll(subnets) || len(subnets) < len(duplicate.SubnetIDs) { // one is on it that we cannot see
		return nil, false
	}
	return DeleteNetwork{ID: duplicate.ID, Revision: duplicate.Revision, DuplicateOf: kept.ID}, true
}

// stepToTakeOver returns nil if the object may use a network that has one of its
// markers. A new object may use a retained network, and one that a request of ours
// created, for the last object of its name, before a process died. It may not if a subnet
// of somebody else is on the network, or if the network has the owner marker for another
// reason: somebody else may have set the marker. An object with the annotation is not new:
// it was restored from a backup.
func stepToTakeOver(desired Desired, actual Actual, network neutron.Network) Step {
	isNew := !actual.Finalizer && actual.Cloud == "" && network.ID != actual.NetworkID
	switch {
	case !isNew:
		return nil
	case desired.Claims.Has(network.Description): // left by the last object of this name
		return nil
	case desired.Owner.HasRetainedMarker(network.Description):
	case neutron.RequestOf(network.Description) == "" || network.Name != desired.Owner.String():
		return olderNetwork(desired, actual, network)
	}
	subnets, known := actual.subnetsOf(network)
	if !known {
		return FindSubnets{neutron.SubnetFilter{NetworkID: network.ID}}
	}
	if !desired.hasAll(subnets) {
		return olderNetwork(desired, actual, network)
	}
	return nil
}

func olderNetwork(desired Desired, actual Actual, network neutron.Network) Step {
	return blocked(ReasonAmbiguous,
		"Neutron network %s had a marker of this Network before this Network was created. If they belong together, "+
			"for example because this Network was deleted by force and created again, confirm it: "+
			"kubectl annotate network -n %s %s %s=%s. "+
			"Otherwise change the description of the Neutron network, or delete it.",
		network.ID, desired.Owner.Namespace, desired.Owner.Name, samplecrdv1.AnnotationCloud, actual.connected)
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
	switch {
	case neutron.IsMarker(network.Description):
		return notOurs(owner, network)
	case !known:
		return FindSubnets{neutron.SubnetFilter{NetworkID: network.ID}}
	case !slices.ContainsFunc(subnets, desired.has):
		return notOurs(owner, network)
	}
	return nil
}

func notOurs(owner neutron.Owner, network neutron.Network) Step {
	if other, ok := neutron.ParseMarker(network.Description); ok && other.String() == owner.String() {
		return blocked(ReasonNotOurs,
			"network %s, which status.networkID names, has an owner marker of the cluster %q, but this cluster is %q. "+
				"If both are the same cluster, restore its name with -cluster-name. "+
				"Otherwise remove status.networkID (kubectl edit --subresource=status).",
			network.ID, other.Cluster, owner.Cluster)
	}
	return blocked(ReasonNotOurs,
		"network %s, which status.networkID names, does not have the owner marker of this Network: "+
			"its description does not name it. If the network belongs to this Network, set the description to %q. "+
			"Otherwise remove status.networkID (kubectl edit --subresource=status).",
		network.ID, owner.Marker())
}

func ambiguous(kind string, ids []string, owner neutron.Owner, inStatus string) Step {
	hint := ""
	if slices.Contains(ids, inStatus) {
		hint = fmt.Sprintf(" The status names %s.", inStatus)
	}
	return blocked(ReasonAmbiguous,
		"Neutron has %d %s with an owner marker of %s (%s), but there must be only one.%s "+
			"Delete the ones that are not needed.",
		len(ids), kind, owner, strings.Join(ids, ", "), hint)
}

// ambiguousName reports several objects of one name, which a field of the spec has.
func ambiguousName(kind, name string, ids []string, field string) Step {
	return blocked(ReasonAmbiguous,
		"Neutron has %d %s with the name %q (%s). Set %s.id to one of these IDs, and remove %[5]s.name.",
		len(ids), kind, name, strings.Join(ids, ", "), field)
}

// ourSubnets returns the subnets that belong to the object: those with its owner
// marker; or else the one with the desired range, on a network that is to be
// adopted. The range alone is no reason to delete a subnet with its network, and
// neither is a status that names it.
func (a Actual) ourSubnets(desired Desired, subnets []neutron.Subnet) []neutron.Subnet {
	ours := filter(subnets, desired.has)
	if len(ours) == 0 && !desired.Absent {
		return filter(subnets, desired.adopts)
	}
	return ours
}

// has reports whether a subnet has the owner marker of the object.
func (d Desired) has(subnet neutron.Subnet) bool { return d.Owner.HasMarker(subnet.Description) }

func (d Desired) hasAll(subnets []neutron.Subnet) bool {
	return len(filter(subnets, d.has)) == len(subnets)
}

// adopts reports whether a subnet on the adopted network has the desired range, and no
// other owner.
func (d Desired) adopts(subnet neutron.Subnet) bool {
	return d.Adopted != "" && d.SubnetPool == nil && subnet.CIDR == d.CIDR && !neutron.IsMarker(subnet.Description)
}

// foreignSubnets returns the IDs of the subnets on a network that do not belong
// to the object. A subnet that is on the network, but not in the response to
// FindSubnets, is one of them. They are known after FindSubnets, or if all subnets
// of the network were seen with our owner marker.
func (a Actual) foreignSubnets(desired Desired, network neutron.Network) (foreign []string, known bool) {
	subnets, known := a.subnetsOf(network)
	ours := subnetIDs(a.ourSubnets(desired, subnets))
	if !known {
		ours = a.MarkedSubnets
	}
	isForeign := func(id string) bool { return !slices.Contains(ours, id) }
	foreign = filter(slices.Concat(network.SubnetIDs, subnetIDs(subnets)), isForeign)
	slices.Sort(foreign)
	return slices.Compact(foreign), known || len(foreign) == 0
}

// selectSubnet returns the subnet to keep out of several with our owner marker,
// and the others. It keeps one that has the desired range; of several such, the
// one that the status names, or else the oldest one. The others are duplicates
// that several processes created for one object. ok is false if one may be
// something else.
func selectSubnet(desired Desired, actual Actual, ours []neutron.Subnet) (
	kept neutron.Subnet, others []neutron.Subnet, ok bool,
) {
	if len(ours) == 1 { // as usual
		return ours[0], nil, true
	}
	sorted := slices.SortedFunc(slices.Values(ours), func(a, b neutron.Subnet) int {
		return cmp.Or(
			trueFirst(hasDesiredRange(desired, actual, a), hasDesiredRange(desired, actual, b)),
			trueFirst(a.ID == actual.SubnetID, b.ID == actual.SubnetID),
			a.CreatedAt.Compare(b.CreatedAt),
			cmp.Compare(a.ID, b.ID))
	})
	kept, others = sorted[0], sorted[1:]
	isOther := func(s neutron.Subnet) bool { return s.Name != desired.Owner.String() || !desired.has(s) }
	slices.Reverse(others) // those with another range are deleted first: every process decides this in the same way
	return kept, others, !slices.ContainsFunc(others, isOther)
}

// hasDesiredRange reports whether a subnet has the desired range, or a range from
// the desired subnet pool.
func hasDesiredRange(desired Desired, actual Actual, subnet neutron.Subnet) bool {
	if desired.SubnetPool == nil {
		return subnet.CIDR == desired.CIDR
	}
	id, known := actual.subnetPoolID(desired)
	length := desired.SubnetPool.PrefixLength
	return known && subnet.SubnetPoolID == id && (length == 0 || subnet.CIDR.Bits() == length)
}

// subnetPoolID returns the ID of the desired subnet pool, if it is known. It is
// empty if there is none.
func (a Actual) subnetPoolID(desired Desired) (id string, known bool) {
	pool := desired.SubnetPool
	switch {
	case pool == nil:
		return "", true
	case pool.ID != "":
		return pool.ID, true
	case pool.Name == a.SubnetPoolName && a.SubnetPoolID != "":
		return a.SubnetPoolID, true
	case len(a.pools) == 1:
		return a.pools[0].ID, true
	}
	return "", false
}

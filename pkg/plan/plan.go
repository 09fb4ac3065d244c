// Package plan decides what to do next about one Network, and does nothing
// itself. It is a pure function from what is desired and what is known of the
// actual state to the next step; whoever calls it carries the step out, tells
// the state what came of it, and asks again until the answer is [Nothing] or
// [Blocked].
//
// Every step is one request. So a process can only die between two steps, and
// what the next process does is again decided here, from what it finds.
package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Next returns the next step towards what is desired.
//
//	desired  finalizer  actual state, as far as it is known        next step
//	-------  ---------  -----------------------------------------  ----------------
//	absent   no         any                                        Nothing
//	absent   yes        network not looked for by mark             FindNetwork
//	absent   yes        none with our mark, ID not looked for      FindNetwork
//	absent   yes        no network                                 RemoveFinalizer
//	absent   yes        several networks with our mark             Blocked: Ambiguous
//	absent   yes        a network with the ID but not our mark     Blocked: NotOurs
//	absent   yes        network with subnets that we do not know   FindSubnets
//	absent   yes        network with somebody else's subnet        Blocked: InUse
//	absent   yes        network with no subnet but ours            DeleteNetwork
//
//	invalid  any        any                                        Blocked: InvalidSpec
//
//	present  no         any                                        AddFinalizer
//	present  yes        network ID known, subnets not looked for   FindSubnets
//	present  yes        our subnet, as desired                     Nothing
//	present  yes        our subnet, with another gateway           UpdateSubnet
//	present  yes        our subnet, with another CIDR              DeleteSubnet
//	present  yes        several subnets with our mark              Blocked: Ambiguous
//	present  yes        none of ours, network not looked for       FindNetwork
//	present  yes        no network                                 CreateNetwork
//	present  yes        several networks with our mark             Blocked: Ambiguous
//	present  yes        a network with the ID but not our mark     Blocked: NotOurs
//	present  yes        our network, none of our subnets           CreateSubnet
//
// A network that should be there is looked for by the ID that the status
// remembers, and where that finds nothing, by our mark: an earlier try may have
// made one although its answer never arrived. One that should go is looked for
// by our mark first, so that none of that kind is left behind. Subnets are
// looked for first where the ID is known, since a subnet proves its network: the
// one cannot exist without the other.
func Next(desired Desired, actual Actual) Step {
	switch {
	case desired.Absent:
		return towardsAbsent(desired.Owner, actual)
	case desired.Invalid != "":
		return Blocked{Reason: ReasonInvalidSpec, Message: desired.Invalid}
	case !actual.Finalizer:
		return AddFinalizer{}
	case actual.NetworkID != "" && !actual.subnetsKnown:
		return FindSubnets{neutron.SubnetFilter{NetworkID: actual.NetworkID}}
	}
	switch ours := actual.ourSubnets(desired.Owner); len(ours) {
	case 0:
		return towardsSubnet(desired, actual)
	case 1:
		return towardsSpec(desired, ours[0])
	default:
		return ambiguous("subnets", subnetIDs(ours), desired.Owner, actual.SubnetID)
	}
}

// towardsAbsent takes away what is there, and lets the object go when nothing
// is left.
func towardsAbsent(owner neutron.Owner, actual Actual) Step {
	if !actual.Finalizer {
		return Nothing{}
	}
	if !actual.networksKnown && !actual.markSearched {
		return FindNetwork{neutron.NetworkFilter{Description: owner.Mark()}}
	}
	network, step := theNetwork(owner, actual)
	switch {
	case step != nil:
		return step
	case network == nil:
		return RemoveFinalizer{}
	case !actual.knowsSubnetsOf(*network):
		return FindSubnets{neutron.SubnetFilter{NetworkID: network.ID}}
	}
	if others := actual.otherSubnets(owner, *network); len(others) > 0 {
		return Blocked{Reason: ReasonInUse, Message: fmt.Sprintf(
			"network %s cannot be deleted: subnets that are not ours are on it and would go with it (%s). Delete them, or move what uses them.",
			network.ID, strings.Join(others, ", "))}
	}
	return DeleteNetwork{ID: network.ID, Revision: network.Revision}
}

// towardsSubnet makes what is missing: the network, and the subnet on it.
func towardsSubnet(desired Desired, actual Actual) Step {
	network, step := theNetwork(desired.Owner, actual)
	switch {
	case step != nil:
		return step
	case network == nil:
		return CreateNetwork{neutron.Network{
			Name:        desired.Owner.String(),
			Description: desired.Owner.Mark(),
		}}
	}
	return CreateSubnet{neutron.Subnet{
		NetworkID:   network.ID,
		Name:        desired.Owner.String(),
		Description: desired.Owner.Mark(),
		CIDR:        desired.CIDR,
		Gateway:     desired.Gateway,
	}}
}

// towardsSpec makes the subnet that is there the one that is desired. The
// range of a subnet cannot be changed, so one with another range has to go
// first; Neutron refuses that while a port uses it.
func towardsSpec(desired Desired, subnet neutron.Subnet) Step {
	switch {
	case subnet.CIDR != desired.CIDR:
		return DeleteSubnet{ID: subnet.ID, Revision: subnet.Revision, From: subnet.CIDR, To: desired.CIDR}
	case subnet.Gateway != desired.Gateway:
		return UpdateSubnet{ID: subnet.ID, From: subnet.Gateway, Update: neutron.SubnetUpdate{
			Gateway:  desired.Gateway,
			Pools:    Pools(desired.CIDR, desired.Gateway),
			Revision: subnet.Revision,
		}}
	}
	return Nothing{}
}

// theNetwork returns the network of the owner, or nil where it is known that
// there is none; or the step without which that cannot be said.
func theNetwork(owner neutron.Owner, actual Actual) (*neutron.Network, Step) {
	switch {
	case !actual.networksKnown && actual.NetworkID != "":
		return nil, FindNetwork{neutron.NetworkFilter{ID: actual.NetworkID}}
	case !actual.networksKnown && !actual.markSearched:
		return nil, FindNetwork{neutron.NetworkFilter{Description: owner.Mark()}}
	case len(actual.networks) == 0:
		return nil, nil
	case len(actual.networks) > 1:
		return nil, ambiguous("networks", networkIDs(actual.networks), owner, actual.NetworkID)
	}
	network := actual.networks[0]
	if network.Description != owner.Mark() {
		return nil, Blocked{Reason: ReasonNotOurs, Message: fmt.Sprintf(
			"network %s, which status.networkID names, is not marked as ours: its description is not %q. If it is ours, put the description back; if not, remove status.networkID (kubectl edit --subresource=status).",
			network.ID, owner.Mark())}
	}
	return &network, nil
}

func ambiguous(what string, ids []string, owner neutron.Owner, inStatus string) Step {
	known := ""
	if slices.Contains(ids, inStatus) {
		known = fmt.Sprintf(" The status names %s.", inStatus)
	}
	return Blocked{Reason: ReasonAmbiguous, Message: fmt.Sprintf(
		"Neutron has %d %s with the description %q (%s), and there should be one.%s Delete what nobody needs.",
		len(ids), what, owner.Mark(), strings.Join(ids, ", "), known)}
}

func networkIDs(networks []neutron.Network) []string {
	return sortedIDs(networks, func(n neutron.Network) string { return n.ID })
}

func subnetIDs(subnets []neutron.Subnet) []string {
	return sortedIDs(subnets, func(s neutron.Subnet) string { return s.ID })
}

func sortedIDs[T any](objects []T, id func(T) string) []string {
	var ids []string
	for _, object := range objects {
		ids = append(ids, id(object))
	}
	slices.Sort(ids)
	return ids
}

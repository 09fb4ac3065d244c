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
//	absent   yes        several with our mark, one of them a twin  FindSubnets, DeleteNetwork
//	absent   yes        several with our mark otherwise            Blocked: Ambiguous
//	absent   yes        a network with the ID, but without our
//	                    mark and our subnet                        Blocked: NotOurs
//	absent   yes        network with subnets that we do not know   FindSubnets
//	absent   yes        network with somebody else's subnet        Blocked: InUse
//	absent   yes        network with no subnet but ours            DeleteNetwork
//
//	absent, but all is to stay:
//	absent   yes        network with our mark, or our subnet       RetainNetwork
//	absent   yes        any other                                  RemoveFinalizer
//
//	absent, and the network was adopted:
//	absent   yes        network to stay, subnets not looked for    FindSubnets
//	absent   yes        network to stay, our subnet on it          DeleteSubnet
//	absent   yes        network to stay, no subnet of ours         RemoveFinalizer
//	absent   yes        network to go                              as one of our own
//	absent   yes        network to go, but it never became ours    as one to stay
//
//	invalid  any        any                                        Blocked: InvalidSpec
//	obstacle any        any                                        Blocked
//
//	present  no         any                                        AddFinalizer
//	present  yes        network not looked for by mark             FindNetwork
//	present  yes        none with our mark, ID not looked for      FindNetwork
//	present  yes        no network                                 CreateNetwork
//	present  yes        several with our mark, none in the status  Blocked: Ambiguous
//	present  yes        a network with the ID but not our mark     Blocked: NotOurs
//	present  yes        our network, with another name, mark, MTU,
//	                    state, port security or DNS domain         UpdateNetwork
//	present  yes        our network, subnets not looked for        FindSubnets
//	present  yes        our network, none of our subnets           CreateSubnet
//	present  yes        our subnet, with another CIDR, subnet pool,
//	                    prefix length or IPv6 mode                 DeleteSubnet
//	present  yes        our subnet, with another gateway, pools,
//	                    DHCP, name servers, host routes or name    UpdateSubnet
//	present  yes        several subnets with our mark, twins       DeleteSubnet
//	present  yes        several subnets with our mark otherwise    Blocked: Ambiguous
//	present  yes        a tag to add that we have not noted        NoteTags
//	present  yes        our network, without a tag                 AddTag
//	present  yes        our network, with a tag that we put there
//	                    and that is no longer asked for            RemoveTag
//	present  yes        all as desired, but another network with
//	                    our mark: a twin                           FindSubnets, DeleteNetwork
//	present  yes        all as desired, but others with our mark   Blocked: Ambiguous
//	present  yes        all as desired but for what this Neutron
//	                    cannot do                                  Blocked: ExtensionMissing
//	present  yes        all as desired                             Nothing
//
//	present, and something is to be asked for that not every Neutron can do:
//	present  yes        extensions not looked for                  FindExtensions
//
//	present, and the range is handed out by a subnet pool:
//	present  yes        this Neutron has no subnet pools           Blocked: ExtensionMissing
//	present  yes        subnet pool not looked for                 FindSubnetPool
//	present  yes        no such subnet pool                        Blocked: NotFound
//	present  yes        several of the name                        Blocked: Ambiguous
//	present  yes        one of another IP version than the rest    Blocked: SubnetPoolMismatch
//	present  yes        two subnets from it, neither in the status as one that is named there
//
//	present, and adopting:
//	present  yes        network not looked for by its ID           FindNetwork
//	present  yes        no network                                 Blocked: NotFound
//	present  yes        network with a mark of ours                Blocked: NotOurs
//	present  yes        network, none of our subnets               CreateSubnet
//	present  yes        somebody's subnet with the range asked for as our own, but what is
//	                                                               left out stays, and it
//	                                                               is never deleted
//
// Networks are looked for by our mark first, so that none with it is left
// behind: an earlier try may have made one although its answer never arrived.
// The ID that the status remembers finds one whose mark somebody has taken away.
// Of two networks, a twin is one that provably two processes of ours have made
// for one object ([DuplicateWindow]); it is deleted once the status names the other.
func Next(desired Desired, actual Actual) Step {
	switch {
	case desired.Absent && !actual.Finalizer:
		return Nothing{}
	case desired.Absent && desired.Leave == LeaveAll:
		return towardsRetained(desired, actual)
	case desired.Absent && desired.Leave == LeaveNetwork:
		return towardsLeft(desired, actual)
	case desired.Absent:
		return towardsAbsent(desired, actual)
	case desired.Invalid != "":
		return Blocked{Reason: ReasonInvalidSpec, Message: desired.Invalid}
	case desired.Obstacle.Reason != "":
		return desired.Obstacle
	case !actual.Finalizer:
		return AddFinalizer{}
	}
	return towardsPresent(desired, actual)
}

// towardsAbsent takes away what is there, and lets the object go when nothing
// is left.
func towardsAbsent(desired Desired, actual Actual) Step {
	network, others, step := theNetwork(desired, actual)
	switch {
	case step != nil:
		return step
	case network == nil:
		return RemoveFinalizer{}
	case desired.Adopted != "" && (network.ID != actual.NetworkID || neutron.IsMarker(network.Description)):
		return towardsLeft(desired, actual) // it never became ours, but a subnet on it may be
	}
	if desired.Adopted == "" {
		if step := provenOurs(desired, actual, *network); step != nil {
			return step
		}
	}
	if step := withoutTwins(desired, actual, *network, others); step != nil {
		return step
	}
	foreign, known := actual.otherSubnets(desired, *network)
	switch {
	case !known:
		return FindSubnets{neutron.SubnetFilter{NetworkID: network.ID}}
	case len(foreign) > 0:
		return Blocked{Reason: ReasonInUse, Message: fmt.Sprintf(
			"network %s cannot be deleted: subnets that are not ours are on it and would go with it (%s). Delete them, or move what uses them.",
			network.ID, strings.Join(foreign, ", "))}
	}
	return DeleteNetwork{ID: network.ID, Revision: network.Revision}
}

// towardsRetained leaves all in Neutron, marked as nobody's for the time being.
func towardsRetained(desired Desired, actual Actual) Step {
	if desired.Adopted != "" {
		return RemoveFinalizer{} // it has no mark of ours
	}
	network, others, step := theNetwork(desired, actual)
	switch {
	case step != nil:
		return step
	case network == nil:
		return RemoveFinalizer{}
	}
	if step := withoutTwins(desired, actual, *network, others); step != nil {
		return step
	}
	if network.Description == desired.Owner.RetainedMarker() {
		return RemoveFinalizer{}
	}
	switch step := provenOurs(desired, actual, *network).(type) {
	case nil:
	case Blocked:
		return RemoveFinalizer{} // it is somebody else's, and stays as it is
	default:
		return step
	}
	return RetainNetwork{ID: network.ID, Update: neutron.NetworkUpdate{
		Name: network.Name, Description: desired.Owner.RetainedMarker(), Revision: network.Revision,
	}}
}

// towardsLeft leaves a network that was adopted as it was: without our subnet.
func towardsLeft(desired Desired, actual Actual) Step {
	subnets, known := actual.subnets[desired.Adopted]
	if !known {
		return FindSubnets{neutron.SubnetFilter{NetworkID: desired.Adopted}}
	}
	for _, subnet := range subnets {
		if subnet.Description == desired.Owner.Marker() {
			return DeleteSubnet{ID: subnet.ID, Revision: subnet.Revision, From: subnet.CIDR}
		}
	}
	return RemoveFinalizer{}
}

// towardsPresent makes what is missing, and mends what is not as desired.
func towardsPresent(desired Desired, actual Actual) Step {
	network, others, step := theNetwork(desired, actual)
	switch {
	case step != nil:
		return step
	case network == nil && desired.Adopted != "":
		return Blocked{Reason: ReasonNotFound, Message: fmt.Sprintf(
			"network %s, which spec.networkID names, is not there, or the project of the controller cannot see it.", desired.Adopted)}
	case network == nil:
		return towardsNewNetwork(desired, actual)
	case desired.Adopted != "" && neutron.IsMarker(network.Description):
		return notToAdopt(*network)
	}
	for _, towards := range []func(Desired, Actual, neutron.Network) Step{towardsNetwork, towardsSubnet, towardsTags} {
		if step := towards(desired, actual, *network); step != nil {
			return step
		}
	}
	if len(others) > 0 && (network.ID == actual.NetworkID || !areTwins(desired, actual, *network, others)) {
		return withoutTwins(desired, actual, *network, others)
	} // otherwise the status is to name it first: then all agree on which one goes
	return missing(desired, *network)
}

// theNetwork returns the network of the owner, or nil where it is known that
// there is none; with it, others that carry our mark as well; or the step
// without which that cannot be said.
func theNetwork(desired Desired, actual Actual) (network *neutron.Network, others []neutron.Network, step Step) {
	marks := []string{desired.Owner.Marker(), desired.Owner.RetainedMarker()}
	if desired.Absent && desired.Leave != LeaveAll {
		marks = marks[:1] // what was left by an earlier object is not this one's to delete
	}
	byID, found := desired.Adopted, actual.named
	switch {
	case desired.Adopted == "" && actual.marked == nil:
		return nil, nil, FindNetwork{neutron.NetworkFilter{Descriptions: marks}}
	case desired.Adopted == "" && len(*actual.marked) > 0:
		found = actual.marked
	case desired.Adopted == "":
		byID = actual.NetworkID
	}
	switch {
	case found == nil && byID == "":
		return nil, nil, nil
	case found == nil:
		return nil, nil, FindNetwork{neutron.NetworkFilter{ID: byID}}
	case len(*found) == 0:
		return nil, nil, nil
	}
	kept, others := choose(*found, actual.NetworkID)
	if kept.ID != actual.NetworkID && !areTwins(desired, actual, kept, others) {
		return nil, nil, ambiguous("networks", networkIDs(*found), desired.Owner, actual.NetworkID)
	}
	return &kept, others, nil
}

// isOurs reports whether a network carries the owner's mark, or carried it when an
// earlier object of the same name went.
func isOurs(owner neutron.Owner, network neutron.Network) bool {
	return network.Description == owner.Marker() || network.Description == owner.RetainedMarker()
}

func notOurs(owner neutron.Owner, network neutron.Network) Step {
	if other, ok := neutron.ParseMarker(network.Description); ok && other.String() == owner.String() {
		return Blocked{Reason: ReasonNotOurs, Message: fmt.Sprintf(
			"network %s, which status.networkID names, is marked as that of the cluster %q, and this is the cluster %q. If it is the same one, give the controller its name back (-cluster-name); if not, remove status.networkID (kubectl edit --subresource=status).",
			network.ID, other.Cluster, owner.Cluster)}
	}
	return Blocked{Reason: ReasonNotOurs, Message: fmt.Sprintf(
		"network %s, which status.networkID names, is not marked as ours: its description is not %q. If it is ours, put the description back; if not, remove status.networkID (kubectl edit --subresource=status).",
		network.ID, owner.Marker())}
}

func notToAdopt(network neutron.Network) Step {
	return Blocked{Reason: ReasonNotOurs, Message: fmt.Sprintf(
		"network %s cannot be adopted: its description says that it belongs to another Network (%q).", network.ID, network.Description)}
}

func ambiguous(what string, ids []string, owner neutron.Owner, inStatus string) Step {
	known := ""
	if slices.Contains(ids, inStatus) {
		known = fmt.Sprintf(" The status names %s.", inStatus)
	}
	return Blocked{Reason: ReasonAmbiguous, Message: fmt.Sprintf(
		"Neutron has %d %s with the description %q (%s), and there should be one.%s Delete what nobody needs.",
		len(ids), what, owner.Marker(), strings.Join(ids, ", "), known)}
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

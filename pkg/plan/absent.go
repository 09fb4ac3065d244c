package plan

import (
	"cmp"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// stepToAbsent deletes the network with our subnet, and then removes the
// finalizer.
func stepToAbsent(desired Desired, actual Actual) Step {
	network, others, step := selectRemaining(desired, actual)
	switch {
	case step != nil:
		return step
	case desired.Gone && neutron.IsTakenOver(network.Description):
		return retain(desired, *network)
	case desired.Adopted != "" && (network.ID != actual.NetworkID || neutron.IsMarker(network.Description)):
		return stepToReleased(desired, actual) // the network is not adopted, but our subnet may be on it
	}
	if desired.Adopted == "" {
		if step := stepToProofOfOwnership(desired, actual, *network); step != nil {
			return step
		}
	}
	if step := stepToNoDuplicates(desired, actual, *network, others); step != nil {
		return step
	}
	foreign, known := actual.foreignSubnets(desired, *network)
	switch {
	case !known:
		return FindSubnets{neutron.SubnetFilter{NetworkID: network.ID}}
	case len(foreign) > 0:
		return blocked(ReasonInUse,
			"network %s cannot be deleted: subnets that do not belong to this Network are on it (%s), "+
				"and Neutron would delete them too. Delete them first, or set spec.deletionPolicy to Retain.",
			network.ID, strings.Join(foreign, ", "))
	}
	step = cmp.Or(stepToUnrouted(desired, actual, network.ID, true), stepToNoForeignRouter(actual, *network))
	if step != nil {
		return step
	}
	if neutron.IsTakenOver(network.Description) && !actual.interfacesOn[network.ID] {
		return FindRouterInterfaces{network.ID} // the object that retained it may have had a router
	}
	return DeleteNetwork{ID: network.ID, Revision: network.Revision}
}

// stepToRetained leaves everything in Neutron. The network gets the retained
// marker, so that the next object of the same name can use it.
func stepToRetained(desired Desired, actual Actual) Step {
	if desired.Adopted != "" {
		return RemoveFinalizer{} // an adopted network has no marker
	}
	network, others, step := selectRemaining(desired, actual)
	if step != nil {
		return step
	}
	if step := stepToNoDuplicates(desired, actual, *network, others); step != nil {
		return step
	}
	if desired.Owner.HasRetainedMarker(network.Description) {
		return RemoveFinalizer{}
	}
	switch step := stepToProofOfOwnership(desired, actual, *network).(type) {
	case nil:
	case Blocked:
		return RemoveFinalizer{} // the network belongs to another owner, and is not changed
	default:
		return step
	}
	return retain(desired, *network)
}

// stepToReleased leaves an adopted network as it was before, without our subnet. It
// looks for the network first: only that is limited to the controller's project. An
// administrator's list of subnets has those of a network of another project.
func stepToReleased(desired Desired, actual Actual) Step {
	network, _, step := selectRemaining(desired, actual)
	if step != nil {
		return step
	}
	if neutron.IsMarker(network.Description) {
		return RemoveFinalizer{} // a subnet with our marker is that of an earlier object, like the network
	}
	subnets, known := actual.subnets[desired.Adopted]
	if !known {
		return FindSubnets{neutron.SubnetFilter{NetworkID: desired.Adopted}}
	}
	if step := stepToUnrouted(desired, actual, desired.Adopted, false); step != nil {
		return step
	}
	for _, subnet := range subnets {
		if desired.has(subnet) {
			return DeleteSubnet{ID: subnet.ID, Revision: subnet.Revision, From: subnet.CIDR}
		}
	}
	return RemoveFinalizer{}
}

// selectRemaining is selectNetwork for an object that is to be absent: without a network,
// only the finalizer is left.
func selectRemaining(desired Desired, actual Actual) (*neutron.Network, []neutron.Network, Step) {
	network, others, step := selectNetwork(desired, actual)
	if step == nil && network == nil {
		step = RemoveFinalizer{}
	}
	return network, others, step
}

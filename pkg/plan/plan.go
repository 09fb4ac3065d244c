// Package plan decides the next step for one Network, and applies nothing
// itself. It is a pure function from the desired state and the known actual state
// to the next step. The caller applies the step, adds the result to the actual
// state, and calls it again until the result is [Nothing] or [Blocked].
//
// Every step is one request, so a process can only die between two steps. The
// next process finds the actual state as it is, and the plan continues from
// there.
package plan

import (
	"fmt"
	"slices"
	"strings"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Next returns the next step to the desired state.
//
//	desired  finalizer  actual state, as far as it is known        next step
//	-------  ---------  -----------------------------------------  ----------------
//	absent   no         any                                        Nothing
//	absent   yes        the connected cloud is unknown             FindCloud
//	absent   yes        another cloud is recorded                  Blocked: OtherCloud
//	absent   yes        network not looked for by its name         FindNetwork
//	absent   yes        none with our marker, ID not looked for    FindNetwork
//	absent   yes        no network                                 RemoveFinalizer
//	absent   yes        several with our marker: duplicates        FindSubnets, DeleteNetwork
//	absent   yes        several with our marker otherwise, none
//	                    in the status                              Blocked: Ambiguous
//	absent   yes        several with our marker otherwise, or a
//	                    duplicate in use                           as if there were no others
//	absent   yes        a network with the ID, but without our
//	                    marker and our subnet                      Blocked: NotOurs
//	absent   yes        network with unknown subnets               FindSubnets
//	absent   yes        network with a foreign subnet              Blocked: InUse
//	absent   yes        network with no subnet but ours            DeleteNetwork
//
//	gone, which is absent without an object:
//	gone     claimed    network without a claim                    as if there were none
//	gone     claimed    network that was taken over                RetainNetwork
//	gone     claimed    any other                                  as absent
//
//	absent, and everything stays:
//	absent   yes        network with our marker, or our subnet     RetainNetwork
//	absent   yes        any other                                  RemoveFinalizer
//
//	absent, and the network was adopted:
//	absent   yes        network not looked for by its ID           FindNetwork
//	absent   yes        no network                                 RemoveFinalizer
//	absent   yes        network stays, subnets not looked for      FindSubnets
//	absent   yes        network stays, our subnet on it            DeleteSubnet
//	absent   yes        network stays, no subnet of ours           RemoveFinalizer
//	absent   yes        network is deleted                         as one that we created;
//	                                                               a subnet is ours if it has
//	                                                               our marker, or if the
//	                                                               status names it
//	absent   yes        network is deleted, but the status never
//	                    named it                                   as if it stays
//
//	invalid  any        any                                        Blocked: InvalidSpec
//	obstacle any        any                                        Blocked
//
//	present  any        the connected cloud is unknown             FindCloud
//	present  any        another cloud is recorded                  Blocked: OtherCloud
//	present  yes        no cloud is recorded                       AddFinalizer
//	present  no         network not looked for                     FindNetwork
//	present  no         no cloud is recorded, a network with our
//	                    marker that names no request               Blocked: Ambiguous
//	present  no         no cloud is recorded, a network with our
//	                    marker, or retained, with a foreign subnet Blocked: Ambiguous
//	present  no         any other                                  AddFinalizer
//	present  yes        network not looked for by its name         FindNetwork
//	present  yes        none with our marker, ID not looked for    FindNetwork
//	present  yes        no network, but one of the same object in
//	                    another cluster                            Blocked: OtherCluster
//	present  yes        no network                                 CreateNetwork
//	present  yes        several with our marker, not duplicates,
//	                    none in the status                         Blocked: Ambiguous
//	present  yes        a network with the ID but not our marker   Blocked: NotOurs
//	present  yes        our network, with another name, marker,
//	                    MTU, state, port security or DNS domain    UpdateNetwork
//	present  yes        our network, subnets not looked for        FindSubnets
//	present  yes        our network, none of our subnets           CreateSubnet
//	present  yes        our subnet, with another CIDR, subnet pool,
//	                    prefix length or IPv6 mode                 DeleteSubnet
//	present  yes        the same, and both can exist               FindPorts, CreateSubnet,
//	                                                               DeleteSubnet
//	present  yes        our subnet, with another gateway, pools,
//	                    DHCP, name servers, host routes or name    UpdateSubnet
//	present  yes        several subnets with our marker and name   DeleteSubnet
//	present  yes        several subnets with our marker otherwise  Blocked: Ambiguous
//	present  yes        a tag to add that is not recorded          RecordTags
//	present  yes        our network, without a tag                 AddTag
//	present  yes        our network, with a tag that we added and
//	                    that is no longer desired                  RemoveTag
//	present  yes        all as desired, but a duplicate            FindSubnets, DeleteNetwork
//	present  yes        the same, and it was taken over            RetainNetwork
//	present  yes        all as desired, but others with our marker Blocked: Ambiguous
//	present  yes        all as desired, except for what this
//	                    Neutron does not support                   Blocked: ExtensionMissing
//	present  yes        all as desired                             Nothing
//
//	present, and a field requires an extension of Neutron:
//	present  yes        extensions not looked for                  FindExtensions
//
//	present, and a subnet pool allocates the range:
//	present  yes        this Neutron has no subnet pools           Blocked: ExtensionMissing
//	present  yes        subnet pool not looked for                 FindSubnetPool
//	present  yes        no such subnet pool                        Blocked: NotFound
//	present  yes        several with the name                      Blocked: Ambiguous
//	present  yes        another IP version than the spec requires  Blocked: SubnetPoolMismatch
//	present  yes        two subnets from it, none in the status    the older one is recorded
//	                                                               in the status first
//
//	absent, and a router is desired or recorded in the status:
//	absent   yes        subnets or router interfaces not looked for FindSubnets,
//	                                                               FindRouterInterfaces
//	absent   yes        our subnet on the recorded router, ports
//	                    not looked for                             FindPorts
//	absent   yes        our subnet on it, and ports use what is
//	                    deleted: the subnet, or the network        Blocked: InUse
//	absent   yes        our subnet on it, and no port uses that    DetachRouter
//	absent   yes        adopted subnet on it, network stays        DetachRouter
//	absent   yes        network on a router that is not recorded   Blocked: InUse
//
//	present, and a router is desired or recorded in the status:
//	present  yes        router interfaces not looked for           FindRouterInterfaces
//	present  yes        our subnet on the desired router           Nothing
//	present  yes        the same, not recorded, and the network
//	                    was taken over                             RecordRouter
//	present  yes        router not looked for                      FindExtensions, FindRouter
//	present  yes        this Neutron has no routers                Blocked: ExtensionMissing,
//	                                                               after all other steps
//	present  yes        no such router                             Blocked: NotFound
//	present  yes        several with the name                      Blocked: Ambiguous
//	present  yes        our subnet on another router, recorded     DetachRouter
//	present  yes        another router has the gateway address     Blocked: NotOurs
//	present  yes        router that is not recorded                RecordRouter
//	present  yes        router that is recorded                    AttachRouter
//	present  yes        recorded, not desired, not attached        RecordRouter (none)
//	present  yes        gateway to change, and our subnet on the
//	                    recorded router                            DetachRouter
//	present  yes        subnet to delete, and on the recorded
//	                    router                                     FindPorts, then DetachRouter
//	                                                               or Blocked: InUse
//
//	present, and adopting:
//	present  yes        network not looked for by its ID           FindNetwork
//	present  yes        no network                                 Blocked: NotFound
//	present  yes        network with an owner marker               Blocked: NotOurs
//	present  yes        network, none of our subnets               CreateSubnet
//	present  yes        a subnet with the desired range            as our own, but fields that
//	                                                               the spec omits are kept, and
//	                                                               the subnet is never deleted
//
// Networks are looked for by the name that ours have first, because an earlier attempt
// may have created one whose response was lost; only those with our owner marker count.
// The ID in the status finds a network whose marker a user removed.
//
// A duplicate is a network that another request of ours created for the object. Its owner
// marker names that request. It is deleted once the status names the other one.
//
// A state from the cache of Neutron's state may be out of date. Then a step that is
// not safe in spite of that is preceded by a FindNetwork ([isSafeFromCache]).
//
// With ReportDrift, a step that would change Neutron is reported and not taken,
// except for the deletion of a duplicate.
func Next(desired Desired, actual Actual) Step {
	step := nextStep(desired, actual)
	if desired.ReportDrift && !desired.Absent && !deletesDuplicate(step) && (prepares(step) || ChangesNeutron(step)) {
		return drifted(step)
	}
	if actual.Cached && !isSafeFromCache(actual, step) {
		return nextStep(desired, actual.WithoutCache())
	}
	return step
}

// deletesDuplicate reports whether a step deletes what the controller itself created
// twice.
func deletesDuplicate(step Step) bool {
	switch step := step.(type) {
	case DeleteNetwork:
		return step.DuplicateOf != ""
	case DeleteSubnet:
		return step.Duplicate
	}
	return false
}

// prepares reports whether a step records in Kubernetes what the next one changes in
// Neutron.
func prepares(step Step) bool {
	switch step.(type) {
	case RecordTags, RecordRouter:
		return true
	}
	return false
}

func drifted(step Step) Step {
	return Blocked{Reason: ReasonDrifted, Message: fmt.Sprintf(
		"Neutron no longer matches the spec. The next step to correct it would be: %s. To correct it, set spec.driftPolicy to Correct. To keep the change, change the spec.", step)}
}

func nextStep(desired Desired, actual Actual) Step {
	switch {
	case desired.Absent && !actual.Finalizer:
		return Nothing{}
	case !desired.Absent && desired.Invalid != "":
		return Blocked{Reason: ReasonInvalidSpec, Message: desired.Invalid}
	case actual.connected == "":
		return FindCloud{}
	case actual.Cloud != "" && actual.Cloud != actual.connected:
		return otherCloud(actual)
	case desired.Absent && desired.Leave == LeaveAll:
		return stepToRetained(desired, actual)
	case desired.Absent && desired.Leave == LeaveNetwork:
		return stepToReleased(desired, actual)
	case desired.Absent:
		return stepToAbsent(desired, actual)
	case desired.Obstacle.Reason != "":
		return desired.Obstacle
	case actual.Finalizer && actual.Cloud == "": // from before the cloud was recorded
		return AddFinalizer{Cloud: actual.connected}
	}
	return stepToPresent(desired, actual)
}

// otherCloud reports that the network of the object is in another cloud than the
// one that requests go to. Nothing is created, and the finalizer stays.
func otherCloud(actual Actual) Step {
	return Blocked{Reason: ReasonOtherCloud, Message: fmt.Sprintf(
		"the network is in the cloud %q, but the controller is connected to %q. Nothing is changed in either. Connect the controller to %q again. "+
			"To create the network in %q and leave the existing one, start the controller with -leave-cloud=%s.",
		actual.Cloud, actual.connected, actual.Cloud, actual.connected, actual.Cloud)}
}

// stepToAbsent deletes the network with our subnet, and then removes the
// finalizer.
func stepToAbsent(desired Desired, actual Actual) Step {
	network, others, step := selectNetwork(desired, actual)
	switch {
	case step != nil:
		return step
	case network == nil:
		return RemoveFinalizer{}
	case desired.Gone && neutron.IsTakenOver(network.Description):
		return retain(desired, *network)
	case desired.Adopted != "" && (network.ID != actual.NetworkID || neutron.IsMarker(network.Description)):
		return stepToReleased(desired, actual) // the network was never adopted, but our subnet may be on it
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
		return Blocked{Reason: ReasonInUse, Message: fmt.Sprintf(
			"network %s cannot be deleted: subnets that do not belong to this Network are on it (%s), and Neutron would delete them too. Delete them first, or set spec.deletionPolicy to Retain.",
			network.ID, strings.Join(foreign, ", "))}
	}
	for _, step := range []Step{stepToUnrouted(desired, actual, network.ID, "delete the network", stepToDetachedNetwork), stepToNoForeignRouter(actual, *network)} {
		if step != nil {
			return step
		}
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
	network, others, step := selectNetwork(desired, actual)
	switch {
	case step != nil:
		return step
	case network == nil:
		return RemoveFinalizer{}
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
	network, _, step := selectNetwork(desired, actual)
	switch {
	case step != nil:
		return step
	case network == nil:
		return RemoveFinalizer{}
	}
	subnets, known := actual.subnets[desired.Adopted]
	if !known {
		return FindSubnets{neutron.SubnetFilter{NetworkID: desired.Adopted}}
	}
	if step := stepToUnrouted(desired, actual, desired.Adopted, "delete the subnet", stepToDetached); step != nil {
		return step
	}
	for _, subnet := range subnets {
		if desired.Owner.HasMarker(subnet.Description) {
			return DeleteSubnet{ID: subnet.ID, Revision: subnet.Revision, From: subnet.CIDR}
		}
	}
	return RemoveFinalizer{}
}

// stepToPresent creates what is missing, and corrects what differs.
func stepToPresent(desired Desired, actual Actual) Step {
	network, others, step := selectNetwork(desired, actual)
	if step == nil && network != nil && desired.Adopted == "" {
		step = stepToTakeOver(desired, actual, *network)
	}
	if step != nil {
		return step
	}
	switch {
	case !actual.Finalizer:
		return AddFinalizer{Cloud: actual.connected}
	case network == nil && desired.Adopted != "":
		return Blocked{Reason: ReasonNotFound, Message: fmt.Sprintf(
			"network %s, which spec.networkID names, does not exist, or belongs to another project than the controller.", desired.Adopted)}
	case network == nil:
		return stepToNewNetwork(desired, actual)
	case desired.Adopted != "" && neutron.IsMarker(network.Description):
		return Blocked{Reason: ReasonNotOurs, Message: fmt.Sprintf(
			"network %s cannot be adopted: it has the owner marker of another Network (%q).", network.ID, network.Description)}
	}
	for _, stepTo := range []func(Desired, Actual, neutron.Network) Step{stepToSettings, stepToSubnet, stepToRouter, stepToTags} {
		if step := stepTo(desired, actual, *network); step != nil {
			return step
		}
	}
	// The status names the network before its duplicates are deleted: then all
	// processes agree on which one to keep.
	if len(others) > 0 && (network.ID == actual.NetworkID || !areDuplicates(desired, actual, *network, others)) {
		return stepToNoDuplicates(desired, actual, *network, others)
	}
	return endOfPlan(desired, actual, *network)
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
	for _, subnet := range subnets {
		if !desired.Owner.HasMarker(subnet.Description) {
			return olderNetwork(desired, actual, network)
		}
	}
	return nil
}

func olderNetwork(desired Desired, actual Actual, network neutron.Network) Step {
	return Blocked{Reason: ReasonAmbiguous, Message: fmt.Sprintf(
		"Neutron network %s had a marker of this Network before this Network was created. If they belong together, for example because this Network was deleted by force and created again, "+
			"confirm it: kubectl annotate network -n %s %s %s=%s. Otherwise change the description of the Neutron network, or delete it.",
		network.ID, desired.Owner.Namespace, desired.Owner.Name, samplecrdv1.AnnotationCloud, actual.connected)}
}

// selectNetwork returns the network of the object, or nil if it is known to be
// absent; and the other networks with our owner marker. It returns a step if the
// network is unknown or ambiguous.
func selectNetwork(desired Desired, actual Actual) (network *neutron.Network, others []neutron.Network, step Step) {
	id, found := desired.Adopted, actual.byID
	switch {
	case desired.Adopted == "" && actual.byName == nil:
		return nil, nil, FindNetwork{neutron.NetworkFilter{Name: desired.Owner.String()}}
	case desired.Adopted == "":
		id = actual.NetworkID
		if ours := desired.networksOf(actual, *actual.byName); len(ours) > 0 {
			found = &ours
		}
	}
	switch {
	case found == nil && id == "":
		return nil, nil, nil
	case found == nil:
		return nil, nil, FindNetwork{neutron.NetworkFilter{ID: id}}
	case len(*found) == 0:
		return nil, nil, nil
	}
	kept, others := selectDuplicate(*found, actual.NetworkID)
	if desired.Gone {
		return &kept, nil, nil // one after the other
	}
	if kept.ID != actual.NetworkID && !areDuplicates(desired, actual, kept, others) {
		return nil, nil, ambiguous("networks", networkIDs(*found), desired.Owner, actual.NetworkID)
	}
	return &kept, others, nil
}

// notOurs reports that the network in the status does not belong to the owner.
func notOurs(owner neutron.Owner, network neutron.Network) Step {
	if other, ok := neutron.ParseMarker(network.Description); ok && other.String() == owner.String() {
		return Blocked{Reason: ReasonNotOurs, Message: fmt.Sprintf(
			"network %s, which status.networkID names, has an owner marker of the cluster %q, but this cluster is %q. If both are the same cluster, restore its name with -cluster-name. Otherwise remove status.networkID (kubectl edit --subresource=status).",
			network.ID, other.Cluster, owner.Cluster)}
	}
	return Blocked{Reason: ReasonNotOurs, Message: fmt.Sprintf(
		"network %s, which status.networkID names, does not have the owner marker of this Network: its description does not name it. If the network belongs to this Network, set the description to %q. Otherwise remove status.networkID (kubectl edit --subresource=status).",
		network.ID, owner.Marker())}
}

// ambiguous reports that several networks or subnets have our owner marker.
func ambiguous(kind string, ids []string, owner neutron.Owner, inStatus string) Step {
	hint := ""
	if slices.Contains(ids, inStatus) {
		hint = fmt.Sprintf(" The status names %s.", inStatus)
	}
	return Blocked{Reason: ReasonAmbiguous, Message: fmt.Sprintf(
		"Neutron has %d %s with an owner marker of %s (%s), but there must be only one.%s Delete the ones that are not needed.",
		len(ids), kind, owner, strings.Join(ids, ", "), hint)}
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

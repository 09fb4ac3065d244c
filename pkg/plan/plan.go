// Package plan decides the next step for one Network, and applies nothing itself. It is a
// pure function from the desired state and the known actual state to the next step. The
// caller applies the step, adds its result to the actual state ([Actual.After]), and calls
// it again until it returns [Nothing] or [Blocked].
//
// Every step is one request, so a process can only die between two steps. The next process
// finds the actual state as it is, and the plan continues from there.
package plan

import (
	"slices"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Next returns the next step to the desired state. What a row depends on and nobody has
// looked for yet is looked for first, by the step that begins with Find.
//
//	desired  finalizer  actual state                               next step
//	-------  ---------  -----------------------------------------  ----------------
//	absent   no         any                                        Nothing
//	invalid  any        any                                        Blocked: InvalidSpec
//	any      any        another cloud is recorded                  Blocked: OtherCloud
//	obstacle any        any                                        Blocked
//
//	absent   yes        no network                                 RemoveFinalizer
//	absent   yes        several with our marker: duplicates        DeleteNetwork
//	absent   yes        several with our marker otherwise, none
//	                    in the status                              Blocked: Ambiguous
//	absent   yes        several with our marker otherwise, or a
//	                    duplicate in use                           as if there were no others
//	absent   yes        a network with the ID, but without our
//	                    marker and our subnet                      Blocked: NotOurs
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
//	absent   yes        network stays, our subnet on it            DeleteSubnet
//	absent   yes        network stays, no subnet of ours           RemoveFinalizer
//	absent   yes        network is deleted                         as one that we created
//	absent   yes        network is deleted, but the status never
//	                    named it                                   as if it stays
//
//	present  no         a network with our marker that names no
//	                    request, and no cloud is recorded          Blocked: Ambiguous
//	present  no         a network with our marker, or retained,
//	                    with a foreign subnet, and no cloud        Blocked: Ambiguous
//	present  no         any other                                  AddFinalizer
//	present  yes        no cloud is recorded                       AddFinalizer
//	present  yes        no network, but one of the same object in
//	                    another cluster                            Blocked: OtherCluster
//	present  yes        no network                                 CreateNetwork
//	present  yes        several with our marker, not duplicates,
//	                    none in the status                         Blocked: Ambiguous
//	present  yes        a network with the ID but not our marker   Blocked: NotOurs
//	present  yes        our network, with another name, marker,
//	                    MTU, state, port security or DNS domain    UpdateNetwork
//	present  yes        our network, none of our subnets           CreateSubnet
//	present  yes        our subnet, with another CIDR, subnet pool,
//	                    prefix length or IPv6 mode                 DeleteSubnet
//	present  yes        the same, and both can exist               CreateSubnet first
//	present  yes        the same, and ports use the old one        Blocked: InUse
//	present  yes        our subnet, with another gateway, pools,
//	                    DHCP, name servers, host routes or name    UpdateSubnet
//	present  yes        several subnets with our marker and name   DeleteSubnet
//	present  yes        several subnets with our marker otherwise  Blocked: Ambiguous
//	present  yes        a tag to add that is not recorded          RecordTags
//	present  yes        our network, without a tag                 AddTag
//	present  yes        our network, with a tag that we added and
//	                    that is no longer desired                  RemoveTag
//	present  yes        all as desired, but a duplicate            DeleteNetwork
//	present  yes        the same, and it was taken over            RetainNetwork
//	present  yes        all as desired, but others with our marker Blocked: Ambiguous
//	present  yes        all as desired, except for what this
//	                    Neutron does not support                   Blocked: ExtensionMissing
//	present  yes        all as desired                             Nothing
//
//	present, and a subnet pool allocates the range:
//	present  yes        this Neutron has no subnet pools           Blocked: ExtensionMissing
//	present  yes        no such subnet pool                        Blocked: NotFound
//	present  yes        several with the name                      Blocked: Ambiguous
//	present  yes        it does not fit the spec                   Blocked: SubnetPoolMismatch
//
//	present, and adopting:
//	present  yes        no network                                 Blocked: NotFound
//	present  yes        network with an owner marker               Blocked: NotOurs
//	present  yes        a subnet with the desired range            as our own, but fields that
//	                                                               the spec omits are kept, and
//	                                                               the subnet is never deleted
//
//	a router is desired or recorded in the status:
//	absent   yes        our subnet on the recorded router          DetachRouter
//	absent   yes        the same, and ports use what is deleted    Blocked: InUse
//	absent   yes        adopted subnet on it, network stays        DetachRouter
//	absent   yes        network on a router that is not recorded   Blocked: InUse
//	present  yes        our subnet on the desired router           Nothing
//	present  yes        the same, not recorded, and the network
//	                    was taken over                             RecordRouter
//	present  yes        this Neutron has no routers                Blocked: ExtensionMissing,
//	                                                               after all other steps
//	present  yes        no such router                             Blocked: NotFound
//	present  yes        several with the name                      Blocked: Ambiguous
//	present  yes        our subnet on another router, recorded     DetachRouter
//	present  yes        adopted subnet with another range on it    DetachRouter
//	present  yes        another router has the gateway address     Blocked: NotOurs
//	present  yes        router that is not recorded                RecordRouter
//	present  yes        router that is recorded                    AttachRouter
//	present  yes        recorded, not desired, not attached        RecordRouter (none)
//	present  yes        gateway to change, or subnet to delete,
//	                    and our subnet on the recorded router      DetachRouter
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
// With ReportDrift, a step that corrects Neutron is reported and not taken.
func Next(desired Desired, actual Actual) Step {
	step := nextStep(desired, actual)
	if desired.ReportDrift && !desired.Absent && isCorrection(step) {
		return blocked(ReasonDrifted,
			"Neutron no longer matches the spec. The next step to correct it would be: %s. "+
				"To correct it, set spec.driftPolicy to Correct. To keep the change, change the spec.", step)
	}
	if actual.Cached && !isSafeFromCache(desired, actual, step) {
		return nextStep(desired, actual.WithoutCache())
	}
	return step
}

func nextStep(desired Desired, actual Actual) Step {
	switch {
	case desired.Absent && !actual.Finalizer:
		return Nothing{}
	case desired.Obstacle.Reason == ReasonPaused:
		return desired.Obstacle
	case !desired.Absent && desired.Invalid != "":
		return Blocked{Reason: ReasonInvalidSpec, Message: desired.Invalid}
	case actual.connected == "":
		return FindCloud{}
	case actual.Cloud != "" && actual.Cloud != actual.connected:
		return blocked(ReasonOtherCloud,
			"the network is in the cloud %q, but the controller is connected to %q. Nothing is changed in either. "+
				"Connect the controller to %[1]q again, "+
				"with its own settings or with the Secret samplecrd-cloud of the namespace. "+
				"To create the network in %[2]q and leave the existing one, start the controller with -leave-cloud=%[1]s.",
			actual.Cloud, actual.connected)
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

// isCorrection reports whether a step changes Neutron, or records in Kubernetes what the
// next one changes. To delete what the controller itself created twice is no correction.
func isCorrection(step Step) bool {
	switch step := step.(type) {
	case RecordTags, RecordRouter:
		return true
	case DeleteNetwork:
		return step.DuplicateOf == ""
	case DeleteSubnet:
		return !step.Duplicate
	}
	return ChangesNeutron(step)
}

// isSafeFromCache reports whether a step may follow from a state that comes from the
// cache of Neutron's state, and may be out of date.
//
// A request with a revision is its own check: Neutron rejects it if anybody has changed
// the object, or created a subnet on the network. All other steps need a look first: the
// revision of a subnet does not protect from a new owner of its network, so a subnet is
// not deleted either. Two exceptions save the look when an object is created or deleted:
//
//   - No replica creates a network for an object before its finalizer is set. So nothing
//     exists for one whose finalizer this plan has just set, except for what earlier
//     objects left: a complete list since then contains that.
//   - A network with our marker that was deleted or retained at the cached revision was the
//     one in the cache. If that has another one, the other one may be a duplicate by now.
func isSafeFromCache(desired Desired, actual Actual, step Step) bool {
	switch step := step.(type) {
	case Nothing, FindCloud, FindExtensions, FindSubnetPool, FindRouter, FindOtherClusters, AddFinalizer,
		UpdateNetwork, UpdateSubnet, RetainNetwork:
		return true
	case Blocked:
		return step.Reason == ReasonExtensionMissing // everything else is as desired
	case CreateNetwork:
		return actual.isNew
	case DeleteNetwork:
		return step.DuplicateOf == ""
	case RemoveFinalizer:
		hasMarker := func(n neutron.Network) bool { return desired.Owner.HasMarker(n.Description) }
		return actual.confirmed && !slices.ContainsFunc(actual.byName, hasMarker)
	}
	return false
}

package reconcile

import (
	"fmt"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// obstacleToAdoption returns why a Network cannot adopt the network in
// spec.networkID. The reason is empty if it can.
func (r *Reconciler) obstacleToAdoption(network *samplecrdv1.Network) plan.Blocked {
	if !r.options.AllowAdoption {
		return plan.Blocked{Reason: plan.ReasonAdoptionNotAllowed, Message: "spec.networkID requests the adoption of an existing Neutron network, which this controller does not allow. " +
			"Remove networkID to get a new network, or ask the administrator to set -allow-adoption."}
	}
	for _, other := range r.networks.Adopting(network.Spec.NetworkID) {
		if other.UID != network.UID && hasPrecedence(other, network) {
			return plan.Blocked{Reason: plan.ReasonNotOurs, Message: fmt.Sprintf(
				"Neutron network %s is already adopted by the Network %s/%s. Delete one of the two Networks.", network.Spec.NetworkID, other.Namespace, other.Name)}
		}
	}
	return plan.Blocked{}
}

// hasPrecedence reports whether of two Networks that request the same network, a
// gets it: the one that has adopted it already, or else the older one.
func hasPrecedence(a, b *samplecrdv1.Network) bool {
	if hasA, hasB := a.Status.NetworkID == a.Spec.NetworkID, b.Status.NetworkID == b.Spec.NetworkID; hasA != hasB {
		return hasA
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}

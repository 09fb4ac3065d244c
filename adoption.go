package main

import (
	"fmt"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// Who may have a network that was there before: one Network at a time, and none
// where whoever runs the controller has not allowed it.

// obstacleToAdoption returns why a Network must not have the network that its
// spec names, if that is so. The reason is empty otherwise.
func (c *Controller) obstacleToAdoption(network *samplecrdv1.Network) plan.Blocked {
	if !c.options.AllowAdoption {
		return plan.Blocked{Reason: plan.ReasonAdoptionNotAllowed,
			Message: "spec.networkID names a network that is there already, and whoever runs the controller has not allowed that (-allow-adoption). Leave networkID out to have a network made."}
	}
	for _, other := range c.networks.adopting(network.Spec.NetworkID) {
		if other.UID != network.UID && comesBefore(other, network) {
			return plan.Blocked{Reason: plan.ReasonNotOurs, Message: fmt.Sprintf(
				"network %s is adopted by the Network %s/%s already.", network.Spec.NetworkID, other.Namespace, other.Name)}
		}
	}
	return plan.Blocked{}
}

// byAdoptedNetwork is the index of the Networks by the network that they adopt.
const byAdoptedNetwork = "adoptedNetwork"

func adoptedNetwork(object any) ([]string, error) {
	if network, ok := object.(*samplecrdv1.Network); ok && network.Spec.NetworkID != "" {
		return []string{network.Spec.NetworkID}, nil
	}
	return nil, nil
}

// comesBefore tells which one of two Networks has what both ask for: the one
// that has it already, or else the one that asked first.
func comesBefore(a, b *samplecrdv1.Network) bool {
	if hasA, hasB := a.Status.NetworkID == a.Spec.NetworkID, b.Status.NetworkID == b.Spec.NetworkID; hasA != hasB {
		return hasA
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}

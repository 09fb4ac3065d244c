package plan

import (
	"slices"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Actual is what is known of the actual state. What has not been looked for is
// not known, which is something else than not there: the zero value knows
// nothing, and each answer from Neutron adds to it.
//
// It is a value: the methods return what is known afterwards and leave the
// receiver as it was.
type Actual struct {
	// Finalizer tells whether the object in Kubernetes has our finalizer.
	Finalizer bool
	// NetworkID is where to look for the network first, from the status of the
	// object; empty where that is not known.
	NetworkID string
	// SubnetID is the subnet that the status of the object says is ours.
	SubnetID string

	markSearched  bool // and nothing was found
	networksKnown bool
	networks      []neutron.Network
	subnetsKnown  bool // those of NetworkID
	subnets       []neutron.Subnet
}

// WithNetworks returns what is known after the networks were looked for with
// the filter of a FindNetwork.
func (a Actual) WithNetworks(filter neutron.NetworkFilter, found []neutron.Network) Actual {
	switch {
	case filter.ID != "" && len(found) == 0:
		// Gone, with its subnets; one with our mark may still be there.
		return Actual{Finalizer: a.Finalizer, markSearched: a.markSearched}
	case filter.Description != "" && len(found) == 0:
		a.markSearched = true // one with the ID, but without our mark, may be there
		return a
	}
	a.networksKnown, a.networks = true, found
	if len(found) == 1 && found[0].ID != a.NetworkID {
		a.NetworkID, a.subnetsKnown, a.subnets = found[0].ID, false, nil
	}
	return a
}

// WithSubnets returns what is known after the subnets of the network NetworkID
// were looked for.
func (a Actual) WithSubnets(found []neutron.Subnet) Actual {
	a.subnetsKnown, a.subnets = true, found
	return a
}

// WithNetwork returns what is known after a network was created.
func (a Actual) WithNetwork(created neutron.Network) Actual {
	a.NetworkID, a.SubnetID = created.ID, ""
	a.networksKnown, a.networks = true, []neutron.Network{created}
	a.subnetsKnown, a.subnets = true, nil
	return a
}

// WithSubnet returns what is known after a subnet was created or changed.
func (a Actual) WithSubnet(subnet neutron.Subnet) Actual {
	a = a.WithoutSubnet(subnet.ID)
	a.subnets = append(a.subnets, subnet)
	a.SubnetID = subnet.ID
	return a
}

// WithoutSubnet returns what is known after a subnet was deleted.
func (a Actual) WithoutSubnet(id string) Actual {
	a.subnets = slices.DeleteFunc(slices.Clone(a.subnets), func(s neutron.Subnet) bool { return s.ID == id })
	if a.SubnetID == id {
		a.SubnetID = ""
	}
	return a
}

// WithoutNetwork returns what is known after the network was deleted.
func (a Actual) WithoutNetwork() Actual {
	return Actual{Finalizer: a.Finalizer, networksKnown: true, subnetsKnown: true}
}

// WithFinalizer returns what is known after our finalizer was set or removed.
func (a Actual) WithFinalizer(set bool) Actual {
	a.Finalizer = set
	return a
}

// OurSubnetID returns the ID of the owner's subnet: the one that was found, or
// where nobody has looked, the one in the status. It is empty where there is
// none, or more than one.
func (a Actual) OurSubnetID(owner neutron.Owner) string {
	if !a.subnetsKnown {
		return a.SubnetID
	}
	if ours := a.ourSubnets(owner); len(ours) == 1 {
		return ours[0].ID
	}
	return ""
}

func (a Actual) ourSubnets(owner neutron.Owner) []neutron.Subnet {
	var ours []neutron.Subnet
	for _, subnet := range a.subnets {
		if subnet.Description == owner.Mark() {
			ours = append(ours, subnet)
		}
	}
	return ours
}

// otherSubnets returns the IDs of the subnets on a network that are not the
// owner's. One that is on the network, but that we are not shown when we ask for
// its subnets, is somebody else's as well.
func (a Actual) otherSubnets(owner neutron.Owner, network neutron.Network) []string {
	var others []string
	ours := subnetIDs(a.ourSubnets(owner))
	for _, id := range slices.Concat(network.SubnetIDs, subnetIDs(a.subnets)) {
		known := slices.Contains(ours, id) || !a.subnetsKnown && id == a.SubnetID
		if !known && !slices.Contains(others, id) {
			others = append(others, id)
		}
	}
	slices.Sort(others)
	return others
}

// knowsSubnetsOf tells whether it is known whose the subnets on the network
// are: they were looked for, or there is none but the one in the status.
func (a Actual) knowsSubnetsOf(network neutron.Network) bool {
	return a.subnetsKnown || !slices.ContainsFunc(network.SubnetIDs, func(id string) bool { return id != a.SubnetID })
}

package plan

import (
	"slices"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Ours returns the network and subnet that belong to the object. If they were not
// looked for, it returns the record in the status. The record is empty if there
// are none, or if it is not clear which ones belong to the object.
func (a Actual) Ours(desired Desired) Record {
	network, _, step := selectNetwork(desired, a)
	if _, unknown := step.(FindNetwork); unknown {
		return a.Record
	}
	if network != nil && desired.Adopted == "" && stepToTakeOver(desired, a, *network) != nil {
		network = nil // it is not proven to belong to the object
	}
	if network == nil || desired.Adopted != "" && neutron.IsMarker(network.Description) {
		return Record{NetworkCloud: a.NetworkCloud, Tags: a.Tags, RouterID: a.RouterID, RouterName: a.RouterName}
	}
	record := Record{NetworkID: network.ID, NetworkCloud: a.connected, MTU: mtuOf(*network), Tags: a.Tags}
	record.RouterID, record.RouterName = a.routerRecord(desired)
	if desired.Adopted == "" {
		record.DefaultMTU = a.defaultMTU(desired, *network)
		record.Tags = slices.DeleteFunc(slices.Clone(a.Tags), func(tag string) bool {
			return !slices.Contains(desired.Tags, tag) && !slices.Contains(network.Tags, tag)
		})
	}
	subnets, known := a.subnetsOf(*network)
	if !known {
		if network.ID == a.NetworkID {
			record.SubnetID, record.CIDR, record.Gateway = a.SubnetID, a.CIDR, a.Gateway
			record.SubnetPoolID, record.SubnetPoolName = a.SubnetPoolID, a.SubnetPoolName
		}
		return record
	}
	ours := a.ourSubnets(desired, subnets)
	if len(ours) == 0 {
		// It has lost its marker, and there must be no second one; or it is still attached.
		isKept := func(s neutron.Subnet) bool {
			return s.ID == a.SubnetID && (desired.Adopted == "" || a.mayBeAttached(s))
		}
		if slices.ContainsFunc(subnets, isKept) {
			record.SubnetID = a.SubnetID
		}
		return record
	}
	if kept, _, ok := selectSubnet(desired, a, ours); ok {
		record.SubnetID, record.CIDR, record.Gateway = kept.ID, kept.CIDR, kept.Gateway
		record.SubnetPoolID = kept.SubnetPoolID
		if id, known := a.subnetPoolID(desired); known && id == record.SubnetPoolID && id != "" {
			record.SubnetPoolName = desired.SubnetPool.Name
		}
	}
	return record
}

// Words describes the known part of the actual state for people.
func (a Actual) Words(desired Desired) string {
	ours := a.Ours(desired)
	source := "recorded in the status"
	if a.Cached {
		source = "in the cache of Neutron's state"
	}
	if ours.NetworkID == "" && !a.Cached && !a.Finalizer {
		return "no finalizer, so nothing in Neutron"
	}
	if ours.NetworkID == "" {
		return "no network " + source
	}
	text := "network " + ours.NetworkID
	if ours.CIDR.IsValid() {
		text += ", subnet " + ours.CIDR.String()
		if ours.Gateway.IsValid() {
			text += ", gateway " + ours.Gateway.String()
		}
	} else {
		text += ", no subnet"
	}
	return text + ", " + source
}

package plan

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Actual is the known part of the actual state. The zero value is empty, and each
// response from Neutron adds to it. Unknown is different from absent: absent
// means that a response did not contain the object.
//
// It is a value: each method returns the new state and leaves the receiver
// unchanged.
type Actual struct {
	// Finalizer reports whether the object in Kubernetes has our finalizer.
	Finalizer bool
	// Cloud is the cloud that the object records, in which its network is. It is
	// empty if the object records none.
	Cloud string
	// MarkedSubnets are the IDs of the subnets that were seen with our owner marker,
	// possibly some time ago.
	MarkedSubnets []string
	// Record is the content of the object's status.
	Record
	// Cached is true if the networks and what is on them come from the cache of
	// Neutron's state: see [isSafeFromCache].
	Cached bool

	// OtherClusters are the clusters that own a network whose object has the
	// namespace and name of this one.
	OtherClusters []string
	// OthersUnknown is true if OtherClusters is unknown.
	OthersUnknown bool

	// isNew is true after our finalizer was added to an object that did not have it.
	isNew bool
	// confirmed is true after a request with the revision of the cached network: no
	// other client has changed it, or a subnet on it.
	confirmed bool
	// ended are the requests of the networks that the plan has deleted or retained. left
	// are the IDs of duplicates that stay because they are in use.
	ended, left []string

	connected  string                      // the cloud that requests go to; empty if unknown
	byName     *[]neutron.Network          // found by the name that our networks have
	byID       *[]neutron.Network          // found by ID: one, or none
	subnets    map[string][]neutron.Subnet // by the ID of their network
	pools      *[]neutron.SubnetPool       // found by the name or ID in the spec
	extensions *[]string

	routers *[]neutron.Router // found by the name or ID in the spec
	// interfaces are those of the networks, and of new subnets, whose IDs are in
	// interfacesOn.
	interfaces   []neutron.RouterInterface
	interfacesOn map[string]bool
	ports        map[string][]neutron.Port // by the ID of their network
}

// Record is what the status of an object records of its network and subnet. An
// unknown value is empty.
type Record struct {
	NetworkID, SubnetID string
	// NetworkCloud is the cloud in which the network is.
	NetworkCloud string
	CIDR         netip.Prefix
	Gateway      netip.Addr // the zero Addr if there is a CIDR but no gateway
	// SubnetPoolID is the subnet pool that allocated the range. SubnetPoolName is
	// the name in the spec that led to this ID.
	SubnetPoolID, SubnetPoolName string
	MTU                          int
	// DefaultMTU is the MTU that Neutron chose for the network.
	DefaultMTU int
	// Tags are those that the controller added to the network, or was about to add.
	Tags []string
	// RouterID is the router to which the controller attached the subnet, or was about
	// to attach it. RouterName is the name in the spec that led to this ID.
	RouterID, RouterName string
}

// WithCloud returns the state after a FindCloud.
func (a Actual) WithCloud(connected string) Actual {
	a.connected = connected
	return a
}

// WithOtherClusters returns the state after a FindOtherClusters.
func (a Actual) WithOtherClusters(clusters []string) Actual {
	a.OtherClusters, a.OthersUnknown = clusters, false
	return a
}

// WithNetworks returns the state after a FindNetwork with this filter. It drops what
// came from the cache.
func (a Actual) WithNetworks(filter neutron.NetworkFilter, found []neutron.Network) Actual {
	if a.Cached {
		a = a.WithoutCache()
	}
	if filter.ID != "" {
		a.byID = &found
	} else {
		a.byName = &found
	}
	return a
}

// WithSubnets returns the state after a FindSubnets.
func (a Actual) WithSubnets(networkID string, found []neutron.Subnet) Actual {
	subnets := map[string][]neutron.Subnet{}
	maps.Copy(subnets, a.subnets)
	subnets[networkID] = found
	a.subnets = subnets
	return a
}

// WithSubnetPools returns the state after a FindSubnetPool.
func (a Actual) WithSubnetPools(found []neutron.SubnetPool) Actual {
	a.pools = &found
	return a
}

// WithExtensions returns the state after a FindExtensions.
func (a Actual) WithExtensions(found []string) Actual {
	a.extensions = &found
	return a
}

// WithNewNetwork returns the state after a network was created. From then on, all of
// it is known: there was none before.
func (a Actual) WithNewNetwork(request neutron.NewNetwork, created neutron.Network) Actual {
	a.DefaultMTU, a.Cached = 0, false
	if request.MTU == nil {
		a.DefaultMTU = mtuOf(created)
	}
	return a.WithNetwork(created)
}

// WithUpdatedNetwork returns the state after a network was updated.
func (a Actual) WithUpdatedNetwork(request neutron.NetworkUpdate, updated neutron.Network) Actual {
	if request.MTU != nil && *request.MTU == 0 {
		a.DefaultMTU = mtuOf(updated)
	}
	return a.WithNetwork(updated)
}

// WithTag returns the state after a tag was added to a network, or removed.
func (a Actual) WithTag(networkID, tag string, added bool) Actual {
	return a.withEditedNetworks(func(networks []neutron.Network) []neutron.Network {
		for i := range networks {
			if networks[i].ID != networkID {
				continue
			}
			networks[i].Tags = slices.DeleteFunc(slices.Clone(networks[i].Tags), func(t string) bool { return t == tag })
			if added {
				networks[i].Tags = append(networks[i].Tags, tag)
			}
		}
		return networks
	})
}

// WithRecordedTags returns the state after tags were recorded in the status.
func (a Actual) WithRecordedTags(tags []string) Actual {
	a.Tags = tags
	return a
}

// WithNetwork returns the state after our network was created or updated.
func (a Actual) WithNetwork(network neutron.Network) Actual {
	a = a.withEndOf(network.ID, neutron.RequestOf(network.Description)).withoutNetwork(network.ID)
	a.confirmed = true
	byName := append(slices.Clone(valueOf(a.byName)), network)
	a.byName = &byName
	return a
}

// WithoutNetwork returns the state after a network was deleted.
func (a Actual) WithoutNetwork(id string) Actual {
	a = a.withEndOf(id, "").withoutNetwork(id).WithSubnets(id, nil)
	a.confirmed = true
	if id == a.NetworkID {
		a.byID = new([]neutron.Network)
	}
	return a
}

// withEndOf returns the state after a network was deleted, or got another owner marker.
// From then on, another network of the request that it had is a copy.
func (a Actual) withEndOf(id, request string) Actual {
	for _, network := range valueOf(a.byName) {
		if before := neutron.RequestOf(network.Description); network.ID == id && (before != request || before == "") {
			a.ended = append(slices.Clone(a.ended), before)
		}
	}
	return a
}

// WithLeftDuplicate returns the state in which a duplicate stays, because it is in use.
func (a Actual) WithLeftDuplicate(id string) Actual {
	a.left = append(slices.Clone(a.left), id)
	return a
}

// isLeft reports whether a network stays although its object is being deleted: a
// duplicate that is in use, or a copy of what the plan has deleted or retained.
func (a Actual) isLeft(desired Desired, network neutron.Network) bool {
	isCopy := !desired.Gone && slices.Contains(a.ended, neutron.RequestOf(network.Description))
	return desired.Absent && (isCopy || slices.Contains(a.left, network.ID))
}

func (a Actual) withoutNetwork(id string) Actual {
	return a.withEditedNetworks(func(networks []neutron.Network) []neutron.Network {
		return slices.DeleteFunc(networks, func(n neutron.Network) bool { return n.ID == id })
	})
}

// withEditedNetworks returns the state with each list of networks edited.
func (a Actual) withEditedNetworks(edit func([]neutron.Network) []neutron.Network) Actual {
	for _, list := range []**[]neutron.Network{&a.byName, &a.byID} {
		if *list != nil {
			edited := edit(slices.Clone(**list))
			*list = &edited
		}
	}
	return a
}

// WithSubnet returns the state after a subnet was created or updated.
func (a Actual) WithSubnet(subnet neutron.Subnet) Actual {
	a = a.WithoutSubnet(subnet.ID)
	return a.WithSubnets(subnet.NetworkID, append(slices.Clone(a.subnets[subnet.NetworkID]), subnet))
}

// WithoutSubnet returns the state after a subnet was deleted.
func (a Actual) WithoutSubnet(id string) Actual {
	a.subnets = maps.Clone(a.subnets)
	for network, subnets := range a.subnets {
		a.subnets[network] = slices.DeleteFunc(slices.Clone(subnets), func(s neutron.Subnet) bool { return s.ID == id })
	}
	return a
}

// WithFinalizer returns the state after our finalizer was added, with the cloud, or
// removed.
func (a Actual) WithFinalizer(added bool) Actual {
	a.isNew = added && (a.isNew || !a.Finalizer)
	a.Finalizer = added
	if added {
		a.Cloud = a.connected
	}
	return a
}

// HasNetwork reports whether a network with this ID was found.
func (a Actual) HasNetwork(id string) bool {
	found := slices.Concat(valueOf(a.byName), valueOf(a.byID))
	return slices.ContainsFunc(found, func(n neutron.Network) bool { return n.ID == id })
}

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
		inStatus := func(s neutron.Subnet) bool { return s.ID == a.SubnetID }
		if desired.Adopted == "" && slices.ContainsFunc(subnets, inStatus) {
			record.SubnetID = a.SubnetID // it has lost its marker; there must be no second one
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

// subnetsOf returns the subnets on a network, if they are known.
func (a Actual) subnetsOf(network neutron.Network) (subnets []neutron.Subnet, known bool) {
	subnets, known = a.subnets[network.ID]
	return subnets, known || len(network.SubnetIDs) == 0
}

// ourSubnets returns the subnets that belong to the object: those with its owner
// marker; or else the one with the desired range, on a network that is to be
// adopted. The range alone is no reason to delete a subnet with its network, and
// neither is a status that names it.
func (a Actual) ourSubnets(desired Desired, subnets []neutron.Subnet) []neutron.Subnet {
	adoptsRange := desired.Adopted != "" && desired.SubnetPool == nil && !desired.Absent
	for _, isOurs := range []func(neutron.Subnet) bool{
		func(s neutron.Subnet) bool { return desired.Owner.HasMarker(s.Description) },
		func(s neutron.Subnet) bool {
			return adoptsRange && s.CIDR == desired.CIDR && !neutron.IsMarker(s.Description)
		},
	} {
		notOurs := func(s neutron.Subnet) bool { return !isOurs(s) }
		if ours := slices.DeleteFunc(slices.Clone(subnets), notOurs); len(ours) > 0 {
			return ours
		}
	}
	return nil
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
		known = !slices.ContainsFunc(network.SubnetIDs, func(id string) bool { return !slices.Contains(ours, id) })
	}
	foreign = slices.Concat(network.SubnetIDs, subnetIDs(subnets))
	foreign = slices.DeleteFunc(foreign, func(id string) bool { return slices.Contains(ours, id) })
	slices.Sort(foreign)
	return slices.Compact(foreign), known
}

// valueOf returns a list, which is nil if it is unknown.
func valueOf[T any](list *[]T) []T {
	if list == nil {
		return nil
	}
	return *list
}

// RequestOf returns the request that the owner marker of a network names, or an empty
// string.
func (a Actual) RequestOf(networkID string) string {
	for _, network := range slices.Concat(valueOf(a.byName), valueOf(a.byID)) {
		if network.ID == networkID {
			return neutron.RequestOf(network.Description)
		}
	}
	return ""
}

// Marked returns the networks that were found whose owner marker names a request of the
// owner.
func (a Actual) Marked(desired Desired) (marked []neutron.Network) {
	for _, network := range valueOf(a.byName) {
		if neutron.RequestOf(network.Description) != "" && desired.Owner.HasMarker(network.Description) {
			marked = append(marked, network)
		}
	}
	return marked
}

// NetworkOf returns the ID of the network whose owner marker names a request, or an empty
// string.
func (a Actual) NetworkOf(request string) string {
	for _, network := range valueOf(a.byName) {
		if neutron.RequestOf(network.Description) == request {
			return network.ID
		}
	}
	return ""
}

package plan

import (
	"maps"
	"net/netip"
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
	// Finalizer reports whether the object in Kubernetes has our finalizer.
	Finalizer bool
	// Record is what the status of the object says.
	Record

	marked     *[]neutron.Network          // found by our marks
	named      *[]neutron.Network          // found by an ID: one, or none
	subnets    map[string][]neutron.Subnet // by the network that they are on
	pools      *[]neutron.SubnetPool       // found by the name or ID in the spec
	extensions *[]string
}

// Record is what the status of an object tells of its network and subnet. What
// is not known is empty.
type Record struct {
	NetworkID, SubnetID string
	CIDR                netip.Prefix
	Gateway             netip.Addr // the zero Addr for none, where there is a CIDR
	// SubnetPoolID is the subnet pool that the range is from, and SubnetPoolName
	// what the spec called it when it was looked for.
	SubnetPoolID, SubnetPoolName string
	MTU                          int
	// DefaultMTU is what Neutron gave the network by itself.
	DefaultMTU int
	// Tags are those that we have put on the network, or were about to.
	Tags []string
}

// WithNetworks returns what is known after the networks were looked for with
// the filter of a FindNetwork.
func (a Actual) WithNetworks(filter neutron.NetworkFilter, found []neutron.Network) Actual {
	if filter.ID != "" {
		a.named = &found
	} else {
		a.marked = &found
	}
	return a
}

// WithSubnets returns what is known after the subnets of a network were looked
// for.
func (a Actual) WithSubnets(networkID string, found []neutron.Subnet) Actual {
	a.subnets = maps.Clone(a.subnets)
	if a.subnets == nil {
		a.subnets = map[string][]neutron.Subnet{}
	}
	a.subnets[networkID] = found
	return a
}

// WithSubnetPools returns what is known after the subnet pool in the spec was
// looked for.
func (a Actual) WithSubnetPools(found []neutron.SubnetPool) Actual {
	a.pools = &found
	return a
}

// WithExtensions returns what is known after the extensions were looked for.
func (a Actual) WithExtensions(found []string) Actual {
	a.extensions = &found
	return a
}

// WithNewNetwork returns what is known after a network was created.
func (a Actual) WithNewNetwork(asked neutron.NewNetwork, made neutron.Network) Actual {
	a.DefaultMTU = 0
	if asked.MTU == nil {
		a.DefaultMTU = mtuOf(made)
	}
	return a.WithNetwork(made)
}

// WithUpdatedNetwork returns what is known after a network was changed.
func (a Actual) WithUpdatedNetwork(asked neutron.NetworkUpdate, made neutron.Network) Actual {
	if asked.MTU != nil && *asked.MTU == 0 {
		a.DefaultMTU = mtuOf(made)
	}
	return a.WithNetwork(made)
}

// WithTag returns what is known after a tag was put on a network, or taken away.
func (a Actual) WithTag(networkID, tag string, there bool) Actual {
	for _, list := range []**[]neutron.Network{&a.marked, &a.named} {
		if *list == nil {
			continue
		}
		changed := slices.Clone(**list)
		for i := range changed {
			if changed[i].ID == networkID {
				changed[i].Tags = slices.DeleteFunc(slices.Clone(changed[i].Tags), func(t string) bool { return t == tag })
				if there {
					changed[i].Tags = append(changed[i].Tags, tag)
				}
			}
		}
		*list = &changed
	}
	return a
}

// WithNotedTags returns what is known after tags were noted as ours.
func (a Actual) WithNotedTags(tags []string) Actual {
	a.Tags = tags
	return a
}

// WithNetwork returns what is known after a network of ours was created, or
// changed.
func (a Actual) WithNetwork(network neutron.Network) Actual {
	a = a.without(network.ID)
	marked := append(slices.Clone(dereference(a.marked)), network)
	a.marked = &marked
	if _, known := a.subnets[network.ID]; !known && len(network.SubnetIDs) == 0 {
		a = a.WithSubnets(network.ID, nil)
	}
	return a
}

// WithoutNetwork returns what is known after a network was deleted.
func (a Actual) WithoutNetwork(id string) Actual {
	a = a.without(id).WithSubnets(id, nil)
	if id == a.NetworkID {
		a.named = new([]neutron.Network)
	}
	return a
}

func (a Actual) without(id string) Actual {
	for _, list := range []**[]neutron.Network{&a.marked, &a.named} {
		if *list != nil {
			rest := slices.DeleteFunc(slices.Clone(**list), func(n neutron.Network) bool { return n.ID == id })
			*list = &rest
		}
	}
	return a
}

// WithSubnet returns what is known after a subnet was created or changed.
func (a Actual) WithSubnet(subnet neutron.Subnet) Actual {
	a = a.WithoutSubnet(subnet.ID)
	return a.WithSubnets(subnet.NetworkID, append(slices.Clone(a.subnets[subnet.NetworkID]), subnet))
}

// WithoutSubnet returns what is known after a subnet was deleted.
func (a Actual) WithoutSubnet(id string) Actual {
	for network, subnets := range a.subnets {
		isIt := func(s neutron.Subnet) bool { return s.ID == id }
		if slices.ContainsFunc(subnets, isIt) {
			a = a.WithSubnets(network, slices.DeleteFunc(slices.Clone(subnets), isIt))
		}
	}
	return a
}

// WithFinalizer returns what is known after our finalizer was set or removed.
func (a Actual) WithFinalizer(set bool) Actual {
	a.Finalizer = set
	return a
}

// Sees reports whether a network of this ID was found.
func (a Actual) Sees(id string) bool {
	return slices.ContainsFunc(slices.Concat(dereference(a.marked), dereference(a.named)), func(n neutron.Network) bool { return n.ID == id })
}

// Ours returns what is known of the network and subnet that belong to the
// object: of those that were found, or where nobody has looked, what its status
// says. The record is empty where there is none, or where it cannot be told which one.
func (a Actual) Ours(desired Desired) Record {
	network, known := a.ourNetwork(desired)
	switch {
	case !known:
		return a.Record
	case network == nil:
		return Record{Tags: a.Tags}
	}
	record := Record{NetworkID: network.ID, MTU: mtuOf(*network), Tags: a.Tags}
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
	ours := a.ourSubnets(desired, *network, subnets)
	if len(ours) == 0 {
		return record
	}
	if kept, _, ok := chooseSubnet(desired, a, ours); ok {
		record.SubnetID, record.CIDR, record.Gateway = kept.ID, kept.CIDR, kept.Gateway
		record.SubnetPoolID = kept.SubnetPoolID
		if id, known := a.subnetPoolID(desired); known && id == record.SubnetPoolID && id != "" {
			record.SubnetPoolName = desired.SubnetPool.Name
		}
	}
	return record
}

// ourNetwork returns the network that belongs to the object, as far as that is
// known.
func (a Actual) ourNetwork(desired Desired) (network *neutron.Network, known bool) {
	candidates := a.named
	if desired.Adopted == "" && (a.marked == nil || len(*a.marked) > 0) {
		candidates = a.marked
	}
	switch {
	case candidates == nil && desired.Adopted == "" && a.marked != nil && a.NetworkID == "":
		return nil, true // no mark, and no ID to look for
	case candidates == nil:
		return nil, false
	case len(*candidates) == 0:
		return nil, true
	}
	kept, others := choose(*candidates, a.NetworkID)
	if desired.Adopted != "" && neutron.IsMarker(kept.Description) {
		return nil, true // it is another object's
	}
	if kept.ID != a.NetworkID && !areTwins(desired, a, kept, others) {
		return nil, true
	}
	return &kept, true
}

// subnetsOf returns the subnets on a network, as far as they are known.
func (a Actual) subnetsOf(network neutron.Network) (subnets []neutron.Subnet, known bool) {
	subnets, known = a.subnets[network.ID]
	return subnets, known || len(network.SubnetIDs) == 0
}

// ourSubnets returns the subnets that belong to the object: those that carry
// its mark; or else, on a network that was adopted, the one with the range asked
// for; or else the one that its status names, if somebody took the mark away.
func (a Actual) ourSubnets(desired Desired, network neutron.Network, subnets []neutron.Subnet) []neutron.Subnet {
	with := func(is func(neutron.Subnet) bool) (found []neutron.Subnet) {
		for _, subnet := range subnets {
			if is(subnet) {
				found = append(found, subnet)
			}
		}
		return found
	}
	if ours := with(func(s neutron.Subnet) bool { return s.Description == desired.Owner.Marker() }); len(ours) > 0 {
		return ours
	}
	adopted := with(func(s neutron.Subnet) bool {
		return desired.Adopted != "" && desired.SubnetPool == nil && s.CIDR == desired.CIDR && !neutron.IsMarker(s.Description)
	})
	if len(adopted) > 0 {
		return adopted
	}
	return with(func(s neutron.Subnet) bool {
		return s.ID == a.SubnetID && network.ID == a.NetworkID && !neutron.IsMarker(s.Description)
	})
}

// otherSubnets returns the IDs of the subnets on a network that are not the
// object's. One that is on the network, but that we are not shown when we ask
// for its subnets, is somebody else's as well. They are known where the subnets
// were looked for, or where there is none but the one in the status.
func (a Actual) otherSubnets(desired Desired, network neutron.Network) (others []string, known bool) {
	subnets, known := a.subnetsOf(network)
	ours := subnetIDs(a.ourSubnets(desired, network, subnets))
	if !known && network.ID == a.NetworkID {
		known = !slices.ContainsFunc(network.SubnetIDs, func(id string) bool { return id != a.SubnetID })
		ours = append(ours, a.SubnetID)
	}
	for _, id := range slices.Concat(network.SubnetIDs, subnetIDs(subnets)) {
		if !slices.Contains(ours, id) && !slices.Contains(others, id) {
			others = append(others, id)
		}
	}
	slices.Sort(others)
	return others, known
}

func dereference[T any](list *[]T) []T {
	if list == nil {
		return nil
	}
	return *list
}

package plan

import (
	"net/netip"
	"slices"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// KnownAfterCreate stands for a value that Neutron chooses when it creates an object,
// such as an ID.
const KnownAfterCreate = "(known after create)"

// IsRead reports whether a step only reads.
func IsRead(step Step) bool {
	switch step.(type) {
	case FindNetwork, FindSubnets, FindSubnetPool, FindExtensions, FindCloud, FindOtherClusters, FindRouter, FindRouterInterfaces, FindPorts:
		return true
	}
	return false
}

// Predict returns the state after a step that writes, as if the step had succeeded.
// It returns false for a step that reads or that ends a plan. What Neutron chooses
// is KnownAfterCreate if it is an ID, and unknown otherwise.
func Predict(actual Actual, step Step) (after Actual, ok bool) {
	switch step := step.(type) {
	case AddFinalizer:
		return actual.WithFinalizer(true), true
	case RemoveFinalizer:
		return actual.WithFinalizer(false), true
	case RecordTags:
		return actual.WithRecordedTags(step.Tags), true
	case RecordRouter:
		return actual.WithRecordedRouter(step.ID, step.Name), true

	case CreateNetwork:
		return actual.WithNewNetwork(step.Network, predictedNetwork(step.Network)), true
	case UpdateNetwork:
		return actual.WithUpdatedNetwork(step.Update, updatedNetwork(actual.network(step.ID), step.Update)), true
	case RetainNetwork:
		return actual.WithNetwork(updatedNetwork(actual.network(step.ID), step.Update)), true
	case DeleteNetwork:
		return actual.WithoutNetwork(step.ID), true
	case AddTag:
		return actual.WithTag(step.ID, step.Tag, true), true
	case RemoveTag:
		return actual.WithTag(step.ID, step.Tag, false), true

	case CreateSubnet:
		return actual.WithNewSubnet(predictedSubnet(step.Subnet)), true
	case UpdateSubnet:
		return actual.WithSubnet(updatedSubnet(actual.subnet(step.ID), step.Update)), true
	case DeleteSubnet:
		return actual.WithoutSubnet(step.ID), true
	case AttachRouter:
		return actual.WithRouterInterface(step.Interface), true
	case DetachRouter:
		return actual.WithoutRouterInterface(step.Interface), true
	}
	return actual, false
}

// MaskUnknown returns a step without the values that Predict invented: those that an
// object has before its update, if an earlier step of the plan creates it.
func MaskUnknown(step Step) Step {
	mask := func(id string, changes []Change) []Change {
		if id != KnownAfterCreate {
			return changes
		}
		masked := slices.Clone(changes)
		for i := range masked {
			masked[i].From = KnownAfterCreate
		}
		return masked
	}
	switch step := step.(type) {
	case UpdateNetwork:
		step.Changes = mask(step.ID, step.Changes)
		return step
	case UpdateSubnet:
		step.Changes = mask(step.ID, step.Changes)
		return step
	case AttachRouter:
		if isPartOf(netip.PrefixFrom(step.Interface.Address, step.Interface.Address.BitLen()), "0.0.0.0/8", "::/8") { // of unknownRange
			step.Interface.Address = netip.Addr{}
		}
		return step
	}
	return step
}

// predictedNetwork returns a network as Neutron creates it. A setting that the
// request omits is unknown: it has Neutron's default, or this Neutron lacks it.
func predictedNetwork(request neutron.NewNetwork) neutron.Network {
	created := neutron.Network{
		ID: KnownAfterCreate, Name: request.Name, Description: request.Description, NetworkSettings: request.NetworkSettings,
	}
	if created.AdminStateUp == nil {
		created.AdminStateUp = new(true)
	}
	return created
}

// updatedNetwork returns a network after an update.
func updatedNetwork(network neutron.Network, update neutron.NetworkUpdate) neutron.Network {
	if update.Name != "" {
		network.Name = update.Name
	}
	if update.Description != "" {
		network.Description = update.Description
	}
	for _, s := range settings {
		if s.isSet(update.NetworkSettings) {
			s.set(&network.NetworkSettings, update.NetworkSettings)
		}
	}
	if mtu := update.MTU; mtu != nil && *mtu == 0 {
		network.MTU = nil // Neutron chooses it
	}
	network.Revision++
	return network
}

// predictedSubnet returns a subnet as Neutron creates it. If a subnet pool allocates
// the range, the range has the right length, and begins with an address that no
// subnet can have.
func predictedSubnet(request neutron.NewSubnet) neutron.Subnet {
	created := neutron.Subnet{
		ID: KnownAfterCreate, NetworkID: request.NetworkID, Name: request.Name, Description: request.Description,
		CIDR: request.CIDR, DHCP: true, AddressMode: request.AddressMode, RAMode: request.RAMode,
	}
	if pool := request.FromPool; pool != nil {
		created.SubnetPoolID, created.CIDR = pool.SubnetPoolID, unknownRange(pool.IPVersion, pool.PrefixLength)
	}
	created.Gateway = created.CIDR.Addr().Next()
	if request.Gateway != nil {
		created.Gateway = *request.Gateway
	}
	created.Pools = Pools(created.CIDR, created.Gateway)
	setSubnetSettings(&created, request.SubnetSettings)
	return created
}

// unknownRange returns a range of an IP version. The length is 0 for the default of
// the subnet pool.
func unknownRange(version, length int) netip.Prefix {
	first, byDefault := netip.IPv4Unspecified(), 24
	if version == 6 {
		first, byDefault = netip.IPv6Unspecified(), 64
	}
	if length == 0 {
		length = byDefault
	}
	return netip.PrefixFrom(first, length)
}

// updatedSubnet returns a subnet after an update.
func updatedSubnet(subnet neutron.Subnet, update neutron.SubnetUpdate) neutron.Subnet {
	if update.Name != "" {
		subnet.Name = update.Name
	}
	if update.Description != "" {
		subnet.Description = update.Description
	}
	setSubnetSettings(&subnet, update.SubnetSettings)
	subnet.Revision++
	return subnet
}

// setSubnetSettings sets the settings that a request contains.
func setSubnetSettings(subnet *neutron.Subnet, to neutron.SubnetSettings) {
	if to.Gateway != nil {
		subnet.Gateway = *to.Gateway
	}
	if to.Pools != nil {
		subnet.Pools = to.Pools
	}
	if to.DHCP != nil {
		subnet.DHCP = *to.DHCP
	}
	if to.Nameservers != nil {
		subnet.Nameservers = *to.Nameservers
	}
	if to.HostRoutes != nil {
		subnet.HostRoutes = *to.HostRoutes
	}
}

// network returns a network that was found, by its ID.
func (a Actual) network(id string) neutron.Network {
	found := slices.Concat(valueOf(a.byName), valueOf(a.byID))
	if i := slices.IndexFunc(found, func(n neutron.Network) bool { return n.ID == id }); i >= 0 {
		return found[i]
	}
	return neutron.Network{ID: id}
}

// subnet returns a subnet that was found, by its ID.
func (a Actual) subnet(id string) neutron.Subnet {
	for _, subnets := range a.subnets {
		if i := slices.IndexFunc(subnets, func(s neutron.Subnet) bool { return s.ID == id }); i >= 0 {
			return subnets[i]
		}
	}
	return neutron.Subnet{ID: id}
}

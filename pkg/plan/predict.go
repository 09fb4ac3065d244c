package plan

import (
	"net/netip"
	"slices"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// KnownAfterCreate stands for a value that Neutron chooses when it creates an object,
// such as an ID.
const KnownAfterCreate = "(known after create)"

// Predict returns the state after a step that writes, as if the step had succeeded.
// What Neutron chooses is KnownAfterCreate if it is an ID, and unknown otherwise.
func Predict(actual Actual, step Step) Actual {
	var result any
	switch step := step.(type) {
	case CreateNetwork:
		result = predictedNetwork(step.Network)
	case UpdateNetwork:
		result = updatedNetwork(actual.network(step.ID), step.Update)
	case RetainNetwork:
		result = updatedNetwork(actual.network(step.ID), step.Update)
	case CreateSubnet:
		result = predictedSubnet(step.Subnet)
	case UpdateSubnet:
		result = updatedSubnet(actual.subnet(step.ID), step.Update)
	case AttachRouter:
		result = step.Interface
	}
	return actual.After(step, result)
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
		address := netip.PrefixFrom(step.Interface.Address, step.Interface.Address.BitLen())
		if isPartOf(address, "0.0.0.0/8", "::/8") { // of unknownRange
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

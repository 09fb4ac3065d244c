package plan

import (
	"cmp"
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
	switch step := step.(type) {
	case UpdateNetwork:
		step.Changes = maskedChanges(step.ID, step.Changes)
		return step
	case UpdateSubnet:
		step.Changes = maskedChanges(step.ID, step.Changes)
		return step
	case AttachRouter:
		address := netip.PrefixFrom(step.Interface.Address, step.Interface.Address.BitLen())
		if isPartOf(address, "0.0.0.0/8", "::/8") { // of predictedSubnet
			step.Interface.Address = netip.Addr{}
		}
		return step
	}
	return step
}

func maskedChanges(id string, changes []Change) []Change {
	changes = slices.Clone(changes)
	for i := range changes {
		if id == KnownAfterCreate {
			changes[i].From = KnownAfterCreate
		}
	}
	return changes
}

// predictedNetwork returns a network as Neutron creates it. A setting that the
// request omits is unknown: it has Neutron's default, or this Neutron lacks it.
func predictedNetwork(request neutron.NewNetwork) neutron.Network {
	created := neutron.Network{
		ID: KnownAfterCreate, Name: request.Name, Description: request.Description, NetworkSettings: request.NetworkSettings,
	}
	created.AdminStateUp = cmp.Or(created.AdminStateUp, new(true))
	return created
}

func updatedNetwork(network neutron.Network, update neutron.NetworkUpdate) neutron.Network {
	network.Name = cmp.Or(update.Name, network.Name)
	network.Description = cmp.Or(update.Description, network.Description)
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

// predictedSubnet returns a subnet as Neutron creates it. A range from a subnet pool begins
// with an address that no subnet can have.
func predictedSubnet(request neutron.NewSubnet) neutron.Subnet {
	created := neutron.Subnet{
		ID: KnownAfterCreate, NetworkID: request.NetworkID, Name: request.Name, Description: request.Description,
		CIDR: request.CIDR, DHCP: true, AddressMode: request.AddressMode, RAMode: request.RAMode,
	}
	if pool := request.FromPool; pool != nil {
		created.SubnetPoolID = pool.SubnetPoolID
		created.CIDR = netip.PrefixFrom(netip.IPv4Unspecified(), cmp.Or(pool.PrefixLength, 24))
		if pool.IPVersion == 6 {
			created.CIDR = netip.PrefixFrom(netip.IPv6Unspecified(), cmp.Or(pool.PrefixLength, 64))
		}
	}
	created.Gateway = *cmp.Or(request.Gateway, new(created.CIDR.Addr().Next()))
	created.Pools = Pools(created.CIDR, created.Gateway)
	setSubnetSettings(&created, request.SubnetSettings)
	return created
}

func updatedSubnet(subnet neutron.Subnet, update neutron.SubnetUpdate) neutron.Subnet {
	subnet.Name = cmp.Or(update.Name, subnet.Name)
	subnet.Description = cmp.Or(update.Description, subnet.Description)
	setSubnetSettings(&subnet, update.SubnetSettings)
	subnet.Revision++
	return subnet
}

func setSubnetSettings(subnet *neutron.Subnet, to neutron.SubnetSettings) {
	subnet.Gateway = *cmp.Or(to.Gateway, &subnet.Gateway)
	subnet.DHCP = *cmp.Or(to.DHCP, &subnet.DHCP)
	subnet.Nameservers = *cmp.Or(to.Nameservers, &subnet.Nameservers)
	subnet.HostRoutes = *cmp.Or(to.HostRoutes, &subnet.HostRoutes)
	if to.Pools != nil {
		subnet.Pools = to.Pools
	}
}

package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// stepToSubnet creates, updates or replaces the subnet on our network. It returns
// nil if the subnet is as desired.
func stepToSubnet(desired Desired, actual Actual, network neutron.Network) Step {
	subnets, known := actual.subnetsOf(network)
	if !known {
		return FindSubnets{neutron.SubnetFilter{NetworkID: network.ID}}
	}
	if _, known := actual.subnetPoolID(desired); !known {
		_, step := selectSubnetPool(desired, actual)
		return step
	}
	ours := actual.ourSubnets(desired, subnets)
	if len(ours) == 0 {
		if step := stepToRoom(desired, actual, network); step != nil {
			return step
		}
	}
	if step := stepFromAdopted(desired, actual, subnets); step != nil {
		return step
	}
	if len(ours) == 0 {
		return stepToNewSubnet(desired, actual, network)
	}
	kept, others, ok := selectSubnet(desired, actual, ours)
	switch {
	case !ok:
		return ambiguous("subnets", subnetIDs(ours), desired.Owner, actual.SubnetID)
	case len(others) > 0 && (kept.ID == actual.SubnetID || !hasDesiredRange(desired, actual, others[0])):
		return stepToDelete(desired, actual, others[0], hasDesiredRange(desired, actual, others[0]))
	}
	return stepToSpec(desired, actual, network, kept)
}

func stepToNewSubnet(desired Desired, actual Actual, network neutron.Network) Step {
	subnet := neutron.NewSubnet{
		NetworkID: network.ID, Name: desired.Owner.String(), Description: desired.Owner.Marker(), CIDR: desired.CIDR,
		AddressMode: desired.AddressMode, RAMode: desired.RAMode, SubnetSettings: desired.subnetSettings(),
	}
	if desired.SubnetPool == nil {
		subnet.Gateway = new(desired.gatewayOr(desired.CIDR.Addr().Next()))
		return CreateSubnet{subnet}
	}
	// Neutron gives a subnet from a subnet pool a gateway; an update removes it.
	pool, step := selectSubnetPool(desired, actual)
	if step != nil {
		return step
	}
	subnet.FromPool = &neutron.FromPool{
		SubnetPoolID: pool.ID, IPVersion: pool.IPVersion, PrefixLength: desired.SubnetPool.PrefixLength,
	}
	return CreateSubnet{subnet}
}

// stepToRoom returns nil if the subnet can be created as far as other subnets on the
// network are concerned: Neutron rejects a range that overlaps. The subnet in the
// status was ours, and ports may use it: there must be no second one.
func stepToRoom(desired Desired, actual Actual, network neutron.Network) Step {
	subnets, _ := actual.subnetsOf(network)
	for _, s := range subnets {
		overlaps := desired.CIDR.IsValid() && s.CIDR.Overlaps(desired.CIDR)
		wasOurs := desired.Adopted == "" && s.ID == actual.SubnetID
		if (overlaps || wasOurs) && !desired.has(s) {
			return blocked(ReasonNotOurs,
				"subnet %s with the range %s is on network %s, but does not have the owner marker of this Network. "+
					"If it belongs to this Network, set its description to %q. Otherwise delete it.",
				s.ID, s.CIDR, network.ID, desired.Owner.Marker())
		}
	}
	return nil
}

// stepToSpec updates the existing subnet. Its range and its IPv6 modes cannot be
// changed, so a subnet with other ones is deleted first; Neutron refuses that
// while a port uses it. An adopted subnet is never deleted. It keeps its name and
// all fields that the spec omits.
func stepToSpec(desired Desired, actual Actual, network neutron.Network, subnet neutron.Subnet) Step {
	name, marker := desired.Owner.String(), desired.Owner.Marker()
	adopted := desired.Adopted != "" && subnet.Description != marker
	keepsModes := adopted && desired.AddressMode == "" && desired.RAMode == ""
	hasModes := subnet.AddressMode == desired.AddressMode && subnet.RAMode == desired.RAMode
	if !hasDesiredRange(desired, actual, subnet) || !hasModes && !keepsModes {
		if adopted {
			return blocked(ReasonNotOurs,
				"subnet %s with the range %s%s was adopted: it is not deleted to make room for %s. "+
					"Delete the subnet, or restore the previous spec.",
				subnet.ID, subnet.CIDR, modesText(subnet.AddressMode, subnet.RAMode), desired.RangeText())
		}
		return stepToReplace(desired, actual, network, subnet)
	}
	target := desired.settingsForSubnet(subnet, adopted)
	update := neutron.SubnetUpdate{Revision: subnet.Revision}
	changes := changeSettings(desired, &update.SubnetSettings, subnet, target)
	if !adopted {
		labels := labelChanges(subnet.Name, name, subnet.Description, marker)
		if changes = append(changes, labels...); labels != nil {
			update.Name, update.Description = name, marker
		}
	}
	if changes == nil {
		return nil
	}
	if update.Gateway != nil {
		if step := stepToOtherGateway(actual, subnet); step != nil {
			return step
		}
	}
	return UpdateSubnet{ID: subnet.ID, Changes: changes, Update: update}
}

// stepToReplace deletes a subnet whose range or IPv6 modes differ, if the desired
// one can be created.
func stepToReplace(desired Desired, actual Actual, network neutron.Network, subnet neutron.Subnet) Step {
	if desired.SubnetPool != nil {
		if _, step := selectSubnetPool(desired, actual); step != nil {
			return step
		}
	}
	if step := stepToRoom(desired, actual, network); step != nil {
		return step
	}
	if desired.canCoexist(actual, subnet) { // it is deleted once the new one exists
		if step := stepToUnused(desired, actual, subnet); step != nil {
			return step
		}
		return stepToNewSubnet(desired, actual, network)
	}
	return stepToDelete(desired, actual, subnet, false)
}

// stepToDelete deletes a subnet that the desired one replaces, or a duplicate of it.
func stepToDelete(desired Desired, actual Actual, subnet neutron.Subnet, isDuplicate bool) Step {
	if step := stepToDetached(actual, subnet, replacement(desired, subnet), false); step != nil {
		return step
	}
	return DeleteSubnet{
		Duplicate: isDuplicate, ID: subnet.ID, Revision: subnet.Revision, From: subnet.CIDR, For: desired.RangeText(),
	}
}

// canCoexist reports whether the desired subnet can be created while a subnet that it
// replaces exists. Neutron rejects ranges that overlap, and a network with subnets of
// several subnet pools, or with and without one.
func (d Desired) canCoexist(actual Actual, subnet neutron.Subnet) bool {
	if d.SubnetPool == nil {
		return subnet.SubnetPoolID == "" && !subnet.CIDR.Overlaps(d.CIDR)
	}
	id, known := actual.subnetPoolID(d)
	return known && subnet.SubnetPoolID == id
}

// stepToUnused returns nil if no port uses a subnet that is to be replaced: the new one is
// not created before the old one can go.
func stepToUnused(desired Desired, actual Actual, subnet neutron.Subnet) Step {
	ports, known := actual.ports[subnet.NetworkID]
	if !known {
		return FindPorts{subnet.NetworkID}
	}
	users := usersOf(subnet, ports)
	if users == nil {
		return nil
	}
	return blocked(ReasonInUse,
		"cannot %s: ports use subnet %s (%s). Delete the ports, or restore the previous spec.",
		replacement(desired, subnet), subnet.ID, firstOf(users))
}

// selectSubnetPool returns the desired subnet pool. It returns a step if the
// subnet pool is unknown or not suitable.
func selectSubnetPool(desired Desired, actual Actual) (pool neutron.SubnetPool, step Step) {
	wanted, name := desired.SubnetPool, desired.SubnetPool.Name+desired.SubnetPool.ID
	has, known := actual.hasExtension(neutron.ExtensionSubnetPools)
	switch {
	case !known:
		return pool, FindExtensions{}
	case !has:
		return pool, blocked(ReasonExtensionMissing,
			"this cloud lacks a Neutron extension: spec.subnetPool requires %q. "+
				"Set spec.cidr instead, or ask the operator of the cloud for the extension.", neutron.ExtensionSubnetPools)
	case actual.pools == nil:
		if id, _ := actual.subnetPoolID(desired); id != "" {
			return pool, FindSubnetPool{neutron.SubnetPoolFilter{ID: id}}
		}
		return pool, FindSubnetPool{neutron.SubnetPoolFilter{Name: wanted.Name}}
	case len(actual.pools) == 0:
		return pool, blocked(ReasonNotFound,
			"subnet pool %q, which spec.subnetPool names, does not exist, or the controller's project cannot see it.", name)
	case len(actual.pools) > 1:
		ids := sortedIDs(actual.pools, func(p neutron.SubnetPool) string { return p.ID })
		return pool, ambiguousName("subnet pools", wanted.Name, ids, "spec.subnetPool")
	}
	pool = actual.pools[0]
	if conflict := desired.versionConflict(pool.IPVersion); conflict != "" {
		return pool, blocked(ReasonSubnetPoolMismatch,
			"subnet pool %q allocates IPv%d ranges, but %s.", name, pool.IPVersion, conflict)
	}
	length, least, most := wanted.PrefixLength, pool.MinPrefixLength, pool.MaxPrefixLength
	if length != 0 && (length < least || most != 0 && length > most) {
		return pool, blocked(ReasonSubnetPoolMismatch,
			"subnet pool %q allocates ranges from /%d to /%d, but spec.subnetPool.prefixLength is %d.",
			name, least, most, length)
	}
	return pool, nil
}

// versionConflict returns the reason why the spec does not allow a subnet of this
// IP version. It is empty if there is none.
func (d Desired) versionConflict(version int) string {
	isOther := func(address netip.Addr) bool { return address.Is4() != (version == 4) }
	switch mtu, length := d.Settings.MTU, d.SubnetPool.PrefixLength; {
	case version == 4 && (d.AddressMode != "" || d.RAMode != ""):
		return "spec.ipv6 is set"
	case version == 4 && length > 30:
		return fmt.Sprintf("spec.subnetPool.prefixLength is %d; the maximum for IPv4 is 30", length)
	case version == 6 && mtu != nil && *mtu < 1280:
		return fmt.Sprintf("spec.mtu is %d; the minimum for IPv6 is 1280", *mtu)
	case slices.ContainsFunc(d.Nameservers, isOther):
		return "spec.dnsNameservers has an address of another IP version"
	case slices.ContainsFunc(d.HostRoutes, func(r neutron.HostRoute) bool { return isOther(r.NextHop) }):
		return "spec.hostRoutes has an address of another IP version"
	}
	return ""
}

// settingsForSubnet returns a subnet with the desired settings. A setting that
// the spec omits has Neutron's default, or is kept if the subnet was adopted.
func (d Desired) settingsForSubnet(subnet neutron.Subnet, adopted bool) neutron.Subnet {
	target := subnet
	if !adopted {
		target.Gateway, target.DHCP, target.Nameservers, target.HostRoutes = subnet.CIDR.Addr().Next(), true, nil, nil
	}
	target.Gateway = d.gatewayOr(target.Gateway)
	if target.Pools = Pools(subnet.CIDR, target.Gateway); adopted {
		target.Pools = poolsWithout(subnet.Pools, target.Gateway)
	}
	setSubnetSettings(&target, d.subnetSettings())
	return target
}

// subnetSettings returns the settings in the spec, without the gateway.
func (d Desired) subnetSettings() neutron.SubnetSettings {
	settings := neutron.SubnetSettings{Pools: d.Pools, DHCP: d.DHCP}
	if d.Nameservers != nil {
		settings.Nameservers = &d.Nameservers
	}
	if d.HostRoutes != nil {
		settings.HostRoutes = &d.HostRoutes
	}
	return settings
}

// changeSettings adds the differences between two states of a subnet to an update,
// and returns them as changes. Pools that change only because of the gateway are
// not listed.
func changeSettings(desired Desired, update *neutron.SubnetSettings, from, to neutron.Subnet) (changes []Change) {
	note := func(what, from, to string) { changes = append(changes, Change{what, from, to}) }
	if from.Gateway != to.Gateway {
		update.Gateway = &to.Gateway
		note("gateway", addrText(from.Gateway), addrText(to.Gateway))
	}
	if !samePools(from.Pools, to.Pools) {
		update.Pools = to.Pools
		if update.Gateway == nil || desired.Pools != nil {
			note("allocation pools", listText(from.Pools, poolText), listText(to.Pools, poolText))
		}
	}
	if from.DHCP != to.DHCP {
		update.DHCP = &to.DHCP
		note("DHCP", strconv.FormatBool(from.DHCP), strconv.FormatBool(to.DHCP))
	}
	if !slices.Equal(from.Nameservers, to.Nameservers) {
		update.Nameservers = &to.Nameservers
		note("DNS name servers", listText(from.Nameservers, netip.Addr.String), listText(to.Nameservers, netip.Addr.String))
	}
	if !slices.Equal(sortedRoutes(from.HostRoutes), sortedRoutes(to.HostRoutes)) {
		update.HostRoutes = &to.HostRoutes
		note("host routes", listText(from.HostRoutes, routeText), listText(to.HostRoutes, routeText))
	}
	return changes
}

func sortedRoutes(routes []neutron.HostRoute) []neutron.HostRoute {
	return slices.SortedFunc(slices.Values(routes), func(a, b neutron.HostRoute) int {
		return cmp.Or(a.Destination.Compare(b.Destination), a.NextHop.Compare(b.NextHop))
	})
}

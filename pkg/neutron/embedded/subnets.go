package embedded

import (
	"net/netip"
	"slices"
	"strings"
)

func (s *Server) newSubnets() *collection {
	modes := oneOf("slaac", "dhcpv6-stateful", "dhcpv6-stateless")
	return newCollection(collection{
		name: "subnet", plural: "subnets", typeName: "Subnet",
		attributes: s.withCommon(
			attribute{name: "ip_version", post: true, required: true, check: ipVersion, filter: by(number)},
			attribute{name: "network_id", post: true, required: true, check: uuid, filter: byText},
			attribute{name: "subnetpool_id", post: true, check: uuid, filter: byText},
			attribute{name: "prefixlen", post: true, hidden: true, check: count},
			attribute{name: "cidr", post: true, check: anyCIDR, filter: by(anyCIDR)},
			attribute{name: "gateway_ip", post: true, put: true, check: address, filter: byText},
			attribute{name: "allocation_pools", post: true, put: true, check: listOf(allocationPool)},
			attribute{name: "dns_nameservers", post: true, put: true, initial: []any{}, check: listOf(nameserver)},
			attribute{name: "host_routes", post: true, put: true, initial: []any{}, check: hostRoutes},
			attribute{name: "enable_dhcp", post: true, put: true, initial: true, check: boolean, filter: by(boolean)},
			attribute{name: "ipv6_ra_mode", post: true, check: modes, filter: byText},
			attribute{name: "ipv6_address_mode", post: true, check: modes, filter: byText},
		),
		validate:       s.validateSubnet,
		place:          s.placeSubnet,
		release:        s.releaseSubnet,
		added:          s.subnetAdded,
		updated:        s.subnetUpdated,
		dropped:        s.subnetDropped,
		forgivesMarker: true,
	})
}

// nameserver accepts an address, and keeps its spelling.
func nameserver(name string, value any) (any, *apiError) {
	_, failure := parseAddress(name, value)
	return value, failure
}

// hostRoutes accepts a list of {"destination": …, "nexthop": …}. As in a real
// Neutron, the list is a set, in another order than in the request.
func hostRoutes(name string, value any) (any, *apiError) {
	routes, failure := listOf(hostRoute)(name, value)
	if failure != nil {
		return nil, failure
	}
	sorted := routes.([]any) // not nil, which would be null in a response
	slices.SortFunc(sorted, func(a, b any) int {
		return strings.Compare(a.(object)["destination"].(string), b.(object)["destination"].(string))
	})
	return sorted, nil
}

func hostRoute(name string, value any) (any, *apiError) {
	destination, nexthop, failure := pair(name, value, "destination", "nexthop")
	if failure != nil {
		return nil, failure
	}
	cidr, err := netip.ParsePrefix(destination)
	if err != nil || cidr != cidr.Masked() {
		return nil, wrong(name, "'%s' is not a valid CIDR without host bits.", destination)
	}
	ip, failure := parseAddress(name, nexthop)
	return object{"destination": destination, "nexthop": ip.String()}, failure
}

// validateSubnet checks that the values of one subnet fit together.
func (s *Server) validateSubnet(o, given, before object) *apiError {
	_, hasPrefixLength := given["prefixlen"]
	_, hasPools := given["allocation_pools"]
	_, hasGateway := given["gateway_ip"]
	switch {
	case before != nil:
		failure := checkSubnet(o)
		if failure == nil && (hasPools || hasGateway) {
			failure = checkPoolsLackGateway(o)
		}
		if failure == nil {
			failure = s.checkGatewayFree(before, given)
		}
		return failure
	case o["subnetpool_id"] == nil && o["cidr"] == nil:
		return badResource("subnets", "a subnetpool must be specified in the absence of a cidr.")
	case o["subnetpool_id"] == nil && hasPrefixLength:
		return badResource("subnets", "cidr and prefixlen must not be supplied together.")
	case o["subnetpool_id"] == nil:
		return checkSubnet(o)
	case hasPools:
		return badResource("subnets", "allocation_pools allowed only for specific subnet requests..")
	case o["cidr"] != nil, o["gateway_ip"] != nil:
		return badResource("subnets", "the embedded Neutron supports no cidr and gateway_ip with a subnet pool.")
	}
	return nil // a real Neutron, too, checks no more of a subnet from a subnet pool
}

// checkSubnet checks the range and the gateway of a subnet. (The schema of Network has rules
// for what else a real Neutron checks.)
func checkSubnet(o object) *apiError {
	cidr, version := cidrOf(o), o["ip_version"].(int)
	gateway, hasGateway := gatewayOf(o)
	switch {
	case !isVersion(cidr.Addr(), version):
		return invalidInput("cidr '%s' does not match the ip_version '%d'.", cidr, version)
	case o["enable_dhcp"] == true && cidr.Addr().BitLen()-cidr.Bits() < 2:
		return invalidInput("Subnet has a prefix length that is incompatible with DHCP service enabled.")
	case hasGateway && !isVersion(gateway, version):
		return invalidInput("gateway_ip '%s' does not match the ip_version '%d'.", gateway, version)
	case hasGateway && !canBeGateway(cidr, gateway):
		return invalidInput("Gateway is not valid on subnet.")
	}
	return nil
}

// placeSubnet completes a new subnet with its range, gateway and allocation pools,
// and checks it against the other subnets of its network.
func (s *Server) placeSubnet(o, given object) *apiError {
	network, ok := s.networks.objects[o["network_id"].(string)]
	if !ok {
		return s.networks.missing(o["network_id"].(string))
	}
	if o["subnetpool_id"] != nil {
		if failure := s.takeRange(o, given); failure != nil {
			return failure
		}
		setGateway(o, cidrOf(o).Addr().Next()) // even for null in the request
	} else if _, hasGateway := given["gateway_ip"]; !hasGateway {
		setGateway(o, defaultGateway(cidrOf(o)))
	}
	if failure := checkPoolsLackGateway(o); failure != nil {
		return failure
	}
	if gateway, ok := gatewayOf(o); ok && !canBeGateway(cidrOf(o), gateway) {
		return conflict("IpamValueInvalid", "Gateway IP %s cannot be allocated in CIDR %s", gateway, cidrOf(o))
	}
	if len(poolsOf(o)) == 0 {
		setPools(o, defaultPools(o))
	}
	return s.checkNeighbours(network, o)
}

// takeRange takes the range of a new subnet from its subnet pool.
func (s *Server) takeRange(o, given object) *apiError {
	subnetPool, ok := s.subnetPools.objects[o["subnetpool_id"].(string)]
	if !ok {
		return s.subnetPools.missing(o["subnetpool_id"].(string))
	}
	if o["ip_version"] != subnetPool["ip_version"] {
		return badResource("subnets", "Cannot allocate IPv%d subnet from IPv%d subnet pool.", o["ip_version"],
			subnetPool["ip_version"])
	}
	bits, ok := given["prefixlen"].(int)
	if !ok {
		bits = subnetPool["default_prefixlen"].(int)
	}
	cidr, failure := s.allocate(subnetPool, bits)
	o["cidr"] = cidr.String()
	return failure
}

// checkNeighbours checks a new subnet against the other subnets of its network.
func (s *Server) checkNeighbours(network, o object) *apiError {
	cidr := cidrOf(o)
	for _, other := range s.subnetsOf(network) {
		switch {
		case cidrOf(other).Overlaps(cidr):
			return invalidInput("Requested subnet with cidr: %s for network: %s overlaps with another subnet.", cidr,
				network["id"])
		case other["ip_version"] == o["ip_version"] && other["subnetpool_id"] != o["subnetpool_id"]:
			return invalid("NetworkSubnetPoolAffinityError",
				"Subnets hosted on the same network must be allocated from the same subnet pool.")
		}
	}
	return nil
}

// releaseSubnet rejects the deletion of a subnet while a port has an address of
// it.
func (s *Server) releaseSubnet(o object) *apiError {
	users := s.portsOf(object{"id": o["network_id"]})
	if portWith(users, func(fixed object) bool { return fixed["subnet_id"] == o["id"] }) == nil {
		return nil
	}
	return conflict("SubnetInUse",
		"Unable to complete operation on subnet %s: One or more ports have an IP allocation from this subnet.", o["id"])
}

// defaultGateway returns the gateway of a subnet if the request has none: for IPv4
// the first address for hosts, for IPv6 the network address, which all routers of a
// subnet have (RFC 4291, section 2.6.1).
func defaultGateway(cidr netip.Prefix) netip.Addr {
	if cidr.Addr().Is6() {
		return cidr.Addr()
	}
	return cidr.Addr().Next()
}

// canBeGateway reports whether Neutron accepts a gateway. It may be outside the
// subnet, but not its network or broadcast address.
func canBeGateway(cidr netip.Prefix, gateway netip.Addr) bool {
	return gateway.Is6() || gateway != cidr.Addr() && gateway != lastAddr(cidr)
}

func cidrOf(o object) netip.Prefix { return netip.MustParsePrefix(o["cidr"].(string)) }

// gatewayOf returns the gateway of a subnet, and whether it has one.
func gatewayOf(o object) (netip.Addr, bool) {
	gateway, ok := o["gateway_ip"].(string)
	if !ok {
		return netip.Addr{}, false
	}
	return netip.MustParseAddr(gateway), true
}

// setGateway sets the gateway of a subnet. No address follows the last one of all:
// then the subnet has no gateway.
func setGateway(o object, gateway netip.Addr) {
	if gateway.IsValid() {
		o["gateway_ip"] = gateway.String()
	}
}

func isVersion(address netip.Addr, version int) bool {
	return address.Is4() == (version == 4)
}

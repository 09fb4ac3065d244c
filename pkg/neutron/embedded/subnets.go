package embedded

import (
	"net/netip"
	"slices"
	"strings"
)

// Limits of the lists of a subnet.
const (
	maxNameservers = 5
	maxHostRoutes  = 20
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
	switch {
	case before != nil:
		if failure := checkChange(o, given, before); failure != nil {
			return failure
		}
		return s.checkGatewayFree(before, given)
	case o["subnetpool_id"] == nil && o["cidr"] == nil:
		return badResource("subnets", "a subnetpool must be specified in the absence of a cidr.")
	case o["subnetpool_id"] == nil && hasPrefixLength:
		return badResource("subnets", "cidr and prefixlen must not be supplied together.")
	case o["subnetpool_id"] == nil:
		return checkSubnet(o, given, nil)
	case hasPools:
		return badResource("subnets", "allocation_pools allowed only for specific subnet requests..")
	case o["cidr"] != nil, o["gateway_ip"] != nil:
		return badResource("subnets", "the embedded Neutron supports no cidr and gateway_ip with a subnet pool.")
	}
	return nil // a real Neutron, too, checks no more of a subnet from a subnet pool
}

// checkSubnet checks the values of a request for a subnet.
func checkSubnet(o, given, before object) *apiError {
	cidr, version := cidrOf(o), o["ip_version"].(int)
	if !isVersion(cidr.Addr(), version) {
		return invalidInput("cidr '%s' does not match the ip_version '%d'.", cidr, version)
	}
	if o["enable_dhcp"] == true && (before == nil || before["enable_dhcp"] == false) {
		if failure := checkRange(cidr); failure != nil {
			return failure
		}
	}
	gateway, ok := gatewayOf(o)
	if _, set := given["gateway_ip"]; set && ok {
		if !isVersion(gateway, version) {
			return invalidInput("gateway_ip '%s' does not match the ip_version '%d'.", gateway, version)
		}
		if !canBeGateway(cidr, gateway) {
			return invalidInput("Gateway is not valid on subnet.")
		}
	}
	if failure := checkLists(given, version); failure != nil {
		return failure
	}
	if before == nil {
		return checkModes(o, cidr, version)
	}
	if given["enable_dhcp"] == false && (o["ipv6_ra_mode"] != nil || o["ipv6_address_mode"] != nil) {
		return invalidInput("Cannot disable enable_dhcp with ipv6 attributes set.")
	}
	return nil
}

// checkChange checks an update of a subnet. It ignores what stays the same: a
// subnet from a subnet pool may have values that no update can set.
func checkChange(o, given, before object) *apiError {
	if failure := checkSubnet(o, given, before); failure != nil {
		return failure
	}
	if _, set := given["allocation_pools"]; set {
		return checkPools(o)
	}
	if _, set := given["gateway_ip"]; set {
		return checkPoolsLackGateway(o)
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
	if failure := checkPools(o); failure != nil {
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
	if cidr.Bits() == 0 {
		return invalidInput("0 is not allowed as CIDR prefix length.")
	}
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

// checkRange rejects the ranges that no subnet with DHCP can have.
func checkRange(cidr netip.Prefix) *apiError {
	longest := 126
	if cidr.Addr().Is4() {
		longest = 30
	}
	switch {
	case cidr.Bits() > longest:
		return invalidInput("Subnet has a prefix length that is incompatible with DHCP service enabled.")
	case cidr.Addr().IsMulticast() && lastAddr(cidr).IsMulticast():
		return invalidInput("Multicast IP subnet is not supported if enable_dhcp is True.")
	case cidr.Addr().IsLoopback() && lastAddr(cidr).IsLoopback():
		return invalidInput("Loopback IP subnet is not supported if enable_dhcp is True.")
	case cidr.Addr() == netip.IPv4Unspecified():
		return invalidInput("First IP '0.0.0.0' of network is not supported if enable_dhcp is True..")
	}
	return nil
}

// checkModes checks the two modes of an IPv6 subnet.
func checkModes(o object, cidr netip.Prefix, version int) *apiError {
	ra, address := o["ipv6_ra_mode"], o["ipv6_address_mode"]
	byItself := func(mode any) bool { return mode == "slaac" || mode == "dhcpv6-stateless" }
	switch {
	case version == 4 && ra != nil:
		return invalidInput("ipv6_ra_mode is not valid when ip_version is 4.")
	case version == 4 && address != nil:
		return invalidInput("ipv6_address_mode is not valid when ip_version is 4.")
	case ra == nil && address == nil:
		return nil
	case o["enable_dhcp"] == false:
		return invalidInput("ipv6_ra_mode or ipv6_address_mode cannot be set when enable_dhcp is set to False.")
	case ra != nil && address != nil && ra != address:
		return invalidInput("ipv6_ra_mode set to '%s' with ipv6_address_mode set to '%s' is not valid."+
			" If both attributes are set, they must be the same value.", ra, address)
	case (byItself(ra) || byItself(address)) && cidr.Bits() != 64:
		return invalidInput("Invalid CIDR %s for IPv6 address mode. OpenStack uses the EUI-64 address format, "+
			"which requires the prefix to be /64.", cidr)
	}
	return nil
}

// checkLists checks the name servers and host routes of a request.
func checkLists(given object, version int) *apiError {
	servers, _ := given["dns_nameservers"].([]any)
	if len(servers) > maxNameservers {
		return invalid("DNSNameServersExhausted",
			"Unable to complete operation. The number of DNS nameservers exceeds the limit %d.", maxNameservers)
	}
	for _, server := range servers {
		if !isVersion(netip.MustParseAddr(server.(string)), version) {
			return invalidInput("dns_nameserver '%s' does not match the ip_version '%d'.", server, version)
		}
	}
	routes, _ := given["host_routes"].([]any)
	if len(routes) > maxHostRoutes {
		return invalid("HostRoutesExhausted",
			"Unable to complete operation. The number of host routes exceeds the limit %d.", maxHostRoutes)
	}
	for _, route := range routes {
		nexthop, destination := route.(object)["nexthop"].(string), route.(object)["destination"].(string)
		if !isVersion(netip.MustParseAddr(nexthop), version) {
			return invalidInput("nexthop '%s' does not match the ip_version '%d'.", nexthop, version)
		}
		if !isVersion(netip.MustParsePrefix(destination).Addr(), version) {
			return invalidInput("destination '%s' does not match the ip_version '%d'.", destination, version)
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

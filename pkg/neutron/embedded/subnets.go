package embedded

import (
	"net/netip"
)

// How many of each a subnet can have.
const (
	maxNameservers = 5
	maxHostRoutes  = 20
)

func (s *Server) newSubnets(quota int) *collection {
	modes := oneOf("slaac", "dhcpv6-stateful", "dhcpv6-stateless")
	return &collection{
		name: "subnet", plural: "subnets", typeName: "Subnet",
		quota: quotaOf(quota),
		attributes: withCommon(
			attribute{name: "ip_version", post: true, required: true, check: ipVersion, filter: by(number)},
			attribute{name: "network_id", post: true, required: true, check: uuid, filter: byText},
			attribute{name: "subnetpool_id", post: true, check: noSubnetPool, filter: byText},
			attribute{name: "use_default_subnetpool", post: true, hidden: true, check: boolean},
			attribute{name: "prefixlen", post: true, hidden: true, check: number},
			attribute{name: "cidr", post: true, check: anyCIDR, filter: by(anyCIDR)},
			attribute{name: "gateway_ip", post: true, put: true, check: address, filter: byText},
			attribute{name: "allocation_pools", post: true, put: true, check: checkPools},
			attribute{name: "dns_nameservers", post: true, put: true, initial: []any{}, check: nameservers},
			attribute{name: "host_routes", post: true, put: true, initial: []any{}, check: hostRoutes},
			attribute{name: "enable_dhcp", post: true, put: true, initial: true, check: boolean, filter: by(boolean)},
			attribute{name: "ipv6_ra_mode", post: true, check: modes, filter: byText},
			attribute{name: "ipv6_address_mode", post: true, check: modes, filter: byText},
			attribute{name: "service_types", post: true, put: true, initial: []any{}, check: listOf},
			attribute{name: "shared", hidden: true, filter: by(boolean)},
		),
		validate:       validateSubnet,
		place:          s.placeSubnet,
		release:        s.releaseSubnet,
		added:          s.subnetAdded,
		dropped:        s.subnetDropped,
		touched:        s.subnetsTouched,
		emptyPutCounts: true,
		forgivesMarker: true,
		objects:        map[string]object{},
	}
}

// noSubnetPool takes null: there are no pools here.
func noSubnetPool(_ string, value any) (any, *apiError) {
	if value != nil {
		return nil, notFound("SubnetPoolNotFound", "Subnet pool %s could not be found.", text(value))
	}
	return nil, nil
}

// validateSubnet checks what has to fit together within one subnet.
func validateSubnet(o, given, before object) *apiError {
	_, hasPrefixLength := given["prefixlen"]
	switch {
	case o["cidr"] == nil:
		return badResource("subnets", "a subnetpool must be specified in the absence of a cidr.")
	case hasPrefixLength:
		return badResource("subnets", "cidr and prefixlen must not be supplied together.")
	}
	cidr, version := cidrOf(o), o["ip_version"].(int)
	if !isVersion(cidr.Addr(), version) {
		return invalidInput("cidr '%s' does not match the ip_version '%d'.", cidr, version)
	}
	if failure := checkRange(cidr, o["enable_dhcp"] == true); failure != nil {
		return failure
	}
	if gateway, ok := gatewayOf(o); ok {
		if !isVersion(gateway, version) {
			return invalidInput("gateway_ip '%s' does not match the ip_version '%d'.", gateway, version)
		}
		if !canBeGateway(cidr, gateway) {
			return invalidInput("Gateway is not valid on subnet.")
		}
	}
	if failure := checkModes(o, cidr, version); failure != nil {
		return failure
	}
	if failure := checkRoutes(o, version); failure != nil {
		return failure
	}
	if before == nil {
		return nil // the gateway and the pools are still to be found
	}
	return checkPoolsFit(cidr, o)
}

// placeSubnet finds the room for a new subnet on its network, its gateway and
// its pools.
func (s *Server) placeSubnet(o, given object) *apiError {
	networkID, cidr := o["network_id"].(string), cidrOf(o)
	network, ok := s.networks.objects[networkID]
	if !ok {
		return s.networks.missing(networkID)
	}
	for _, other := range s.subnetsOf(network) {
		if cidrOf(other).Overlaps(cidr) {
			return invalidInput("Requested subnet with cidr: %s for network: %s overlaps with another subnet.", cidr, networkID)
		}
	}
	if _, said := given["gateway_ip"]; !said {
		gateway := defaultGateway(cidr)
		if cidr.Addr().Is4() && cidr.Bits() == 31 {
			return conflict("IpamValueInvalid", "Gateway IP %s cannot be allocated in CIDR %s", gateway, cidr)
		}
		o["gateway_ip"] = gateway.String()
	}
	if pools, _ := given["allocation_pools"].([]any); len(pools) == 0 {
		o["allocation_pools"] = defaultPools(cidr, o)
		return nil
	}
	return checkPoolsFit(cidr, o)
}

// checkRange refuses ranges that no subnet can have, or none with DHCP.
func checkRange(cidr netip.Prefix, dhcp bool) *apiError {
	longest := 126
	if cidr.Addr().Is4() {
		longest = 30
	}
	if dhcp {
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
	}
	if cidr.Bits() == 0 {
		return invalidInput("0 is not allowed as CIDR prefix length.")
	}
	return nil
}

// checkModes checks the two modes of IPv6 subnets.
func checkModes(o object, cidr netip.Prefix, version int) *apiError {
	for _, mode := range []string{"ipv6_ra_mode", "ipv6_address_mode"} {
		switch {
		case o[mode] == nil:
		case version == 4:
			return invalidInput("%s is not valid when ip_version is 4.", mode)
		case o["enable_dhcp"] == false:
			return invalidInput("ipv6_ra_mode or ipv6_address_mode cannot be set when enable_dhcp is set to False.")
		case o[mode] != "dhcpv6-stateful" && cidr.Bits() != 64:
			return invalidInput("Invalid CIDR %s for IPv6 address mode. OpenStack uses the EUI-64 address format, which requires the prefix to be /64.", cidr)
		}
	}
	return nil
}

// checkRoutes checks the name servers and host routes.
func checkRoutes(o object, version int) *apiError {
	servers, routes := o["dns_nameservers"].([]any), o["host_routes"].([]any)
	if len(servers) > maxNameservers {
		return &apiError{400, "DNSNameServersExhausted",
			"Unable to complete operation for new subnet. The number of DNS nameservers exceeds the limit 5."}
	}
	if len(routes) > maxHostRoutes {
		return &apiError{400, "HostRoutesExhausted",
			"Unable to complete operation for new subnet. The number of host routes exceeds the limit 20."}
	}
	for _, server := range servers {
		if !isVersion(netip.MustParseAddr(server.(string)), version) {
			return invalidInput("dns_nameserver '%s' does not match the ip_version '%d'.", server, version)
		}
	}
	for _, route := range routes {
		nexthop := route.(object)["nexthop"].(string)
		if !isVersion(netip.MustParseAddr(nexthop), version) {
			return invalidInput("nexthop '%s' does not match the ip_version '%d'.", nexthop, version)
		}
	}
	return nil
}

// releaseSubnet refuses to delete a subnet while a port has an address of it.
// The ports that belong to Neutron itself give theirs back.
func (s *Server) releaseSubnet(o object) *apiError {
	for _, id := range s.ports.order {
		port := s.ports.objects[id]
		if !goesByItself(port) && hasAddressOf(port, o["id"]) {
			return conflict("SubnetInUse",
				"Unable to complete operation on subnet %s: One or more ports have an IP allocation from this subnet.", o["id"])
		}
	}
	return nil
}

func cidrOf(o object) netip.Prefix { return netip.MustParsePrefix(o["cidr"].(string)) }

// gatewayOf returns the gateway of a subnet; false where it has none.
func gatewayOf(o object) (netip.Addr, bool) {
	gateway, ok := o["gateway_ip"].(string)
	if !ok {
		return netip.Addr{}, false
	}
	return netip.MustParseAddr(gateway), true
}

func isVersion(address netip.Addr, version int) bool {
	return address.Is4() == (version == 4)
}

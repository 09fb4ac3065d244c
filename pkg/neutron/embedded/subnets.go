package embedded

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
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
		attributes: s.withCommon(
			attribute{name: "ip_version", post: true, required: true, check: ipVersion, filter: by(number)},
			attribute{name: "network_id", post: true, required: true, check: uuid, filter: byText},
			attribute{name: "subnetpool_id", post: true, check: subnetPoolID, filter: byText},
			attribute{name: "use_default_subnetpool", post: true, hidden: true, check: boolean, extension: "default-subnetpools"},
			attribute{name: "prefixlen", post: true, hidden: true, check: count},
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
		validate:       s.validateSubnet,
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

// subnetPoolID takes null for no subnet pool.
func subnetPoolID(name string, value any) (any, *apiError) {
	if value == nil {
		return nil, nil
	}
	return uuid(name, value)
}

// validateSubnet checks what has to fit together within one subnet.
func (s *Server) validateSubnet(o, given, before object) *apiError {
	if before != nil {
		return checkChange(o, given, before)
	}
	_, hasPrefixLength := given["prefixlen"]
	if o["cidr"] != nil && hasPrefixLength {
		return badResource("subnets", "cidr and prefixlen must not be supplied together.")
	}
	if failure := s.chooseSubnetPool(o, given); failure != nil {
		return failure
	}
	_, hasPools := given["allocation_pools"]
	switch {
	case o["subnetpool_id"] == nil && o["cidr"] == nil:
		return badResource("subnets", "a subnetpool must be specified in the absence of a cidr.")
	case o["subnetpool_id"] == nil:
		return checkSubnet(o, given, nil)
	case o["cidr"] == nil && hasPools:
		return badResource("subnets", "allocation_pools allowed only for specific subnet requests..")
	}
	return nil // Neutron does not look any closer at a subnet from a subnet pool
}

// chooseSubnetPool finds the subnet pool of a subnet that asks for the default
// one.
func (s *Server) chooseSubnetPool(o, given object) *apiError {
	if given["use_default_subnetpool"] != true {
		return nil
	}
	if o["subnetpool_id"] != nil {
		return badResource("subnets", "subnetpool_id and use_default_subnetpool cannot both be specified.")
	}
	version := o["ip_version"].(int)
	if o["cidr"] != nil {
		version = map[bool]int{true: 4, false: 6}[cidrOf(o).Addr().Is4()]
	}
	subnetPool := s.defaultSubnetPool(version)
	if subnetPool == nil {
		return badResource("subnets", "No default subnetpool found for IPv%d.", version)
	}
	o["subnetpool_id"] = subnetPool["id"]
	return nil
}

// checkSubnet checks what a request gives for a subnet that is new, or was like
// before.
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
	if _, said := given["gateway_ip"]; said {
		if failure := checkGateway(o, cidr, version); failure != nil {
			return failure
		}
	}
	if failure := checkNameservers(o, given, version); failure != nil {
		return failure
	}
	if failure := checkRoutes(o, given, version); failure != nil {
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

// checkChange checks a change of a subnet. What stays as it was is not looked
// at: a subnet from a subnet pool may have what no change can give it.
func checkChange(o, given, before object) *apiError {
	if failure := checkSubnet(o, given, before); failure != nil {
		return failure
	}
	_, hasPools := given["allocation_pools"]
	_, hasGateway := given["gateway_ip"]
	if hasPools {
		if failure := checkPoolsFit(cidrOf(o), poolsOf(o)); failure != nil {
			return failure
		}
	}
	if hasPools || hasGateway { // also where it is the same one
		if failure := checkPoolsLack(o, poolsOf(o)); failure != nil {
			return failure
		}
	}
	if routes, said := given["host_routes"].([]any); said {
		o["host_routes"] = reorder(routes, before["host_routes"].([]any))
	}
	return nil
}

// reorder returns new routes in an order that nobody can rely on: those that
// were there before come first. A real Neutron keeps them as a set.
func reorder(routes, before []any) []any {
	kept := []any{}
	for _, route := range before {
		if slices.ContainsFunc(routes, func(r any) bool { return text(r) == text(route) }) {
			kept = append(kept, route)
		}
	}
	for _, route := range slices.Backward(routes) {
		if !slices.ContainsFunc(before, func(b any) bool { return text(b) == text(route) }) {
			kept = append(kept, route)
		}
	}
	return kept
}

// placeSubnet finds the room for a new subnet, its gateway and its pools.
func (s *Server) placeSubnet(o, given object) *apiError {
	networkID := o["network_id"].(string)
	network, ok := s.networks.objects[networkID]
	if !ok {
		return s.networks.missing(networkID)
	}
	if o["cidr"] != nil {
		if failure := completeRange(o, given); failure != nil {
			return failure
		}
	}
	if id, ok := o["subnetpool_id"].(string); ok {
		subnetPool, ok := s.subnetPools.objects[id]
		if !ok {
			return s.subnetPools.missing(id)
		}
		if failure := s.takeFrom(subnetPool, o, given); failure != nil {
			return failure
		}
	}
	cidr := cidrOf(o)
	if gateway, ok := gatewayOf(o); ok && !canBeGateway(cidr, gateway) {
		return conflict("IpamValueInvalid", "Gateway IP %s cannot be allocated in CIDR %s", gateway, cidr)
	}
	if len(poolsOf(o)) == 0 {
		o["allocation_pools"] = defaultPools(cidr, o)
	}
	o["allocation_pools"] = poolObjects(sortedPools(poolsOf(o)))
	return s.checkNeighbours(network, o)
}

// completeRange gives a new subnet with a range its gateway, and checks its
// pools.
func completeRange(o, given object) *apiError {
	cidr := cidrOf(o)
	if _, said := given["gateway_ip"]; !said {
		gateway := defaultGateway(cidr)
		if !gateway.IsValid() { // there is none after the last address of all
			return internalError
		}
		o["gateway_ip"] = gateway.String()
	}
	pools := poolsOf(o)
	if gateway, ok := gatewayOf(o); ok && len(pools) == 0 && gateway.Is4() != cidr.Addr().Is4() {
		return &apiError{http.StatusBadRequest, "AddrFormatError",
			fmt.Sprintf("base address '%s' is not IPv%d", gateway, o["ip_version"])}
	}
	if failure := checkPoolsFit(cidr, pools); failure != nil {
		return failure
	}
	return checkPoolsLack(o, pools)
}

// takeFrom takes the range of a new subnet from a subnet pool: the one that it
// names, the one around its gateway, or any.
func (s *Server) takeFrom(subnetPool, o, given object) *apiError {
	if o["ip_version"] != subnetPool["ip_version"] {
		return badResource("subnets", "Cannot allocate IPv%d subnet from IPv%d subnet pool.", o["ip_version"], subnetPool["ip_version"])
	}
	bits, said := given["prefixlen"].(int)
	if !said {
		bits = subnetPool["default_prefixlen"].(int)
	}
	around := map[any]netip.Addr{4: netip.IPv4Unspecified(), 6: netip.IPv6Unspecified()}[o["ip_version"]]
	gateway, hasGateway := gatewayOf(o)
	if hasGateway {
		around = gateway
	}
	var wanted netip.Prefix
	switch {
	case o["cidr"] != nil:
		wanted = cidrOf(o)
		bits = wanted.Bits()
	case bits > around.BitLen():
		return &apiError{http.StatusBadRequest, "AddrFormatError", fmt.Sprintf("invalid IPNetwork %s/%d", around, bits)}
	case hasGateway:
		wanted = netip.PrefixFrom(gateway, bits).Masked()
	}
	if wanted.IsValid() && hasGateway && !canBeGateway(wanted, gateway) {
		return conflict("IpamValueInvalid", "Gateway IP %s cannot be allocated in CIDR %s", gateway, wanted)
	}
	cidr, failure := s.allocate(subnetPool, wanted, bits)
	if failure != nil {
		return failure
	}
	o["cidr"] = cidr.String()
	if !wanted.IsValid() { // then it is of no avail to ask for no gateway
		o["gateway_ip"] = cidr.Addr().Next().String()
	}
	return nil
}

// checkNeighbours checks that a new subnet can be on a network with the others
// there.
func (s *Server) checkNeighbours(network, o object) *apiError {
	cidr := cidrOf(o)
	if cidr.Bits() == 0 {
		return invalidInput("0 is not allowed as CIDR prefix length.")
	}
	others := s.subnetsOf(network)
	for _, other := range others {
		if cidrOf(other).Overlaps(cidr) {
			return invalidInput("Requested subnet with cidr: %s for network: %s overlaps with another subnet.", cidr, network["id"])
		}
	}
	for _, other := range others {
		if other["ip_version"] == o["ip_version"] && other["subnetpool_id"] != o["subnetpool_id"] {
			return &apiError{http.StatusBadRequest, "NetworkSubnetPoolAffinityError",
				"Subnets hosted on the same network must be allocated from the same subnet pool."}
		}
	}
	return nil
}

// checkRange refuses ranges that no subnet with DHCP can have.
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

// checkGateway checks the gateway that a subnet is to have.
func checkGateway(o object, cidr netip.Prefix, version int) *apiError {
	gateway, ok := gatewayOf(o)
	switch {
	case !ok:
		return nil
	case !isVersion(gateway, version):
		return invalidInput("gateway_ip '%s' does not match the ip_version '%d'.", gateway, version)
	case !canBeGateway(cidr, gateway):
		return invalidInput("Gateway is not valid on subnet.")
	}
	return nil
}

// checkModes checks the two modes of IPv6 subnets.
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
		return invalidInput("Invalid CIDR %s for IPv6 address mode. OpenStack uses the EUI-64 address format, which requires the prefix to be /64.", cidr)
	}
	return nil
}

// newOrID is how an error names a subnet.
func newOrID(o object) any {
	return cmp.Or(o["id"], any("new subnet"))
}

// checkNameservers checks the name servers that a request gives.
func checkNameservers(o, given object, version int) *apiError {
	servers, _ := given["dns_nameservers"].([]any)
	if len(servers) > maxNameservers {
		return &apiError{http.StatusBadRequest, "DNSNameServersExhausted", fmt.Sprintf(
			"Unable to complete operation for %v. The number of DNS nameservers exceeds the limit %d.", newOrID(o), maxNameservers)}
	}
	for _, server := range servers {
		if !isVersion(netip.MustParseAddr(server.(string)), version) {
			return invalidInput("dns_nameserver '%s' does not match the ip_version '%d'.", server, version)
		}
	}
	return nil
}

// checkRoutes checks the host routes that a request gives.
func checkRoutes(o, given object, version int) *apiError {
	routes, _ := given["host_routes"].([]any)
	if len(routes) > maxHostRoutes {
		return &apiError{http.StatusBadRequest, "HostRoutesExhausted", fmt.Sprintf(
			"Unable to complete operation for %v. The number of host routes exceeds the limit %d.", newOrID(o), maxHostRoutes)}
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

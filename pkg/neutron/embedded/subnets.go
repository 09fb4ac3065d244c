package embedded

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
)

func newSubnets(quota int) *collection {
	return &collection{
		name: "subnet", plural: "subnets", typeName: "Subnet",
		quota: quota, firstRevision: 0, objects: map[string]object{},
		attributes: common(map[string]attribute{
			"network_id":        {post: true, required: true, check: uuid("network_id")},
			"ip_version":        {post: true, required: true, check: oneOf("ip_version", 4, 6)},
			"cidr":              {post: true},
			"gateway_ip":        {post: true, put: true, check: address("gateway_ip")},
			"allocation_pools":  {post: true, put: true, check: checkPools},
			"enable_dhcp":       {post: true, put: true, fallback: true, check: boolean},
			"dns_nameservers":   {post: true, put: true, fallback: []any{}, check: list("dns_nameservers")},
			"host_routes":       {post: true, put: true, fallback: []any{}, check: list("host_routes")},
			"service_types":     {post: true, put: true, fallback: []any{}, check: list("service_types")},
			"ipv6_ra_mode":      {post: true},
			"ipv6_address_mode": {post: true},
			"subnetpool_id":     {},
		}),
		prepare: prepareSubnet,
		remove:  removeSubnet,
	}
}

// pool is a range of addresses, both ends included.
type pool struct{ start, end netip.Addr }

func (p pool) String() string { return p.start.String() + "-" + p.end.String() }

func (p pool) has(address netip.Addr) bool {
	return !address.Less(p.start) && !p.end.Less(address)
}

// checkPools takes a list of {"start": …, "end": …} and keeps it as it is.
func checkPools(value any) (any, *apiError) {
	items, ok := value.([]any)
	if !ok {
		return nil, badRequest("Invalid data format for IP pool: '%v'.", value)
	}
	for _, item := range items {
		member, _ := item.(object)
		start, _ := member["start"].(string)
		end, _ := member["end"].(string)
		first, errFirst := netip.ParseAddr(start)
		last, errLast := netip.ParseAddr(end)
		if len(member) != 2 || errFirst != nil || errLast != nil {
			return nil, badRequest("Invalid input for allocation_pools. Reason: Invalid data format for IP pool: '%v'.", item)
		}
		if last.Less(first) || first.Is4() != last.Is4() {
			return nil, &apiError{http.StatusBadRequest, "InvalidAllocationPool",
				fmt.Sprintf("The allocation pool {'start': '%s', 'end': '%s'} is not valid.", start, end)}
		}
	}
	return items, nil
}

func prepareSubnet(s *Server, o, given, before object) *apiError {
	if before == nil {
		if failure := s.placeSubnet(o); failure != nil {
			return failure
		}
	}
	cidr := netip.MustParsePrefix(o["cidr"].(string))
	if _, said := given["gateway_ip"]; !said && before == nil {
		o["gateway_ip"] = defaultGateway(cidr).String()
	}
	gateway, hasGateway := gatewayOf(o)
	if hasGateway && !canBeGateway(cidr, gateway) {
		return invalidInput("Gateway is not valid on subnet.")
	}
	if _, said := given["allocation_pools"]; !said && before == nil {
		o["allocation_pools"] = defaultPools(cidr, gateway)
	}
	pools := poolsOf(o)
	if failure := poolsFit(cidr, pools); failure != nil {
		return failure
	}
	for _, p := range pools {
		if hasGateway && p.has(gateway) {
			return &apiError{http.StatusConflict, "GatewayConflictWithAllocationPools",
				fmt.Sprintf("Gateway ip %s conflicts with allocation pool %s.", gateway, p)}
		}
	}
	return nil
}

// placeSubnet checks that a network has room for a new subnet, and drops the
// host bits of its CIDR.
func (s *Server) placeSubnet(o object) *apiError {
	network, ok := s.collections["networks"].objects[o["network_id"].(string)]
	if !ok {
		return s.collections["networks"].missing(o["network_id"].(string))
	}
	if o["cidr"] == nil {
		return &apiError{http.StatusBadRequest, "BadRequest", "Bad subnets request: a subnetpool must be specified in the absence of a cidr."}
	}
	cidr, err := netip.ParsePrefix(fmt.Sprint(o["cidr"]))
	if err != nil {
		return invalidInput("%v is not in a CIDR format.", o["cidr"])
	}
	if cidr.Addr().Is4() != (o["ip_version"] == 4) {
		return invalidInput("cidr '%v' does not match the ip_version '%v'.", o["cidr"], o["ip_version"])
	}
	cidr = cidr.Masked()
	o["cidr"] = cidr.String()
	if failure := allowsDHCP(cidr); o["enable_dhcp"] == true && failure != nil {
		return failure
	}
	for _, other := range s.subnetsOf(network["id"].(string)) {
		if netip.MustParsePrefix(other["cidr"].(string)).Overlaps(cidr) {
			return invalidInput("Requested subnet with cidr: %s for network: %s overlaps with another subnet.", cidr, network["id"])
		}
	}
	return nil
}

// allowsDHCP says why a range cannot have addresses given out by DHCP.
func allowsDHCP(cidr netip.Prefix) *apiError {
	longest := 126
	if cidr.Addr().Is4() {
		longest = 30
	}
	switch {
	case cidr.Bits() == 0 && cidr.Addr().Is6():
		return invalidInput("0 is not allowed as CIDR prefix length.")
	case cidr.Bits() > longest:
		return invalidInput("Subnet has a prefix length that is incompatible with DHCP service enabled.")
	case cidr.Addr().IsMulticast():
		return invalidInput("Multicast IP subnet is not supported if enable_dhcp is True.")
	case cidr.Addr().IsLoopback():
		return invalidInput("Loopback IP subnet is not supported if enable_dhcp is True.")
	case cidr.Addr() == netip.IPv4Unspecified():
		return invalidInput("First IP '0.0.0.0' of network is not supported if enable_dhcp is True..")
	}
	return nil
}

// defaultGateway returns the gateway of a subnet for which none is given: for
// IPv4 the first address of a host, for IPv6 the network address itself, which
// all routers of a subnet have (RFC 4291, section 2.6.1).
func defaultGateway(cidr netip.Prefix) netip.Addr {
	if cidr.Addr().Is6() {
		return cidr.Addr()
	}
	return cidr.Addr().Next()
}

// canBeGateway tells whether Neutron accepts a gateway: also one that is not
// inside the subnet, but not one that no host can have.
func canBeGateway(cidr netip.Prefix, gateway netip.Addr) bool {
	return gateway.Is6() || gateway != cidr.Addr() && gateway != lastAddr(cidr)
}

// defaultPools returns all addresses of hosts, but for the gateway.
func defaultPools(cidr netip.Prefix, gateway netip.Addr) []any {
	all := pool{cidr.Addr().Next(), lastAddr(cidr)}
	if cidr.Addr().Is4() {
		all.end = all.end.Prev()
	}
	parts := []pool{all}
	if gateway.IsValid() && all.has(gateway) {
		parts = []pool{{all.start, gateway.Prev()}, {gateway.Next(), all.end}}
	}
	pools := []any{}
	for _, p := range parts {
		if p.end.IsValid() && p.start.IsValid() && !p.end.Less(p.start) {
			pools = append(pools, object{"start": p.start.String(), "end": p.end.String()})
		}
	}
	return pools
}

// poolsFit checks that pools are inside a subnet and apart from each other.
func poolsFit(cidr netip.Prefix, pools []pool) *apiError {
	slices.SortFunc(pools, func(a, b pool) int { return a.start.Compare(b.start) })
	for i, p := range pools {
		if !cidr.Contains(p.start) || !cidr.Contains(p.end) {
			return &apiError{http.StatusBadRequest, "OutOfBoundsAllocationPool",
				fmt.Sprintf("The allocation pool %s spans beyond the subnet cidr %s.", p, cidr)}
		}
		if i > 0 && !pools[i-1].end.Less(p.start) {
			return &apiError{http.StatusConflict, "OverlappingAllocationPools",
				fmt.Sprintf("Found overlapping allocation pools: %s %s for subnet %s.", pools[i-1], p, cidr)}
		}
	}
	return nil
}

// removeSubnet refuses to take away a subnet that a port has an address of.
func removeSubnet(s *Server, o object) *apiError {
	for _, port := range s.collections["ports"].objects {
		for _, fixed := range port["fixed_ips"].([]any) {
			if fixed.(object)["subnet_id"] == o["id"] {
				return &apiError{http.StatusConflict, "SubnetInUse", fmt.Sprintf(
					"Unable to complete operation on subnet %s: One or more ports have an IP allocation from this subnet.", o["id"])}
			}
		}
	}
	return nil
}

func (s *Server) subnetsOf(networkID string) []object {
	subnets := s.collections["subnets"]
	var found []object
	for _, id := range subnets.order {
		if subnets.objects[id]["network_id"] == networkID {
			found = append(found, subnets.objects[id])
		}
	}
	return found
}

func gatewayOf(o object) (netip.Addr, bool) {
	text, _ := o["gateway_ip"].(string)
	gateway, err := netip.ParseAddr(text)
	return gateway, err == nil
}

func poolsOf(o object) []pool {
	items, _ := o["allocation_pools"].([]any)
	var pools []pool
	for _, item := range items {
		pools = append(pools, pool{
			netip.MustParseAddr(item.(object)["start"].(string)),
			netip.MustParseAddr(item.(object)["end"].(string)),
		})
	}
	return pools
}

// lastAddr returns the last address of a range without host bits.
func lastAddr(cidr netip.Prefix) netip.Addr {
	bytes := cidr.Addr().AsSlice()
	for bit := cidr.Bits(); bit < 8*len(bytes); bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

package embedded

import (
	"net/http"
	"net/netip"
	"slices"
)

// checkPools takes a list of {"start": …, "end": …}.
func checkPools(name string, value any) (any, *apiError) {
	items, ok := value.([]any)
	if !ok {
		return nil, wrong(name, "Invalid data format for IP pool: '%s'.", text(value))
	}
	var pools []pool
	for _, item := range items {
		if failure := checkKeys(name, item, "start", "end"); failure != nil {
			return nil, failure
		}
		start, failure := parseAddress(name, item.(object)["start"])
		if failure != nil {
			return nil, failure
		}
		end, failure := parseAddress(name, item.(object)["end"])
		if failure != nil {
			return nil, failure
		}
		pools = append(pools, pool{start, end})
	}
	return poolObjects(pools), nil
}

func poolObjects(pools []pool) []any {
	items := []any{}
	for _, p := range pools {
		items = append(items, object{"start": p.start.String(), "end": p.end.String()})
	}
	return items
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

// sortedPools returns pools in the order of their addresses.
func sortedPools(pools []pool) []pool {
	return slices.SortedFunc(slices.Values(pools), func(a, b pool) int { return a.start.Compare(b.start) })
}

// checkPoolsFit checks that the pools of a subnet are inside it and apart from
// each other.
func checkPoolsFit(cidr netip.Prefix, pools []pool) *apiError {
	hosts := hostsOf(cidr)
	if cidr.Addr().Is6() {
		hosts.start = cidr.Addr().Next() // also where that leaves none
	}
	for _, p := range pools {
		switch {
		case p.start.BitLen() != p.end.BitLen() || p.end.Less(p.start):
			return &apiError{http.StatusBadRequest, "InvalidAllocationPool",
				"The allocation pool {'start': '" + p.start.String() + "', 'end': '" + p.end.String() + "'} is not valid."}
		case p.start.BitLen() != cidr.Addr().BitLen():
			return &apiError{http.StatusBadRequest, "InvalidAllocationPool", "The allocation pool " + p.String() + " is not valid."}
		case !hosts.has(p.start) || !hosts.has(p.end):
			return &apiError{http.StatusBadRequest, "OutOfBoundsAllocationPool",
				"The allocation pool " + p.String() + " spans beyond the subnet cidr " + cidr.String() + "."}
		}
	}
	sorted := sortedPools(pools)
	for i := 1; i < len(sorted); i++ {
		if !sorted[i-1].end.Less(sorted[i].start) {
			return conflict("OverlappingAllocationPools",
				"Found overlapping allocation pools: %s %s for subnet %s.", sorted[i-1], sorted[i], cidr)
		}
	}
	return nil
}

// checkPoolsLack checks that no pool has the gateway of a subnet.
func checkPoolsLack(o object, pools []pool) *apiError {
	gateway, ok := gatewayOf(o)
	for _, p := range pools {
		if ok && p.has(gateway) {
			return conflict("GatewayConflictWithAllocationPools", "Gateway ip %s conflicts with allocation pool %s.", gateway, p)
		}
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

// canBeGateway reports whether Neutron accepts a gateway: also one that is not
// inside the subnet, but not one that no host can have.
func canBeGateway(cidr netip.Prefix, gateway netip.Addr) bool {
	return gateway.Is6() || gateway != cidr.Addr() && gateway != lastAddr(cidr)
}

// hostsOf returns the addresses that hosts can have: for IPv4 all but the first
// and the last, for IPv6 all but the first. Ranges too small for that have no
// others.
func hostsOf(cidr netip.Prefix) pool {
	all := pool{cidr.Addr(), lastAddr(cidr)}
	if host := cidr.Addr().BitLen() - cidr.Bits(); host == 0 || host == 1 && cidr.Addr().Is4() {
		return all
	}
	all.start = all.start.Next()
	if cidr.Addr().Is4() {
		all.end = all.end.Prev()
	}
	return all
}

// defaultPools returns all addresses of hosts, but for the gateway. (A real
// Neutron, too, leaves it in where the subnet has no other address.)
func defaultPools(cidr netip.Prefix, o object) []any {
	all := hostsOf(cidr)
	gateway, ok := gatewayOf(o)
	if !ok || !all.has(gateway) || cidr.IsSingleIP() {
		return poolObjects([]pool{all})
	}
	var parts []pool
	if gateway != all.start {
		parts = append(parts, pool{all.start, gateway.Prev()})
	}
	if gateway != all.end {
		parts = append(parts, pool{gateway.Next(), all.end})
	}
	return poolObjects(parts)
}

package embedded

import (
	"net/netip"
	"slices"
)

// pool is a range of addresses, with both ends, such as an allocation pool.
type pool struct{ start, end netip.Addr }

func (p pool) String() string { return p.start.String() + "-" + p.end.String() }

func (p pool) has(address netip.Addr) bool {
	return p.start.BitLen() == address.BitLen() && !address.Less(p.start) && !p.end.Less(address)
}

func (p pool) object() object { return object{"start": p.start.String(), "end": p.end.String()} }

// allocationPool accepts {"start": …, "end": …}.
func allocationPool(name string, value any) (any, *apiError) {
	first, last, failure := pair(name, value, "start", "end")
	if failure != nil {
		return nil, failure
	}
	start, failure := parseAddress(name, first)
	if failure != nil {
		return nil, failure
	}
	end, failure := parseAddress(name, last)
	return pool{start, end}.object(), failure
}

// poolsOf returns the allocation pools of a subnet, in order.
func poolsOf(o object) []pool {
	items, _ := o["allocation_pools"].([]any)
	var pools []pool
	for _, item := range items {
		pools = append(pools, pool{
			netip.MustParseAddr(item.(object)["start"].(string)),
			netip.MustParseAddr(item.(object)["end"].(string)),
		})
	}
	slices.SortFunc(pools, func(a, b pool) int { return a.start.Compare(b.start) })
	return pools
}

// setPools sets the allocation pools of a subnet.
func setPools(o object, pools []pool) {
	items := []any{}
	for _, p := range pools {
		items = append(items, p.object())
	}
	o["allocation_pools"] = items
}

// checkPoolsLackGateway rejects an allocation pool of a subnet with its gateway.
func checkPoolsLackGateway(o object) *apiError {
	gateway, ok := gatewayOf(o)
	for _, p := range poolsOf(o) {
		if ok && p.has(gateway) {
			return conflict("GatewayConflictWithAllocationPools", "Gateway ip %s conflicts with allocation pool %s.", gateway, p)
		}
	}
	return nil
}

// defaultPools returns all addresses for hosts except the gateway. (As in a real
// Neutron, a range of one address keeps it.)
func defaultPools(o object) []pool {
	cidr := cidrOf(o)
	all := hostsOf(cidr)
	gateway, ok := gatewayOf(o)
	if !ok || !all.has(gateway) || cidr.IsSingleIP() {
		return []pool{all}
	}
	var parts []pool
	if gateway != all.start {
		parts = append(parts, pool{all.start, gateway.Prev()})
	}
	if gateway != all.end {
		parts = append(parts, pool{gateway.Next(), all.end})
	}
	return parts
}

// hostsOf returns the addresses for hosts: for IPv4 all but the first and the
// last, for IPv6 all but the first. The smallest ranges have no other addresses.
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

// lastAddr returns the last address of a range without host bits.
func lastAddr(cidr netip.Prefix) netip.Addr {
	bytes := cidr.Addr().AsSlice()
	for bit := cidr.Bits(); bit < 8*len(bytes); bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

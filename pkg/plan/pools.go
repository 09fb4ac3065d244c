package plan

import (
	"net/netip"
	"slices"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Pools returns the allocation pools that Neutron itself would give a subnet:
// all addresses that a port can have, but for the gateway (the zero Addr for
// none). Neutron takes another gateway only together with pools that leave it
// out.
func Pools(cidr netip.Prefix, gateway netip.Addr) []neutron.Pool {
	return leaveOut([]neutron.Pool{hostsOf(cidr)}, gateway)
}

// leaveOut returns pools without an address; the zero Addr for none.
func leaveOut(pools []neutron.Pool, address netip.Addr) []neutron.Pool {
	var rest []neutron.Pool
	for _, pool := range pools {
		if !address.IsValid() || !has(pool, address) {
			rest = append(rest, pool)
			continue
		}
		if pool.Start.Less(address) {
			rest = append(rest, neutron.Pool{Start: pool.Start, End: address.Prev()})
		}
		if address.Less(pool.End) {
			rest = append(rest, neutron.Pool{Start: address.Next(), End: pool.End})
		}
	}
	return rest
}

// samePools reports whether pools have the same addresses.
func samePools(a, b []neutron.Pool) bool { return slices.Equal(joined(a), joined(b)) }

// joined returns the pools in their order, as one where one ends just before the
// next one.
func joined(pools []neutron.Pool) []neutron.Pool {
	sorted := slices.SortedFunc(slices.Values(pools), func(a, b neutron.Pool) int { return a.Start.Compare(b.Start) })
	var all []neutron.Pool
	for _, pool := range sorted {
		if last := len(all) - 1; last >= 0 && all[last].End.Next() == pool.Start {
			all[last].End = pool.End
			continue
		}
		all = append(all, pool)
	}
	return all
}

// hostsOf returns the addresses that hosts can have: for IPv4 all but the
// network address and the broadcast address, for IPv6 all but the first one.
// Ranges too small for that have no others.
func hostsOf(cidr netip.Prefix) neutron.Pool {
	hosts := neutron.Pool{Start: cidr.Masked().Addr(), End: lastAddr(cidr)}
	if left := cidr.Addr().BitLen() - cidr.Bits(); left == 0 || left == 1 && cidr.Addr().Is4() {
		return hosts
	}
	hosts.Start = hosts.Start.Next()
	if cidr.Addr().Is4() {
		hosts.End = hosts.End.Prev()
	}
	return hosts
}

func has(pool neutron.Pool, address netip.Addr) bool {
	return pool.Start.BitLen() == address.BitLen() && !address.Less(pool.Start) && !pool.End.Less(address)
}

// lastAddr returns the last address of a range: for IPv4 the broadcast address.
func lastAddr(cidr netip.Prefix) netip.Addr {
	bytes := cidr.Masked().Addr().AsSlice()
	for bit := cidr.Bits(); bit < 8*len(bytes); bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

package plan

import (
	"net/netip"
	"slices"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Pools returns the allocation pools that Neutron gives a subnet by default: all
// host addresses except the gateway, which is the zero Addr for none. Neutron
// changes a gateway only together with pools that exclude it.
func Pools(cidr netip.Prefix, gateway netip.Addr) []neutron.Pool {
	return poolsWithout([]neutron.Pool{hostRange(cidr)}, gateway)
}

// poolsWithout returns the pools without an address, which is the zero Addr for
// none.
func poolsWithout(pools []neutron.Pool, address netip.Addr) []neutron.Pool {
	var rest []neutron.Pool
	for _, pool := range pools {
		if !poolContains(pool, address) {
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

func samePools(a, b []neutron.Pool) bool {
	return slices.Equal(a, b) || slices.Equal(mergePools(a), mergePools(b)) // mostly equal as they are
}

func mergePools(pools []neutron.Pool) []neutron.Pool {
	var merged []neutron.Pool
	for _, pool := range slices.SortedFunc(slices.Values(pools), compareStart) {
		if last := len(merged) - 1; last >= 0 && merged[last].End.Next() == pool.Start {
			merged[last].End = pool.End
		} else {
			merged = append(merged, pool)
		}
	}
	return merged
}

func compareStart(a, b neutron.Pool) int { return a.Start.Compare(b.Start) }

// hostRange returns the addresses that hosts can have: for IPv4 all except the
// network address and the broadcast address, for IPv6 all except the first one.
// Hosts can have every address of a range of one address, and of an IPv4 range
// of two.
func hostRange(cidr netip.Prefix) neutron.Pool {
	hosts := neutron.Pool{Start: cidr.Masked().Addr(), End: lastAddr(cidr)}
	if hosts.Start == hosts.End || hosts.Start.Is4() && hosts.Start.Next() == hosts.End {
		return hosts
	}
	hosts.Start = hosts.Start.Next()
	if hosts.Start.Is4() {
		hosts.End = hosts.End.Prev()
	}
	return hosts
}

// poolContains reports whether a pool contains an address. No pool contains the zero Addr,
// nor an address of the other IP version: all of one version are less than those of the other.
func poolContains(pool neutron.Pool, address netip.Addr) bool {
	return !address.Less(pool.Start) && !pool.End.Less(address)
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

func isPartOf(cidr netip.Prefix, ranges ...string) bool {
	return slices.ContainsFunc(ranges, func(text string) bool {
		whole := netip.MustParsePrefix(text)
		return whole.Contains(cidr.Addr()) && whole.Bits() <= cidr.Bits()
	})
}

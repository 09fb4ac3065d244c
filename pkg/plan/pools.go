package plan

import (
	"net/netip"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Pools returns the allocation pools that Neutron itself would give a subnet:
// all addresses that a port can have, but for the gateway. Neutron takes
// another gateway only together with pools that leave it out.
func Pools(cidr netip.Prefix, gateway netip.Addr) []neutron.Pool {
	first, last := cidr.Masked().Addr().Next(), lastAddr(cidr)
	if last.Is4() {
		last = last.Prev() // the broadcast address
	}
	if !gateway.IsValid() || gateway.Less(first) || last.Less(gateway) {
		return []neutron.Pool{{Start: first, End: last}}
	}
	var pools []neutron.Pool
	if first.Less(gateway) {
		pools = append(pools, neutron.Pool{Start: first, End: gateway.Prev()})
	}
	if gateway.Less(last) {
		pools = append(pools, neutron.Pool{Start: gateway.Next(), End: last})
	}
	return pools
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

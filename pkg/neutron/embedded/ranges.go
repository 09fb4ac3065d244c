package embedded

import (
	"net/netip"
	"slices"
)

// pool is a range of addresses, both ends included.
type pool struct{ start, end netip.Addr }

func (p pool) String() string { return p.start.String() + "-" + p.end.String() }

func (p pool) has(address netip.Addr) bool {
	return p.start.BitLen() == address.BitLen() && !address.Less(p.start) && !p.end.Less(address)
}

// rangeOf returns all addresses of a prefix.
func rangeOf(prefix netip.Prefix) pool {
	return pool{prefix.Addr(), lastAddr(prefix)}
}

// rangesOf returns the addresses of prefixes, in order, each once.
func rangesOf(prefixes []netip.Prefix) []pool {
	var merged []pool
	for _, prefix := range slices.SortedFunc(slices.Values(prefixes), netip.Prefix.Compare) {
		next := rangeOf(prefix)
		if len(merged) == 0 {
			merged = append(merged, next)
			continue
		}
		switch last := &merged[len(merged)-1]; {
		case last.has(next.start):
			if last.end.Less(next.end) {
				last.end = next.end
			}
		case last.end.Next() == next.start:
			last.end = next.end
		default:
			merged = append(merged, next)
		}
	}
	return merged
}

// without returns the addresses of ranges that others don't have. Both are in
// order.
func without(ranges, others []pool) []pool {
	var left []pool
	for _, r := range ranges {
		for _, other := range others {
			if other.end.Less(r.start) || r.end.Less(other.start) {
				continue
			}
			if r.start.Less(other.start) {
				left = append(left, pool{r.start, other.start.Prev()})
			}
			r.start = other.end.Next()
			if !r.start.IsValid() || r.end.Less(r.start) {
				r = pool{}
				break
			}
		}
		if r.start.IsValid() {
			left = append(left, r)
		}
	}
	return left
}

// prefixesOf returns the fewest prefixes that have the addresses of ranges, in
// order.
func prefixesOf(ranges []pool) []netip.Prefix {
	var prefixes []netip.Prefix
	for _, r := range ranges {
		for start := r.start; start.IsValid() && r.has(start); {
			prefix := widestAt(start, r.end)
			prefixes = append(prefixes, prefix)
			start = lastAddr(prefix).Next()
		}
	}
	return prefixes
}

// widestAt returns the shortest prefix that begins with one address and does not
// go past another.
func widestAt(start, end netip.Addr) netip.Prefix {
	for bits := range start.BitLen() {
		prefix := netip.PrefixFrom(start, bits)
		if prefix.Masked().Addr() == start && !end.Less(lastAddr(prefix)) {
			return prefix
		}
	}
	return netip.PrefixFrom(start, start.BitLen())
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

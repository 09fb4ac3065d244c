package embedded

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
)

// bounds are the attributes that limit the prefix lengths of a subnet pool.
var bounds = []string{"default_prefixlen", "min_prefixlen", "max_prefixlen"}

func (s *Server) newSubnetPools() *collection {
	return newCollection(collection{
		name: "subnetpool", plural: "subnetpools", typeName: "SubnetPool", title: "Subnet pool",
		attributes: s.withCommon(
			attribute{name: "name", post: true, put: true, required: true, check: shortText, filter: byText},
			attribute{name: "prefixes", post: true, put: true, required: true, check: listOf(anyCIDR)},
			attribute{name: "ip_version", filter: by(number)},
			attribute{name: "default_prefixlen", post: true, put: true, check: count, filter: by(number)},
			attribute{name: "min_prefixlen", post: true, put: true, check: count, filter: by(number)},
			attribute{name: "max_prefixlen", post: true, put: true, check: count, filter: by(number)},
			attribute{name: "default_quota"},
			attribute{name: "is_default", initial: false, filter: by(boolean)},
			attribute{name: "shared", post: true, initial: false, check: boolean, filter: by(boolean)},
			attribute{name: "address_scope_id"},
		),
		validate:       validateSubnetPool,
		release:        s.releaseSubnetPool,
		shown:          shownSubnetPool,
		forgivesMarker: true,
	})
}

// validateSubnetPool checks a subnet pool, and completes a new one.
func validateSubnetPool(o, _, _ object) *apiError {
	prefixes := prefixesOf(o)
	if len(prefixes) == 0 {
		return invalid("EmptySubnetPoolPrefixList", "Empty subnet pool prefix list.")
	}
	version, shortest, longest := 4, 8, 32
	if prefixes[0].Addr().Is6() {
		version, shortest, longest = 6, 64, 128
	}
	o["ip_version"], o["min_prefixlen"] = version, orDefault(o["min_prefixlen"], shortest)
	o["max_prefixlen"] = orDefault(o["max_prefixlen"], longest)
	o["default_prefixlen"] = orDefault(o["default_prefixlen"], o["min_prefixlen"].(int))
	for _, prefix := range prefixes {
		if prefix.Addr().BitLen() != longest || o["max_prefixlen"].(int) > longest {
			return invalid("IllegalSubnetPoolPrefixBounds", "Illegal prefix bounds: the prefix %s, max_prefixlen=%d.", prefix,
				o["max_prefixlen"])
		}
	}
	return nil
}

func orDefault(value any, initial int) any {
	if value == nil {
		return initial
	}
	return value
}

func prefixesOf(subnetPool object) []netip.Prefix {
	var prefixes []netip.Prefix
	for _, text := range subnetPool["prefixes"].([]any) {
		prefixes = append(prefixes, netip.MustParsePrefix(text.(string)))
	}
	slices.SortFunc(prefixes, netip.Prefix.Compare)
	return prefixes
}

// releaseSubnetPool rejects the deletion of a subnet pool with subnets.
func (s *Server) releaseSubnetPool(o object) *apiError {
	if len(s.rangesFrom(o)) > 0 {
		return invalid("SubnetPoolDeleteError", "Unable to delete subnet pool: Subnet pool has existing allocations.")
	}
	return nil
}

// rangesFrom returns the ranges of the subnets from a subnet pool.
func (s *Server) rangesFrom(subnetPool object) []netip.Prefix {
	var ranges []netip.Prefix
	for _, subnet := range s.subnets.objects {
		if subnet["subnetpool_id"] == subnetPool["id"] {
			ranges = append(ranges, cidrOf(subnet))
		}
	}
	return ranges
}

// shownSubnetPool quotes the prefix lengths, as a real Neutron does.
func shownSubnetPool(o object) object {
	shown := maps.Clone(o)
	for _, name := range bounds {
		shown[name] = strconv.Itoa(o[name].(int))
	}
	return shown
}

// allocate returns the first free range of a length in a subnet pool.
func (s *Server) allocate(subnetPool object, bits int) (netip.Prefix, *apiError) {
	least, most := subnetPool["min_prefixlen"].(int), subnetPool["max_prefixlen"].(int)
	switch {
	case bits > most:
		return netip.Prefix{}, invalid("MaxPrefixSubnetAllocationError",
			"Unable to allocate subnet with prefix length %d, maximum allowed prefix is %d.", bits, most)
	case bits < least:
		return netip.Prefix{}, invalid("MinPrefixSubnetAllocationError",
			"Unable to allocate subnet with prefix length %d, minimum allowed prefix is %d.", bits, least)
	}
	taken := s.rangesFrom(subnetPool)
	for _, prefix := range prefixesOf(subnetPool) {
		start := prefix.Addr()
		for prefix.Bits() <= bits && prefix.Contains(start) {
			free := netip.PrefixFrom(start, bits)
			i := slices.IndexFunc(taken, free.Overlaps)
			if i < 0 {
				return free, nil
			}
			// Skip the larger of the two ranges.
			start = lastAddr(free).Next()
			if taken[i].Bits() < bits {
				start = lastAddr(taken[i]).Next()
			}
		}
	}
	return netip.Prefix{}, &apiError{http.StatusInternalServerError, "SubnetAllocationError", fmt.Sprintf(
		"Failed to allocate subnet: Insufficient prefix space to allocate subnet size /%d.", bits)}
}

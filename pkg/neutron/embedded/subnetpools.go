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
func validateSubnetPool(o, _, before object) *apiError {
	prefixes := prefixesOf(o)
	if len(prefixes) == 0 {
		return &apiError{http.StatusBadRequest, "EmptySubnetPoolPrefixList", "Empty subnet pool prefix list."}
	}
	longest := prefixes[0].Addr().BitLen()
	if slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Addr().BitLen() != longest }) {
		return &apiError{http.StatusBadRequest, "PrefixVersionMismatch", "Cannot mix IPv4 and IPv6 prefixes in a subnet pool."}
	}
	if before != nil {
		for _, old := range prefixesOf(before) {
			if !slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(old.Addr()) && p.Bits() <= old.Bits() }) {
				return &apiError{http.StatusBadRequest, "IllegalSubnetPoolPrefixUpdate",
					"Illegal update to prefixes: Existing prefixes must be a subset of the new prefixes."}
			}
		}
	}
	o["ip_version"], o["min_prefixlen"] = 4, orDefault(o["min_prefixlen"], 8)
	if longest == 128 {
		o["ip_version"], o["min_prefixlen"] = 6, orDefault(o["min_prefixlen"], 64)
	}
	o["max_prefixlen"] = orDefault(o["max_prefixlen"], longest)
	o["default_prefixlen"] = orDefault(o["default_prefixlen"], o["min_prefixlen"].(int))
	normal, least, most := o["default_prefixlen"].(int), o["min_prefixlen"].(int), o["max_prefixlen"].(int)
	if normal < least || most < normal || longest < most {
		return &apiError{http.StatusBadRequest, "IllegalSubnetPoolPrefixBounds", fmt.Sprintf(
			"Illegal prefix bounds: min_prefixlen=%d, default_prefixlen=%d, max_prefixlen=%d, ip_version_max=%d.", least, normal, most, longest)}
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
		return &apiError{http.StatusBadRequest, "SubnetPoolDeleteError", "Unable to delete subnet pool: Subnet pool has existing allocations."}
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

// allocate returns the first free range of a length in a subnet pool, or the
// wanted one if that is valid and free.
func (s *Server) allocate(subnetPool object, wanted netip.Prefix, bits int) (netip.Prefix, *apiError) {
	least, most := subnetPool["min_prefixlen"].(int), subnetPool["max_prefixlen"].(int)
	switch {
	case bits > most:
		return netip.Prefix{}, &apiError{http.StatusBadRequest, "MaxPrefixSubnetAllocationError",
			fmt.Sprintf("Unable to allocate subnet with prefix length %d, maximum allowed prefix is %d.", bits, most)}
	case bits < least:
		return netip.Prefix{}, &apiError{http.StatusBadRequest, "MinPrefixSubnetAllocationError",
			fmt.Sprintf("Unable to allocate subnet with prefix length %d, minimum allowed prefix is %d.", bits, least)}
	}
	taken := s.rangesFrom(subnetPool)
	for _, prefix := range prefixesOf(subnetPool) {
		start := prefix.Addr()
		if wanted.IsValid() {
			start = wanted.Addr()
		}
		for prefix.Bits() <= bits && prefix.Contains(start) {
			free := netip.PrefixFrom(start, bits)
			i := slices.IndexFunc(taken, free.Overlaps)
			if i < 0 {
				return free, nil
			}
			if wanted.IsValid() {
				break
			}
			// Continue after the longer range of the two.
			start = lastAddr(free).Next()
			if taken[i].Bits() < bits {
				start = lastAddr(taken[i]).Next()
			}
		}
	}
	reason := fmt.Sprintf("Insufficient prefix space to allocate subnet size /%d", bits)
	if wanted.IsValid() {
		reason = "Cannot allocate requested subnet from the available set of prefixes"
	}
	return netip.Prefix{}, &apiError{http.StatusInternalServerError, "SubnetAllocationError", "Failed to allocate subnet: " + reason + "."}
}

package embedded

import (
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// family is what subnet pools of an IP version have in common.
type family struct {
	longest   int // prefix
	minimum   int // prefix length where none is given
	quotaUnit int // a quota counts prefixes of this length
}

var families = map[int]family{4: {32, 8, 32}, 6: {128, 64, 64}}

// boundNames are the attributes that say how long prefixes can be. They are kept
// as numbers and shown as strings.
var boundNames = []string{"default_prefixlen", "min_prefixlen", "max_prefixlen"}

func (s *Server) newSubnetPools() *collection {
	return &collection{
		name: "subnetpool", plural: "subnetpools", typeName: "SubnetPool", title: "Subnet pool",
		quota: unlimited,
		attributes: s.withCommon(
			attribute{name: "name", post: true, put: true, required: true, check: filledText, filter: byText},
			attribute{name: "prefixes", post: true, put: true, required: true, check: prefixList},
			attribute{name: "default_quota", post: true, put: true, check: count, filter: by(number)},
			attribute{name: "ip_version", filter: byNumberOrNone},
			attribute{name: "default_prefixlen", post: true, put: true, check: count, filter: by(number)},
			attribute{name: "min_prefixlen", post: true, put: true, check: count, filter: by(number)},
			attribute{name: "max_prefixlen", post: true, put: true, check: count, filter: by(number)},
			attribute{name: "is_default", post: true, put: true, initial: false, check: boolean, filter: by(boolean)},
			attribute{name: "shared", post: true, initial: false, check: boolean, filter: by(boolean)},
			attribute{name: "address_scope_id", post: true, put: true, check: addressScope, filter: byText},
		),
		validate: s.validateSubnetPool,
		place:    func(object, object) *apiError { return nil },
		release:  s.releaseSubnetPool,
		added:    nothing, dropped: nothing, touched: nothings,
		shown: shownSubnetPool, shownUpdated: shownUpdatedSubnetPool,
		noBulk:         true,
		wholeAnswers:   true,
		emptyPutCounts: true,
		forgivesMarker: true,
		objects:        map[string]object{},
	}
}

func filledText(name string, value any) (any, *apiError) {
	s, ok := value.(string)
	switch {
	case !ok:
		return nil, wrong(name, "'%s' is not a valid string.", text(value))
	case strings.TrimSpace(s) == "":
		return nil, wrong(name, "'%s' Blank strings are not permitted.", s)
	}
	return s, nil
}

// addressScope takes null: there are no address scopes here.
func addressScope(name string, value any) (any, *apiError) {
	if value == nil {
		return nil, nil
	}
	id, failure := uuid(name, value)
	if failure != nil {
		return nil, failure
	}
	return nil, notFound("AddressScopeNotFound", "Address scope %s could not be found.", id)
}

// prefixList takes a list of ranges of addresses, with or without host bits.
func prefixList(name string, value any) (any, *apiError) {
	items, ok := value.([]any)
	if !ok {
		return nil, wrong(name, "'%s' is not a list.", text(value))
	}
	seen := map[string]bool{}
	for _, item := range items {
		if seen[text(item)] {
			return nil, wrong(name, "Duplicate items in the list: '%s'.", text(item))
		}
		seen[text(item)] = true
	}
	var prefixes []netip.Prefix
	for _, item := range items {
		s, _ := item.(string)
		if ip, err := netip.ParseAddr(s); err == nil && ip.Zone() == "" {
			return nil, wrong(name, "'%s' isn't a recognized IP subnet cidr, '%s/%d' is recommended.", s, ip, ip.BitLen())
		}
		prefix, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, wrong(name, "'%s' is not a valid IP subnet.", text(item))
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return prefixes, nil
}

// validateSubnetPool checks a subnet pool, and completes a new one.
func (s *Server) validateSubnetPool(o, _, before object) *apiError {
	prefixes := o["prefixes"].([]netip.Prefix)
	if before != nil {
		old := rangesOf(before["prefixes"].([]netip.Prefix))
		if len(without(old, rangesOf(prefixes))) > 0 {
			return &apiError{http.StatusBadRequest, "IllegalSubnetPoolPrefixUpdate",
				"Illegal update to prefixes: Existing prefixes must be a subset of the new prefixes."}
		}
	}
	if len(prefixes) == 0 {
		return &apiError{http.StatusBadRequest, "EmptySubnetPoolPrefixList", "Empty subnet pool prefix list."}
	}
	if slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Addr().Is4() != prefixes[0].Addr().Is4() }) {
		return &apiError{http.StatusBadRequest, "PrefixVersionMismatch", "Cannot mix IPv4 and IPv6 prefixes in a subnet pool."}
	}
	o["prefixes"] = prefixesOf(rangesOf(prefixes))
	if before == nil {
		if failure := completeSubnetPool(o, prefixes[0].Addr()); failure != nil {
			return failure
		}
	}
	if failure := checkBounds(o); failure != nil {
		return failure
	}
	wasDefault := before != nil && before["is_default"] == true
	if o["is_default"] == true && !wasDefault && s.defaultSubnetPool(o["ip_version"].(int)) != nil {
		return invalidInput("A default subnetpool for this IP family has already been set. Only one default may exist per IP family.")
	}
	return nil
}

// completeSubnetPool adds the IP version and the bounds that are not given.
func completeSubnetPool(o object, address netip.Addr) *apiError {
	o["ip_version"] = map[bool]int{true: 4, false: 6}[address.Is4()]
	of := families[o["ip_version"].(int)]
	if o["min_prefixlen"] == nil {
		o["min_prefixlen"] = of.minimum
	}
	if o["max_prefixlen"] == nil {
		o["max_prefixlen"] = of.longest
	}
	if o["default_prefixlen"] == nil {
		if o["min_prefixlen"] == 0 { // Neutron takes this 0 for nothing
			return internalError
		}
		o["default_prefixlen"] = o["min_prefixlen"]
	}
	return nil
}

// checkBounds checks the prefix lengths of a subnet pool.
func checkBounds(o object) *apiError {
	illegal := func(name string, bits int, bound string, limit int) *apiError {
		return &apiError{http.StatusBadRequest, "IllegalSubnetPoolPrefixBounds",
			"Illegal prefix bounds: " + name + "=" + strconv.Itoa(bits) + ", " + bound + "=" + strconv.Itoa(limit) + "."}
	}
	normal, least, most := o["default_prefixlen"].(int), o["min_prefixlen"].(int), o["max_prefixlen"].(int)
	longest := families[o["ip_version"].(int)].longest
	switch {
	case least > most:
		return illegal("min_prefixlen", least, "max_prefixlen", most)
	case most > longest:
		return illegal("max_prefixlen", most, "ip_version_max", longest)
	case normal < least:
		return illegal("default_prefixlen", normal, "min_prefixlen", least)
	case normal > most:
		return illegal("default_prefixlen", normal, "max_prefixlen", most)
	}
	return nil
}

// defaultSubnetPool returns the subnet pool that is the default for an IP
// version, or nil.
func (s *Server) defaultSubnetPool(version int) object {
	for _, o := range s.subnetPools.objects {
		if o["is_default"] == true && o["ip_version"] == version {
			return o
		}
	}
	return nil
}

// releaseSubnetPool refuses to delete a subnet pool that a subnet is from.
func (s *Server) releaseSubnetPool(o object) *apiError {
	if len(s.subnetsFrom(o)) > 0 {
		return &apiError{http.StatusBadRequest, "SubnetPoolDeleteError", "Unable to delete subnet pool: Subnet pool has existing allocations."}
	}
	return nil
}

// subnetsFrom returns the subnets from a subnet pool.
func (s *Server) subnetsFrom(subnetPool object) []object {
	return s.subnets.match([]func(object) bool{func(o object) bool { return o["subnetpool_id"] == subnetPool["id"] }})
}

// shownSubnetPool: prefix lengths are numbers to say, and strings to read.
func shownSubnetPool(o object) object {
	shown := object{}
	for name, value := range o {
		if n, ok := value.(int); ok && slices.Contains(boundNames, name) {
			value = strconv.Itoa(n)
		}
		shown[name] = value
	}
	return shown
}

// shownUpdatedSubnetPool: the answer to a PUT has numbers, and lacks some of
// what is null.
func shownUpdatedSubnetPool(o, given object) object {
	shown := object{}
	for name, value := range o {
		_, said := given[name]
		if value != nil || said {
			shown[name] = value
		}
	}
	return shown
}

// Subnets are taken from a subnet pool.

// available returns the prefixes of a subnet pool that no subnet has, the
// longest first, those of one length in order.
func (s *Server) available(subnetPool object) []netip.Prefix {
	var taken []netip.Prefix
	for _, subnet := range s.subnetsFrom(subnetPool) {
		taken = append(taken, cidrOf(subnet))
	}
	free := prefixesOf(without(rangesOf(subnetPool["prefixes"].([]netip.Prefix)), rangesOf(taken)))
	slices.SortStableFunc(free, func(a, b netip.Prefix) int { return b.Bits() - a.Bits() })
	return free
}

// allocate takes a range from a subnet pool: the one that is wanted or, where
// that is not valid, the first of some length.
func (s *Server) allocate(subnetPool object, wanted netip.Prefix, bits int) (netip.Prefix, *apiError) {
	if failure := s.checkAllocation(subnetPool, bits); failure != nil {
		return netip.Prefix{}, failure
	}
	for _, free := range s.available(subnetPool) {
		switch {
		case !wanted.IsValid() && free.Bits() <= bits:
			return netip.PrefixFrom(free.Addr(), bits), nil
		case wanted.IsValid() && free.Bits() <= bits && free.Contains(wanted.Addr()):
			return wanted, nil
		}
	}
	reason := "Insufficient prefix space to allocate subnet size /" + strconv.Itoa(bits)
	if wanted.IsValid() {
		reason = "Cannot allocate requested subnet from the available set of prefixes"
	}
	return netip.Prefix{}, &apiError{http.StatusInternalServerError, "SubnetAllocationError", "Failed to allocate subnet: " + reason + "."}
}

// checkAllocation checks that a prefix is neither too long nor too short for a
// subnet pool, and that the quota of the subnet pool leaves room for it.
func (s *Server) checkAllocation(subnetPool object, bits int) *apiError {
	least, most := subnetPool["min_prefixlen"].(int), subnetPool["max_prefixlen"].(int)
	switch {
	case bits > most:
		return &apiError{http.StatusBadRequest, "MaxPrefixSubnetAllocationError", "Unable to allocate subnet with prefix length " +
			strconv.Itoa(bits) + ", maximum allowed prefix is " + strconv.Itoa(most) + "."}
	case bits < least:
		return &apiError{http.StatusBadRequest, "MinPrefixSubnetAllocationError", "Unable to allocate subnet with prefix length " +
			strconv.Itoa(bits) + ", minimum allowed prefix is " + strconv.Itoa(least) + "."}
	}
	quota, _ := subnetPool["default_quota"].(int)
	if quota == 0 { // so is none
		return nil
	}
	unit := families[subnetPool["ip_version"].(int)].quotaUnit
	used := math.Ldexp(1, unit-bits)
	for _, subnet := range s.subnetsFrom(subnetPool) {
		if subnet["tenant_id"] == subnetPool["tenant_id"] { // that of no other
			used += math.Ldexp(1, unit-cidrOf(subnet).Bits())
		}
	}
	if used > float64(quota) {
		return conflict("SubnetPoolQuotaExceeded", "Per-tenant subnet pool prefix quota exceeded.")
	}
	return nil
}

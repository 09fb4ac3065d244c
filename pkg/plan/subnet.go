package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// towardsSubnet makes the subnet on our network what is desired; nil where it
// is.
func towardsSubnet(desired Desired, actual Actual, network neutron.Network) Step {
	subnets, known := actual.subnetsOf(network)
	if !known {
		return FindSubnets{neutron.SubnetFilter{NetworkID: network.ID}}
	}
	if _, known := actual.subnetPoolID(desired); !known {
		if _, step := theSubnetPool(desired, actual); step != nil {
			return step
		}
	}
	ours := actual.ourSubnets(desired, network, subnets)
	if len(ours) == 0 {
		return towardsNewSubnet(desired, actual, network)
	}
	kept, others, ok := chooseSubnet(desired, actual, ours)
	switch {
	case !ok:
		return ambiguous("subnets", subnetIDs(ours), desired.Owner, actual.SubnetID)
	case len(others) > 0 && (kept.ID == actual.SubnetID || !fits(desired, actual, others[0])):
		return DeleteSubnet{ID: others[0].ID, Revision: others[0].Revision, From: others[0].CIDR, For: desired.rangeText()}
	}
	return towardsSpec(desired, actual, kept)
}

func towardsNewSubnet(desired Desired, actual Actual, network neutron.Network) Step {
	subnet := neutron.NewSubnet{
		NetworkID:   network.ID,
		Name:        desired.Owner.String(),
		Description: desired.Owner.Marker(),
		CIDR:        desired.CIDR,
		AddressMode: desired.AddressMode,
		RAMode:      desired.RAMode,
	}
	if desired.SubnetPool == nil { // of a range that nobody knows, the gateway is taken away later
		subnet.Gateway = new(desired.gatewayIn(desired.CIDR))
	}
	subnet.Pools, subnet.DHCP = desired.Pools, desired.DHCP
	if desired.Nameservers != nil {
		subnet.Nameservers = &desired.Nameservers
	}
	if desired.HostRoutes != nil {
		subnet.HostRoutes = &desired.HostRoutes
	}
	if desired.SubnetPool != nil {
		pool, step := theSubnetPool(desired, actual)
		if step != nil {
			return step
		}
		subnet.FromPool = &neutron.FromPool{SubnetPoolID: pool.ID, IPVersion: pool.IPVersion, PrefixLength: desired.SubnetPool.PrefixLength}
	}
	return CreateSubnet{subnet}
}

// towardsSpec makes the subnet that is there the one that is desired. Its range
// and its IPv6 modes cannot be changed, so one with others has to go first;
// Neutron refuses that while a port uses it. One that was adopted keeps its
// name and whatever the spec says nothing of, and never goes.
func towardsSpec(desired Desired, actual Actual, subnet neutron.Subnet) Step {
	name, mark := desired.Owner.String(), desired.Owner.Marker()
	adopted := desired.Adopted != "" && subnet.Description != mark
	sameModes := subnet.AddressMode == desired.AddressMode && subnet.RAMode == desired.RAMode
	switch stays := fits(desired, actual, subnet); {
	case adopted && (!stays || !sameModes && desired.AddressMode+desired.RAMode != ""):
		return Blocked{Reason: ReasonNotOurs, Message: fmt.Sprintf(
			"subnet %s has the range %s%s and was adopted: it is not deleted to make room for %s. Delete it, or put the spec back.",
			subnet.ID, subnet.CIDR, modesText(subnet.AddressMode, subnet.RAMode), desired.rangeText())}
	case !adopted && (!stays || !sameModes):
		if desired.SubnetPool != nil { // nothing goes for what could not be made
			if _, step := theSubnetPool(desired, actual); step != nil {
				return step
			}
		}
		return DeleteSubnet{ID: subnet.ID, Revision: subnet.Revision, From: subnet.CIDR, For: desired.rangeText()}
	}
	wanted := desired.subnetLike(subnet, adopted)
	update := neutron.SubnetUpdate{Revision: subnet.Revision}
	changes := changeSettings(desired, &update.SubnetSettings, subnet, wanted)
	if !adopted && subnet.Name != name {
		changes, update.Name = append(changes, Change{"name", strconv.Quote(subnet.Name), strconv.Quote(name)}), name
	}
	if !adopted && subnet.Description != mark {
		changes, update.Description = append(changes, Change{"description", strconv.Quote(subnet.Description), strconv.Quote(mark)}), mark
	}
	if changes == nil {
		return nil
	}
	return UpdateSubnet{ID: subnet.ID, Changes: changes, Update: update}
}

// subnetLike returns what a subnet should be like: what the spec says, and
// where it says nothing, what Neutron makes by itself, or what is there where
// that was adopted.
func (d Desired) subnetLike(subnet neutron.Subnet, adopted bool) neutron.Subnet {
	wanted := subnet
	if !adopted {
		wanted.Gateway, wanted.DHCP, wanted.Nameservers, wanted.HostRoutes = subnet.CIDR.Addr().Next(), true, nil, nil
	}
	switch {
	case d.NoGateway:
		wanted.Gateway = netip.Addr{}
	case d.Gateway.IsValid():
		wanted.Gateway = d.Gateway
	}
	switch {
	case d.Pools != nil:
		wanted.Pools = d.Pools
	case adopted:
		wanted.Pools = leaveOut(subnet.Pools, wanted.Gateway)
	default:
		wanted.Pools = Pools(subnet.CIDR, wanted.Gateway)
	}
	if d.DHCP != nil {
		wanted.DHCP = *d.DHCP
	}
	if d.Nameservers != nil {
		wanted.Nameservers = d.Nameservers
	}
	if d.HostRoutes != nil {
		wanted.HostRoutes = d.HostRoutes
	}
	return wanted
}

// changeSettings puts into an update what differs between two states of a
// subnet, and returns it in words. Other pools go without saying where they
// only follow the gateway.
func changeSettings(desired Desired, update *neutron.SubnetSettings, from, to neutron.Subnet) (changes []Change) {
	if from.Gateway != to.Gateway {
		update.Gateway = &to.Gateway
		changes = append(changes, Change{"gateway", addrText(from.Gateway), addrText(to.Gateway)})
	}
	if !samePools(from.Pools, to.Pools) {
		update.Pools = to.Pools
		if update.Gateway == nil || desired.Pools != nil {
			changes = append(changes, Change{"allocation pools", poolsText(from.Pools), poolsText(to.Pools)})
		}
	}
	if from.DHCP != to.DHCP {
		update.DHCP = &to.DHCP
		changes = append(changes, Change{"DHCP", strconv.FormatBool(from.DHCP), strconv.FormatBool(to.DHCP)})
	}
	if !slices.Equal(from.Nameservers, to.Nameservers) {
		update.Nameservers = &to.Nameservers
		changes = append(changes, Change{"DNS name servers", listText(from.Nameservers, netip.Addr.String), listText(to.Nameservers, netip.Addr.String)})
	}
	if !slices.Equal(sortedRoutes(from.HostRoutes), sortedRoutes(to.HostRoutes)) {
		update.HostRoutes = &to.HostRoutes
		changes = append(changes, Change{"host routes", listText(from.HostRoutes, routeText), listText(to.HostRoutes, routeText)})
	}
	return changes
}

// gatewayIn returns the gateway that is asked for in a range: the first address
// that a host can have where the spec names none, as in Neutron; the zero Addr
// for none.
func (d Desired) gatewayIn(cidr netip.Prefix) netip.Addr {
	switch {
	case d.NoGateway:
		return netip.Addr{}
	case d.Gateway.IsValid():
		return d.Gateway
	}
	return cidr.Addr().Next()
}

// fits reports whether a subnet has the range that is asked for, or one from the
// subnet pool that is.
func fits(desired Desired, actual Actual, subnet neutron.Subnet) bool {
	if desired.SubnetPool == nil {
		return subnet.CIDR == desired.CIDR
	}
	id, known := actual.subnetPoolID(desired)
	length := desired.SubnetPool.PrefixLength
	return known && subnet.SubnetPoolID == id && (length == 0 || subnet.CIDR.Bits() == length)
}

// chooseSubnet returns the one of several subnets with our mark that is to be
// kept: one that fits, and of several such the one that the status names, or
// else the eldest. The others are twins, that several processes have made for
// one object; ok is false where one may be something else.
func chooseSubnet(desired Desired, actual Actual, ours []neutron.Subnet) (kept neutron.Subnet, others []neutron.Subnet, ok bool) {
	sorted := slices.SortedFunc(slices.Values(ours), func(a, b neutron.Subnet) int {
		return cmp.Or(
			first(fits(desired, actual, a), fits(desired, actual, b)),
			first(a.ID == actual.SubnetID, b.ID == actual.SubnetID),
			a.CreatedAt.Compare(b.CreatedAt),
			cmp.Compare(a.ID, b.ID))
	})
	kept, others = sorted[0], sorted[1:]
	for _, other := range others {
		if !fits(desired, actual, kept) || other.Name != desired.Owner.String() || other.Description != desired.Owner.Marker() || !bornTogether(kept.CreatedAt, other.CreatedAt) {
			return kept, others, false
		}
	}
	// What does not fit goes first: whichever process looks, it is the same.
	slices.Reverse(others)
	return kept, others, true
}

// subnetPoolID returns the ID of the subnet pool that the spec names, as far as
// it is known; empty where it names none.
func (a Actual) subnetPoolID(desired Desired) (id string, known bool) {
	pool := desired.SubnetPool
	switch {
	case pool == nil:
		return "", true
	case pool.ID != "":
		return pool.ID, true
	case pool.Name == a.SubnetPoolName && a.SubnetPoolID != "":
		return a.SubnetPoolID, true
	case a.pools != nil && len(*a.pools) == 1:
		return (*a.pools)[0].ID, true
	}
	return "", false
}

// theSubnetPool returns the subnet pool that the spec names, or the step without
// which it cannot be told, or what is wrong with it.
func theSubnetPool(desired Desired, actual Actual) (neutron.SubnetPool, Step) {
	pool := desired.SubnetPool
	id, _ := actual.subnetPoolID(desired)
	has, known := actual.canDo(neutron.ExtensionSubnetPools)
	switch {
	case !known:
		return neutron.SubnetPool{}, FindExtensions{}
	case !has:
		return neutron.SubnetPool{}, Blocked{Reason: ReasonExtensionMissing, Message: fmt.Sprintf(
			"this cloud lacks an extension of Neutron: spec.subnetPool needs %q. Give a cidr, or ask whoever runs the cloud for the extension.", neutron.ExtensionSubnetPools)}
	case actual.pools == nil && id != "":
		return neutron.SubnetPool{}, FindSubnetPool{neutron.SubnetPoolFilter{ID: id}}
	case actual.pools == nil:
		return neutron.SubnetPool{}, FindSubnetPool{neutron.SubnetPoolFilter{Name: pool.Name}}
	case len(*actual.pools) == 0:
		return neutron.SubnetPool{}, Blocked{Reason: ReasonNotFound, Message: fmt.Sprintf(
			"subnet pool %q, which spec.subnetPool names, is not there, or the project of the controller cannot see it.", pool.Name+pool.ID)}
	case len(*actual.pools) > 1:
		ids := sortedIDs(*actual.pools, func(p neutron.SubnetPool) string { return p.ID })
		return neutron.SubnetPool{}, Blocked{Reason: ReasonAmbiguous, Message: fmt.Sprintf(
			"Neutron has %d subnet pools with the name %q (%s). Give the id of one in spec.subnetPool, in place of the name.", len(ids), pool.Name, strings.Join(ids, ", "))}
	}
	found := (*actual.pools)[0]
	if what := desired.notOfVersion(found.IPVersion); what != "" {
		return neutron.SubnetPool{}, Blocked{Reason: ReasonSubnetPoolMismatch, Message: fmt.Sprintf(
			"subnet pool %q has ranges of IPv%d, which %s does not fit.", pool.Name+pool.ID, found.IPVersion, what)}
	}
	if asked := pool.PrefixLength; asked != 0 && (asked < found.MinPrefixLength || found.MaxPrefixLength != 0 && asked > found.MaxPrefixLength) {
		return neutron.SubnetPool{}, Blocked{Reason: ReasonSubnetPoolMismatch, Message: fmt.Sprintf(
			"subnet pool %q hands out ranges from /%d to /%d, and spec.subnetPool.prefixLength is %d.", pool.Name+pool.ID, found.MinPrefixLength, found.MaxPrefixLength, asked)}
	}
	return found, nil
}

// notOfVersion returns which field of the spec is not for a subnet of this IP
// version, or nothing.
func (d Desired) notOfVersion(version int) string {
	isOther := func(address netip.Addr) bool { return address.Is4() != (version == 4) }
	switch {
	case version == 4 && d.AddressMode+d.RAMode != "":
		return "spec.ipv6"
	case version == 4 && d.SubnetPool.PrefixLength > 30:
		return "spec.subnetPool.prefixLength, which is at most 30 for it,"
	case version == 6 && d.Settings.MTU != nil && *d.Settings.MTU < 1280:
		return "spec.mtu, which must be at least 1280 for it,"
	case slices.ContainsFunc(d.Nameservers, isOther):
		return "spec.dnsNameservers"
	case slices.ContainsFunc(d.HostRoutes, func(r neutron.HostRoute) bool { return isOther(r.NextHop) }):
		return "spec.hostRoutes"
	}
	return ""
}

// rangeText says which subnet is asked for, as far as it cannot be changed.
func (d Desired) rangeText() string {
	text := d.CIDR.String()
	if pool := d.SubnetPool; pool != nil {
		text = "a range from subnet pool " + pool.Name + pool.ID
		if pool.PrefixLength > 0 {
			text = fmt.Sprintf("a /%d from subnet pool %s", pool.PrefixLength, pool.Name+pool.ID)
		}
	}
	return text + modesText(d.AddressMode, d.RAMode)
}

func modesText(addressMode, raMode string) string {
	var words []string
	if addressMode != "" {
		words = append(words, "address mode "+addressMode)
	}
	if raMode != "" {
		words = append(words, "RA mode "+raMode)
	}
	if words == nil {
		return ""
	}
	return " with " + strings.Join(words, " and ")
}

func poolsText(pools []neutron.Pool) string {
	return listText(pools, func(p neutron.Pool) string { return p.Start.String() + "-" + p.End.String() })
}

func routeText(route neutron.HostRoute) string {
	return route.Destination.String() + " via " + route.NextHop.String()
}

func listText[T any](all []T, text func(T) string) string {
	if len(all) == 0 {
		return "none"
	}
	var words []string
	for _, one := range all {
		words = append(words, text(one))
	}
	return strings.Join(words, " and ")
}

func sortedRoutes(routes []neutron.HostRoute) []neutron.HostRoute {
	return slices.SortedFunc(slices.Values(routes), func(a, b neutron.HostRoute) int {
		return cmp.Or(a.Destination.Compare(b.Destination), a.NextHop.Compare(b.NextHop))
	})
}

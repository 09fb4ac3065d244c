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

// stepToSubnet creates, updates or replaces the subnet on our network. It returns
// nil if the subnet is as desired.
func stepToSubnet(desired Desired, actual Actual, network neutron.Network) Step {
	subnets, known := actual.subnetsOf(network)
	if !known {
		return FindSubnets{neutron.SubnetFilter{NetworkID: network.ID}}
	}
	if _, known := actual.subnetPoolID(desired); !known {
		_, step := selectSubnetPool(desired, actual)
		return step
	}
	ours := actual.ourSubnets(desired, subnets)
	if len(ours) == 0 {
		return stepToNewSubnet(desired, actual, network)
	}
	kept, others, ok := selectSubnet(desired, actual, ours)
	switch {
	case !ok:
		return ambiguous("subnets", subnetIDs(ours), desired.Owner, actual.SubnetID)
	case len(others) > 0 && (kept.ID == actual.SubnetID || !hasDesiredRange(desired, actual, others[0])):
		if step := stepToDetached(actual, others[0], replacement(desired, others[0])); step != nil {
			return step
		}
		isDuplicate := hasDesiredRange(desired, actual, others[0]) // otherwise, the kept one has replaced it
		return DeleteSubnet{Duplicate: isDuplicate, ID: others[0].ID, Revision: others[0].Revision, From: others[0].CIDR, For: desired.RangeText()}
	}
	return stepToSpec(desired, actual, network, kept)
}

func stepToNewSubnet(desired Desired, actual Actual, network neutron.Network) Step {
	if step := stepToRoom(desired, actual, network); step != nil {
		return step
	}
	subnet := neutron.NewSubnet{
		NetworkID:      network.ID,
		Name:           desired.Owner.String(),
		Description:    desired.Owner.Marker(),
		CIDR:           desired.CIDR,
		AddressMode:    desired.AddressMode,
		RAMode:         desired.RAMode,
		SubnetSettings: neutron.SubnetSettings{Pools: desired.Pools, DHCP: desired.DHCP},
	}
	if desired.Nameservers != nil {
		subnet.Nameservers = &desired.Nameservers
	}
	if desired.HostRoutes != nil {
		subnet.HostRoutes = &desired.HostRoutes
	}
	if desired.SubnetPool == nil {
		subnet.Gateway = new(desired.gatewayOr(desired.CIDR.Addr().Next()))
		return CreateSubnet{subnet}
	}
	// Neutron gives a subnet from a subnet pool a gateway; an update removes it.
	pool, step := selectSubnetPool(desired, actual)
	if step != nil {
		return step
	}
	subnet.FromPool = &neutron.FromPool{SubnetPoolID: pool.ID, IPVersion: pool.IPVersion, PrefixLength: desired.SubnetPool.PrefixLength}
	return CreateSubnet{subnet}
}

// stepToRoom returns nil if the subnet can be created as far as other subnets on the
// network are concerned: Neutron rejects a range that overlaps. The subnet in the
// status was ours, and ports may use it: there must be no second one.
func stepToRoom(desired Desired, actual Actual, network neutron.Network) Step {
	subnets, _ := actual.subnetsOf(network)
	for _, s := range subnets {
		inTheWay := desired.CIDR.IsValid() && s.CIDR.Overlaps(desired.CIDR) || desired.Adopted == "" && s.ID == actual.SubnetID
		if inTheWay && !desired.Owner.HasMarker(s.Description) {
			return Blocked{Reason: ReasonNotOurs, Message: fmt.Sprintf(
				"subnet %s with the range %s is on network %s, but does not have the owner marker of this Network. If it belongs to this Network, set its description to %q. Otherwise delete it.",
				s.ID, s.CIDR, network.ID, desired.Owner.Marker())}
		}
	}
	return nil
}

// stepToSpec updates the existing subnet. Its range and its IPv6 modes cannot be
// changed, so a subnet with other ones is deleted first; Neutron refuses that
// while a port uses it. An adopted subnet is never deleted. It keeps its name and
// all fields that the spec omits.
func stepToSpec(desired Desired, actual Actual, network neutron.Network, subnet neutron.Subnet) Step {
	name, marker := desired.Owner.String(), desired.Owner.Marker()
	adopted := desired.Adopted != "" && subnet.Description != marker
	keepsModes := adopted && desired.AddressMode == "" && desired.RAMode == ""
	hasModes := subnet.AddressMode == desired.AddressMode && subnet.RAMode == desired.RAMode
	if !hasDesiredRange(desired, actual, subnet) || !hasModes && !keepsModes {
		return stepToReplace(desired, actual, network, subnet, adopted)
	}
	target := desired.settingsForSubnet(subnet, adopted)
	update := neutron.SubnetUpdate{Revision: subnet.Revision}
	changes := changeSettings(desired, &update.SubnetSettings, subnet, target)
	if !adopted {
		labels := labelChanges(subnet.Name, name, subnet.Description, marker)
		if changes = append(changes, labels...); labels != nil {
			update.Name, update.Description = name, marker
		}
	}
	if changes == nil {
		return nil
	}
	if update.Gateway != nil {
		if step := stepToOtherGateway(actual, subnet); step != nil {
			return step
		}
	}
	return UpdateSubnet{ID: subnet.ID, Changes: changes, Update: update}
}

// stepToReplace deletes a subnet whose range or IPv6 modes differ, if the desired
// one can be created.
func stepToReplace(desired Desired, actual Actual, network neutron.Network, subnet neutron.Subnet, adopted bool) Step {
	if adopted {
		return Blocked{Reason: ReasonNotOurs, Message: fmt.Sprintf(
			"subnet %s with the range %s%s was adopted: it is not deleted to make room for %s. Delete the subnet, or restore the previous spec.",
			subnet.ID, subnet.CIDR, modesText(subnet.AddressMode, subnet.RAMode), desired.RangeText())}
	}
	if desired.SubnetPool != nil {
		if _, step := selectSubnetPool(desired, actual); step != nil {
			return step
		}
	}
	if step := stepToRoom(desired, actual, network); step != nil {
		return step
	}
	if desired.canCoexist(actual, subnet) { // it is deleted once the new one exists
		if step := stepToUnused(desired, actual, subnet); step != nil {
			return step
		}
		return stepToNewSubnet(desired, actual, network)
	}
	if step := stepToDetached(actual, subnet, replacement(desired, subnet)); step != nil {
		return step
	}
	return DeleteSubnet{ID: subnet.ID, Revision: subnet.Revision, From: subnet.CIDR, For: desired.RangeText()}
}

// canCoexist reports whether the desired subnet can be created while a subnet that it
// replaces exists. Neutron rejects ranges that overlap, and a network with subnets of
// several subnet pools, or with and without one.
func (d Desired) canCoexist(actual Actual, subnet neutron.Subnet) bool {
	if d.SubnetPool == nil {
		return subnet.SubnetPoolID == "" && !subnet.CIDR.Overlaps(d.CIDR)
	}
	id, known := actual.subnetPoolID(d)
	return known && subnet.SubnetPoolID == id
}

// stepToUnused returns nil if no port uses a subnet that is to be replaced: the new one is
// not created before the old one can go.
func stepToUnused(desired Desired, actual Actual, subnet neutron.Subnet) Step {
	ports, known := actual.ports[subnet.NetworkID]
	if !known {
		return FindPorts{subnet.NetworkID}
	}
	var users []string
	for _, port := range ports {
		if slices.Contains(port.SubnetIDs, subnet.ID) {
			users = append(users, port.String())
		}
	}
	if users == nil {
		return nil
	}
	return Blocked{Reason: ReasonInUse, Message: fmt.Sprintf(
		"cannot %s: ports use subnet %s (%s). Delete the ports, or restore the previous spec.", replacement(desired, subnet), subnet.ID, firstOf(users))}
}

// settingsForSubnet returns a subnet with the desired settings. A setting that
// the spec omits has Neutron's default, or is kept if the subnet was adopted.
func (d Desired) settingsForSubnet(subnet neutron.Subnet, adopted bool) neutron.Subnet {
	target := subnet
	if !adopted {
		target.Gateway, target.DHCP, target.Nameservers, target.HostRoutes = subnet.CIDR.Addr().Next(), true, nil, nil
	}
	target.Gateway = d.gatewayOr(target.Gateway)
	switch {
	case d.Pools != nil:
		target.Pools = d.Pools
	case adopted:
		target.Pools = poolsWithout(subnet.Pools, target.Gateway)
	default:
		target.Pools = Pools(subnet.CIDR, target.Gateway)
	}
	if d.DHCP != nil {
		target.DHCP = *d.DHCP
	}
	if d.Nameservers != nil {
		target.Nameservers = d.Nameservers
	}
	if d.HostRoutes != nil {
		target.HostRoutes = d.HostRoutes
	}
	return target
}

// changeSettings adds the differences between two states of a subnet to an update,
// and returns them as changes. Pools that change only because of the gateway are
// not listed.
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

// hasDesiredRange reports whether a subnet has the desired range, or a range from
// the desired subnet pool.
func hasDesiredRange(desired Desired, actual Actual, subnet neutron.Subnet) bool {
	if desired.SubnetPool == nil {
		return subnet.CIDR == desired.CIDR
	}
	id, known := actual.subnetPoolID(desired)
	length := desired.SubnetPool.PrefixLength
	return known && subnet.SubnetPoolID == id && (length == 0 || subnet.CIDR.Bits() == length)
}

// selectSubnet returns the subnet to keep out of several with our owner marker,
// and the others. It keeps one that has the desired range; of several such, the
// one that the status names, or else the oldest one. The others are duplicates
// that several processes created for one object. ok is false if one may be
// something else.
func selectSubnet(desired Desired, actual Actual, ours []neutron.Subnet) (kept neutron.Subnet, others []neutron.Subnet, ok bool) {
	if len(ours) == 1 { // as usual
		return ours[0], nil, true
	}
	sorted := slices.Clone(ours)
	slices.SortFunc(sorted, func(a, b neutron.Subnet) int {
		return cmp.Or(
			trueFirst(hasDesiredRange(desired, actual, a), hasDesiredRange(desired, actual, b)),
			trueFirst(a.ID == actual.SubnetID, b.ID == actual.SubnetID),
			a.CreatedAt.Compare(b.CreatedAt),
			cmp.Compare(a.ID, b.ID))
	})
	kept, others = sorted[0], sorted[1:]
	for _, other := range others {
		if other.Name != desired.Owner.String() || !desired.Owner.HasMarker(other.Description) {
			return kept, others, false
		}
	}
	// Subnets with another range are deleted first: every process decides this in
	// the same way.
	slices.Reverse(others)
	return kept, others, true
}

// subnetPoolID returns the ID of the desired subnet pool, if it is known. It is
// empty if there is none.
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

// selectSubnetPool returns the desired subnet pool. It returns a step if the
// subnet pool is unknown or not suitable.
func selectSubnetPool(desired Desired, actual Actual) (neutron.SubnetPool, Step) {
	pool := desired.SubnetPool
	blocked := func(reason Reason, format string, values ...any) (neutron.SubnetPool, Step) {
		return neutron.SubnetPool{}, Blocked{Reason: reason, Message: fmt.Sprintf(format, values...)}
	}
	has, known := actual.hasExtension(neutron.ExtensionSubnetPools)
	switch {
	case !known:
		return neutron.SubnetPool{}, FindExtensions{}
	case !has:
		return blocked(ReasonExtensionMissing, "this cloud lacks a Neutron extension: spec.subnetPool requires %q. Set spec.cidr instead, or ask the operator of the cloud for the extension.",
			neutron.ExtensionSubnetPools)
	case actual.pools == nil:
		if id, _ := actual.subnetPoolID(desired); id != "" {
			return neutron.SubnetPool{}, FindSubnetPool{neutron.SubnetPoolFilter{ID: id}}
		}
		return neutron.SubnetPool{}, FindSubnetPool{neutron.SubnetPoolFilter{Name: pool.Name}}
	case len(*actual.pools) == 0:
		return blocked(ReasonNotFound, "subnet pool %q, which spec.subnetPool names, does not exist, or the controller's project cannot see it.", pool.Name+pool.ID)
	case len(*actual.pools) > 1:
		ids := sortedIDs(*actual.pools, func(p neutron.SubnetPool) string { return p.ID })
		return blocked(ReasonAmbiguous, "Neutron has %d subnet pools with the name %q (%s). Set spec.subnetPool.id to one of these IDs, and remove spec.subnetPool.name.", len(ids), pool.Name, strings.Join(ids, ", "))
	}
	found := (*actual.pools)[0]
	if conflict := desired.versionConflict(found.IPVersion); conflict != "" {
		return blocked(ReasonSubnetPoolMismatch, "subnet pool %q allocates IPv%d ranges, but %s.", pool.Name+pool.ID, found.IPVersion, conflict)
	}
	if length := pool.PrefixLength; length != 0 && (length < found.MinPrefixLength || found.MaxPrefixLength != 0 && length > found.MaxPrefixLength) {
		return blocked(ReasonSubnetPoolMismatch, "subnet pool %q allocates ranges from /%d to /%d, but spec.subnetPool.prefixLength is %d.", pool.Name+pool.ID, found.MinPrefixLength, found.MaxPrefixLength, length)
	}
	return found, nil
}

// versionConflict returns the reason why the spec does not allow a subnet of this
// IP version. It is empty if there is none.
func (d Desired) versionConflict(version int) string {
	isOther := func(address netip.Addr) bool { return address.Is4() != (version == 4) }
	switch mtu, length := d.Settings.MTU, d.SubnetPool.PrefixLength; {
	case version == 4 && (d.AddressMode != "" || d.RAMode != ""):
		return "spec.ipv6 is set"
	case version == 4 && length > 30:
		return fmt.Sprintf("spec.subnetPool.prefixLength is %d; the maximum for IPv4 is 30", length)
	case version == 6 && mtu != nil && *mtu < 1280:
		return fmt.Sprintf("spec.mtu is %d; the minimum for IPv6 is 1280", *mtu)
	case slices.ContainsFunc(d.Nameservers, isOther):
		return "spec.dnsNameservers has an address of another IP version"
	case slices.ContainsFunc(d.HostRoutes, func(r neutron.HostRoute) bool { return isOther(r.NextHop) }):
		return "spec.hostRoutes has an address of another IP version"
	}
	return ""
}

// allocationText describes a range from a subnet pool. The prefix length is 0 for
// the default of the subnet pool.
func allocationText(pool string, prefixLength int) string {
	if prefixLength == 0 {
		return "a range from subnet pool " + pool
	}
	return fmt.Sprintf("a /%d from subnet pool %s", prefixLength, pool)
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

// addrText returns an address, or "none" for the zero Addr.
func addrText(address netip.Addr) string {
	if !address.IsValid() {
		return "none"
	}
	return address.String()
}

func listText[T any](values []T, text func(T) string) string {
	if len(values) == 0 {
		return "none"
	}
	return joinTexts(values, text, " and ")
}

func sortedRoutes(routes []neutron.HostRoute) []neutron.HostRoute {
	return slices.SortedFunc(slices.Values(routes), func(a, b neutron.HostRoute) int {
		return cmp.Or(a.Destination.Compare(b.Destination), a.NextHop.Compare(b.NextHop))
	})
}

package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
)

// DesiredFor returns the desired state of the owner's object. It checks the spec
// as the CRD does, and more: an older CRD may have accepted an invalid spec, and
// a CRD cannot express some rules.
func DesiredFor(owner neutron.Owner, spec samplecrdv1.NetworkSpec) Desired {
	desired := Desired{Owner: owner, Adopted: spec.NetworkID}
	for _, read := range []func(*Desired, samplecrdv1.NetworkSpec) string{
		readRange, readGateway, readPools, readNameservers, readHostRoutes, readDHCP, readSettings, readRouter,
	} {
		if problem := read(&desired, spec); problem != "" {
			return Desired{Owner: owner, Adopted: spec.NetworkID, Invalid: problem}
		}
	}
	return desired
}

func readRange(desired *Desired, spec samplecrdv1.NetworkSpec) (problem string) {
	pool := spec.SubnetPool
	switch {
	case (spec.CIDR == "") == (pool == nil):
		return "spec must have either cidr, such as 192.168.0.0/16, or subnetPool"
	case pool == nil:
		desired.CIDR, problem = parseCIDR(spec)
		return problem
	case (pool.Name == "") == (pool.ID == ""):
		return "spec.subnetPool must have either a name or an id"
	case pool.PrefixLength < 0 || pool.PrefixLength > 126:
		return fmt.Sprintf("spec.subnetPool.prefixLength is %d: it must be from 1 to 126", pool.PrefixLength)
	}
	desired.SubnetPool = &SubnetPool{ID: pool.ID, Name: pool.Name, PrefixLength: int(pool.PrefixLength)}
	return ""
}

func parseCIDR(spec samplecrdv1.NetworkSpec) (cidr netip.Prefix, problem string) {
	cidr, err := netip.ParsePrefix(spec.CIDR)
	if err != nil || cidr.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Sprintf("spec.cidr %q is not a range in CIDR notation, "+
			"such as 192.168.0.0/16 or fd00:1234::/64", spec.CIDR)
	}
	longest := 126
	if cidr.Addr().Is4() {
		longest = 30
	}
	needsNoRoom := spec.Gateway == samplecrdv1.GatewayNone && spec.EnableDHCP != nil && !*spec.EnableDHCP
	if cidr.Bits() < 1 || cidr.Bits() > longest && !needsNoRoom {
		return netip.Prefix{}, fmt.Sprintf("spec.cidr %q leaves no room for a gateway and a port, or is the "+
			"whole address space: use a prefix length from /1 to /%d, or set gateway to None and enableDHCP to false",
			spec.CIDR, longest)
	}
	cidr = cidr.Masked()
	if isPartOf(cidr, "224.0.0.0/4", "ff00::/8", "127.0.0.0/8") || cidr.Addr().IsUnspecified() {
		return netip.Prefix{}, fmt.Sprintf("spec.cidr %q is a multicast or loopback range, or begins with 0.0.0.0 or ::, "+
			"which hosts cannot use: use another range, such as 192.168.0.0/16", spec.CIDR)
	}
	return cidr, ""
}

func readGateway(desired *Desired, spec samplecrdv1.NetworkSpec) (problem string) {
	cidr := desired.CIDR
	switch {
	case spec.Gateway == "":
		return ""
	case spec.Gateway == samplecrdv1.GatewayNone:
		desired.NoGateway = true
		return ""
	case desired.SubnetPool != nil:
		return fmt.Sprintf("spec.gateway is %q, but with subnetPool the range is not known in advance: "+
			"omit gateway to use the first address, or set it to None", spec.Gateway)
	}
	gateway, err := parseAddr(spec.Gateway)
	first := cidr.Addr().Next()
	switch {
	case err != nil:
		return fmt.Sprintf("spec.gateway %q is not an IP address, such as %s, nor None", spec.Gateway, first)
	case gateway.IsMulticast() || gateway.IsLoopback():
		return fmt.Sprintf("spec.gateway %s is a multicast or loopback address: use another one, such as %s", gateway, first)
	case !cidr.Contains(gateway):
		return fmt.Sprintf("spec.gateway %s is not inside spec.cidr: use an address from %s to %s",
			gateway, hostRange(cidr).Start, hostRange(cidr).End)
	case gateway == cidr.Addr():
		return fmt.Sprintf("spec.gateway %s is the network address of spec.cidr: use another one, such as %s", gateway, first)
	case gateway.Is4() && gateway == lastAddr(cidr):
		return fmt.Sprintf("spec.gateway %s is the broadcast address of spec.cidr: use another one, such as %s",
			gateway, first)
	}
	desired.Gateway = gateway
	return ""
}

// readPools reads the allocation pools, and sorts them in the order of Neutron.
func readPools(desired *Desired, spec samplecrdv1.NetworkSpec) (problem string) {
	if len(spec.AllocationPools) == 0 {
		return ""
	}
	if desired.SubnetPool != nil {
		return "spec.allocationPools cannot be set with subnetPool, because the range is not known in advance: " +
			"omit allocationPools, or set cidr instead of subnetPool"
	}
	hosts := hostRange(desired.CIDR)
	gateway := desired.gatewayOr(desired.CIDR.Addr().Next())
	if desired.Adopted != "" {
		gateway = desired.gatewayOr(netip.Addr{}) // an adopted subnet keeps its own gateway
	}
	for i, given := range spec.AllocationPools {
		start, startErr := parseAddr(given.Start)
		end, endErr := parseAddr(given.End)
		pool := neutron.Pool{Start: start, End: end}
		switch {
		case startErr != nil || endErr != nil:
			return fmt.Sprintf("spec.allocationPools[%d] from %q to %q must have an IP address as its start and its end",
				i, given.Start, given.End)
		case !poolContains(hosts, start) || !poolContains(hosts, end):
			return fmt.Sprintf("spec.allocationPools[%d] from %s to %s is not inside the host addresses of spec.cidr: "+
				"use addresses from %s to %s", i, start, end, hosts.Start, hosts.End)
		case end.Less(start):
			return fmt.Sprintf("spec.allocationPools[%d] from %s to %s ends before it starts: exchange start and end",
				i, start, end)
		case poolContains(pool, gateway):
			return fmt.Sprintf("spec.allocationPools[%d] from %s to %s contains the gateway %s: exclude it, "+
				"or use another gateway", i, start, end, gateway)
		}
		desired.Pools = append(desired.Pools, pool)
	}
	slices.SortFunc(desired.Pools, compareStart)
	for i, pool := range desired.Pools[1:] {
		if before := desired.Pools[i]; !before.End.Less(pool.Start) {
			return fmt.Sprintf("spec.allocationPools has two pools that overlap: %s to %s, and %s to %s",
				before.Start, before.End, pool.Start, pool.End)
		}
	}
	return ""
}

func readNameservers(desired *Desired, spec samplecrdv1.NetworkSpec) (problem string) {
	for i, text := range spec.DNSNameservers {
		address, err := parseAddr(text)
		switch {
		case err != nil:
			return fmt.Sprintf("spec.dnsNameservers[%d] %q is not an IP address, such as 192.168.0.53", i, text)
		case desired.isOtherVersion(address):
			return fmt.Sprintf("spec.dnsNameservers[%d] %s does not have the IP version of spec.cidr", i, address)
		case slices.Contains(desired.Nameservers, address):
			return fmt.Sprintf("spec.dnsNameservers contains %s twice", address)
		}
		desired.Nameservers = append(desired.Nameservers, address)
	}
	return ""
}

func readHostRoutes(desired *Desired, spec samplecrdv1.NetworkSpec) (problem string) {
	for i, given := range spec.HostRoutes {
		destination, err := netip.ParsePrefix(given.Destination)
		nextHop, hopErr := parseAddr(given.NextHop)
		route := neutron.HostRoute{Destination: destination, NextHop: nextHop}
		switch {
		case err != nil || destination.Addr().Is4In6() || destination != destination.Masked():
			return fmt.Sprintf("spec.hostRoutes[%d].destination %q is not a range in CIDR notation without host bits, "+
				"such as 10.20.0.0/16", i, given.Destination)
		case hopErr != nil:
			return fmt.Sprintf("spec.hostRoutes[%d].nextHop %q is not an IP address, such as 192.168.0.2", i, given.NextHop)
		case desired.isOtherVersion(nextHop) || destination.Addr().Is4() != nextHop.Is4():
			return fmt.Sprintf("spec.hostRoutes[%d] to %s via %s must have the IP version of spec.cidr in both addresses",
				i, destination, nextHop)
		case slices.Contains(desired.HostRoutes, route):
			return fmt.Sprintf("spec.hostRoutes contains the route to %s via %s twice", destination, nextHop)
		}
		desired.HostRoutes = append(desired.HostRoutes, route)
	}
	return ""
}

func readDHCP(desired *Desired, spec samplecrdv1.NetworkSpec) (problem string) {
	desired.DHCP = spec.EnableDHCP
	if spec.IPv6 == nil {
		return ""
	}
	desired.AddressMode, desired.RAMode = string(spec.IPv6.AddressMode), string(spec.IPv6.RAMode)
	modes := []samplecrdv1.IPv6Mode{spec.IPv6.AddressMode, spec.IPv6.RAMode}
	requires64 := slices.ContainsFunc(modes, func(mode samplecrdv1.IPv6Mode) bool {
		return mode == samplecrdv1.IPv6ModeSLAAC || mode == samplecrdv1.IPv6ModeDHCPv6Stateless
	})
	switch {
	case desired.AddressMode+desired.RAMode == "":
		return "spec.ipv6 is empty: set addressMode, raMode or both, or omit ipv6"
	case desired.CIDR.IsValid() && desired.CIDR.Addr().Is4():
		return fmt.Sprintf("spec.ipv6 requires an IPv6 range, but spec.cidr is %s: omit ipv6, or use an IPv6 range",
			desired.CIDR)
	case desired.DHCP != nil && !*desired.DHCP:
		return "spec.ipv6 requires DHCP, but enableDHCP is false: omit enableDHCP or ipv6"
	case desired.AddressMode != "" && desired.RAMode != "" && desired.AddressMode != desired.RAMode:
		return fmt.Sprintf("spec.ipv6 has the address mode %s and the RA mode %s: they must be the same",
			desired.AddressMode, desired.RAMode)
	case requires64 && desired.SubnetPool != nil && !slices.Contains([]int{0, 64}, desired.SubnetPool.PrefixLength):
		return fmt.Sprintf("spec.ipv6 has a mode in which hosts generate their own addresses, which requires a /64, "+
			"but spec.subnetPool.prefixLength is %d", desired.SubnetPool.PrefixLength)
	case requires64 && desired.CIDR.IsValid() && desired.CIDR.Bits() != 64:
		return fmt.Sprintf("spec.ipv6 has a mode in which hosts generate their own addresses, which requires a /64, "+
			"but spec.cidr is %s", desired.CIDR)
	}
	return ""
}

func readSettings(desired *Desired, spec samplecrdv1.NetworkSpec) (problem string) {
	settings := neutron.NetworkSettings{AdminStateUp: spec.AdminStateUp, PortSecurity: spec.PortSecurityEnabled}
	if spec.MTU != nil {
		settings.MTU = new(int(*spec.MTU))
	}
	if spec.DNSDomain != "" {
		settings.DNSDomain = new(strings.ToLower(strings.TrimSuffix(spec.DNSDomain, ".") + "."))
	}
	switch {
	case spec.NetworkID != "" && (settings != neutron.NetworkSettings{} || len(spec.Tags) > 0):
		return "spec.networkID names a network to adopt, which is not changed: " +
			"omit mtu, adminStateUp, portSecurityEnabled, dnsDomain and tags"
	case spec.MTU != nil && (*spec.MTU < 68 || *spec.MTU > 65535):
		return fmt.Sprintf("spec.mtu is %d: it must be from 68 to 65535", *spec.MTU)
	case spec.MTU != nil && *spec.MTU < 1280 && desired.CIDR.IsValid() && desired.CIDR.Addr().Is6():
		return fmt.Sprintf("spec.mtu is %d: it must be at least 1280 for IPv6 (RFC 8200)", *spec.MTU)
	}
	desired.Settings = settings
	desired.Tags = slices.Sorted(slices.Values(spec.Tags))
	return ""
}

func readRouter(desired *Desired, spec samplecrdv1.NetworkSpec) (problem string) {
	router := spec.Router
	switch {
	case router == nil:
		return ""
	case (router.Name == "") == (router.ID == ""):
		return "spec.router must have either a name or an id"
	case desired.NoGateway:
		return "spec.router requires a gateway, which is the address of the router in the subnet, but " +
			"spec.gateway is None: omit router, or set gateway to an address or omit it"
	}
	desired.Router = &Router{ID: router.ID, Name: router.Name}
	return ""
}

// parseAddr parses an address. It accepts no zone and no IPv4 address in IPv6
// form.
func parseAddr(text string) (netip.Addr, error) {
	address, err := netip.ParseAddr(text)
	if err == nil && (address.Is4In6() || address.Zone() != "") {
		err = fmt.Errorf("%q is not a plain IP address", text)
	}
	return address, err
}

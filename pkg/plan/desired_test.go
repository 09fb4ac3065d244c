package plan_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// TestInvalidSpecs: the sentence for an invalid spec names the field, and the cure. The
// CRD rejects most of them before; the test of the CRD has the specs that are valid.
func TestInvalidSpecs(t *testing.T) {
	for text, want := range map[string]string{
		"": "spec must have either cidr, such as 192.168.0.0/16, or subnetPool",
		"cidr: 10.0.0.0/24, subnetPool: {name: p}": "either cidr",
		"cidr: 192.168.0.0/33":                     `spec.cidr "192.168.0.0/33" is not a range in CIDR notation`,
		"cidr: '::ffff:192.168.0.0/112'":           "not a range",
		"cidr: 'fe80::%eth0/64'":                   "not a range",
		"cidr: 10.0.0.0/31":                        "from /1 to /30, or set gateway to None and enableDHCP to false",
		"cidr: 10.0.0.0/31, enableDHCP: false":     "leaves no room",
		"cidr: 'fd00::/127'":                       "from /1 to /126",
		"cidr: 0.0.0.0/0":                          "from /1 to /30",
		"cidr: 224.0.0.0/4":                        "multicast or loopback range",
		"cidr: 'ff05::/64'":                        "multicast or loopback range",
		"cidr: 127.0.0.0/24":                       "use another range, such as 192.168.0.0/16",
		"cidr: 0.0.0.0/8":                          "begins with 0.0.0.0",
		"cidr: '::1:2:3/64'":                       "begins with 0.0.0.0 or ::",

		"cidr: 10.0.0.0/24, gateway: router":            `spec.gateway "router" is not an IP address, such as 10.0.0.1, nor None`,
		"cidr: 10.0.0.0/24, gateway: none":              "nor None",
		"cidr: 'fe80::/64', gateway: 'fe80::1%eth0'":    "is not an IP address",
		"cidr: 10.0.0.0/24, gateway: '::ffff:10.0.0.1'": "is not an IP address",
		"cidr: 128.0.0.0/1, gateway: 230.0.0.1":         "multicast or loopback address",
		"cidr: 126.0.0.0/7, gateway: 127.0.0.1":         "multicast or loopback address",
		"cidr: 10.0.0.0/24, gateway: 10.0.1.1":          "use an address from 10.0.0.1 to 10.0.0.254",
		"cidr: 10.0.0.0/24, gateway: 'fd00::1'":         "not inside",
		"cidr: 10.0.0.0/24, gateway: 10.0.0.0":          "network address of spec.cidr: use another one, such as 10.0.0.1",
		"cidr: 10.0.0.0/24, gateway: 10.0.0.255":        "broadcast address",

		"subnetPool: {name: p, id: i}":                                               "either a name or an id",
		"subnetPool: {name: p, prefixLength: 127}":                                   "prefixLength is 127: it must be from 1 to 126",
		"subnetPool: {name: p, prefixLength: -1}":                                    "prefixLength is -1",
		"subnetPool: {name: p}, gateway: 10.0.0.1":                                   "the range is not known in advance: omit gateway",
		"subnetPool: {name: p}, allocationPools: [{start: 10.0.0.2, end: 10.0.0.3}]": "the range is not known in advance: omit allocationPools",

		"cidr: 10.0.0.0/24, allocationPools: [{start: 10.0.0.100, end: 10.0.0.200}, {start: 10.0.0.2, end: 10.0.0.100}]": "two pools that overlap: 10.0.0.2 to 10.0.0.100, and 10.0.0.100 to 10.0.0.200",
		"cidr: 10.0.0.0/24, allocationPools: [{start: 10.0.0.9, end: 10.0.0.2}]":                                         "ends before it starts",
		"cidr: 10.0.0.0/24, allocationPools: [{start: 10.0.0.1, end: 10.0.0.9}]":                                         "contains the gateway 10.0.0.1",
		"cidr: 10.0.0.0/24, allocationPools: [{start: 10.0.1.1, end: 10.0.1.9}]":                                         "is not inside the host addresses of spec.cidr: use addresses from 10.0.0.1 to 10.0.0.254",
		"cidr: 10.0.0.0/24, allocationPools: [{start: 10.0.0.2, end: 10.0.0.255}]":                                       "is not inside the host addresses",
		"cidr: 10.0.0.0/24, allocationPools: [{start: 10.0.0.2, end: there}]":                                            `from "10.0.0.2" to "there" must have an IP address`,

		"cidr: 10.0.0.0/24, dnsNameservers: [dns.example.org]":                                                                          "is not an IP address",
		"cidr: 10.0.0.0/24, dnsNameservers: [9.9.9.9, 9.9.9.9]":                                                                         "contains 9.9.9.9 twice",
		"cidr: 10.0.0.0/24, dnsNameservers: ['fd00::1']":                                                                                "does not have the IP version of spec.cidr",
		"cidr: 10.0.0.0/24, hostRoutes: [{destination: 10.9.0.1/16, nextHop: 10.0.0.9}]":                                                "without host bits",
		"cidr: 10.0.0.0/24, hostRoutes: [{destination: there/16, nextHop: 10.0.0.9}]":                                                   `"there/16" is not a range in CIDR notation`,
		"cidr: 10.0.0.0/24, hostRoutes: [{destination: '::ffff:10.9.0.0/112', nextHop: 10.0.0.9}]":                                      "is not a range in CIDR notation",
		"cidr: 10.0.0.0/24, hostRoutes: [{destination: 10.9.0.0/16, nextHop: router}]":                                                  "is not an IP address",
		"cidr: 10.0.0.0/24, hostRoutes: [{destination: 'fd00::/16', nextHop: 'fd00::1'}]":                                               "must have the IP version of spec.cidr in both addresses",
		"cidr: 10.0.0.0/24, hostRoutes: [{destination: 'fd00::/16', nextHop: 10.0.0.1}]":                                                "must have the IP version of spec.cidr in both addresses",
		"cidr: 10.0.0.0/24, hostRoutes: [{destination: 10.9.0.0/16, nextHop: 10.0.0.9}, {destination: 10.9.0.0/16, nextHop: 10.0.0.9}]": "contains the route to 10.9.0.0/16 via 10.0.0.9 twice",

		"cidr: 10.0.0.0/24, ipv6: {raMode: slaac}":                                  "requires an IPv6 range, but spec.cidr is 10.0.0.0/24",
		"cidr: 'fd00::/64', ipv6: {}":                                               "spec.ipv6 is empty",
		"cidr: 'fd00::/64', ipv6: {raMode: slaac}, enableDHCP: false":               "requires DHCP",
		"cidr: 'fd00::/64', ipv6: {raMode: slaac, addressMode: dhcpv6-stateful}":    "must be the same",
		"cidr: 'fd00::/63', ipv6: {raMode: slaac}":                                  "requires a /64, but spec.cidr is fd00::/63",
		"subnetPool: {name: p, prefixLength: 80}, ipv6: {raMode: dhcpv6-stateless}": "requires a /64, but spec.subnetPool.prefixLength is 80",

		"cidr: 10.0.0.0/24, mtu: 67":                        "from 68 to 65535",
		"cidr: 10.0.0.0/24, mtu: 65536":                     "from 68 to 65535",
		"cidr: 'fd00::/64', mtu: 1279":                      "at least 1280",
		"cidr: 10.0.0.0/24, networkID: net-1, mtu: 1400":    "which is not changed: omit mtu",
		"cidr: 10.0.0.0/24, networkID: net-1, tags: [a]":    "which is not changed",
		"cidr: 10.0.0.0/24, router: {}":                     "spec.router must have either a name or an id",
		"cidr: 10.0.0.0/24, router: {id: r}, gateway: None": "but spec.gateway is None: omit router",
	} {
		if got := desiredFor(text).Invalid; !strings.Contains(got, want) {
			t.Errorf("%s: Invalid = %q, want a sentence with %q", text, got, want)
		}
	}
}

// TestValidLimits: these specs are just valid.
func TestValidLimits(t *testing.T) {
	for _, text := range []string{
		"cidr: 192.0.0.0/2", "cidr: 10.0.0.0/24, mtu: 68", "cidr: 10.0.0.0/24, mtu: 65535", "cidr: 'fd00::/64', mtu: 1280",
		"cidr: 'fd00::/126', gateway: 'fd00::3'", "subnetPool: {name: p, prefixLength: 126}",
		"cidr: 'fd00::/63', ipv6: {raMode: dhcpv6-stateful}", "cidr: 10.0.0.0/31, gateway: None, enableDHCP: false",
		"cidr: 10.0.0.0/24, allocationPools: [{start: 10.0.0.2, end: 10.0.0.9}, {start: 10.0.0.10, end: 10.0.0.20}]",
		"cidr: 10.0.0.0/24, allocationPools: [{start: 10.0.0.1, end: 10.0.0.9}], networkID: net-1", // with another gateway
	} {
		if got := desiredFor(text).Invalid; got != "" {
			t.Errorf("%s: Invalid = %q", text, got)
		}
	}
}

// TestPools has the pools of ranges, each with its gateway if it has one.
func TestPools(t *testing.T) {
	for text, want := range map[string]string{
		"192.168.0.0/16 192.168.0.1":         "192.168.0.2-192.168.255.254",
		"192.168.0.0/16 192.168.1.1":         "192.168.0.1-192.168.1.0 192.168.1.2-192.168.255.254",
		"10.0.0.0/24 10.0.0.254":             "10.0.0.1-10.0.0.253",
		"10.0.64.0/18 10.0.64.1":             "10.0.64.2-10.0.127.254",
		"10.0.0.0/29":                        "10.0.0.1-10.0.0.6",
		"10.0.0.0/30 10.0.0.1":               "10.0.0.2-10.0.0.2",
		"10.0.0.0/30 10.0.9.1":               "10.0.0.1-10.0.0.2", // the gateway is outside
		"10.0.0.0/30 fd00::1":                "10.0.0.1-10.0.0.2",
		"10.0.0.8/31":                        "10.0.0.8-10.0.0.9",
		"10.0.0.9/32":                        "10.0.0.9-10.0.0.9",
		"255.255.255.248/29 255.255.255.254": "255.255.255.249-255.255.255.253", // the end of the address space
		"fd00::/64 fd00::1":                  "fd00::2-fd00::ffff:ffff:ffff:ffff",
		"fd00::/126 fd00::3":                 "fd00::1-fd00::2",
		"fd00::8/127":                        "fd00::9-fd00::9",
		"fd00::9/128":                        "fd00::9-fd00::9",
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffc/126 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff": "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffd-ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe",
	} {
		cidr, gateway, _ := strings.Cut(text, " ")
		address, _ := netip.ParseAddr(gateway) // the zero Addr for none
		var got []string
		for _, pool := range plan.Pools(prefix(cidr), address) {
			got = append(got, pool.Start.String()+"-"+pool.End.String())
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("Pools() of %s (-want +got):\n%s", text, diff)
		}
	}
}

// FuzzDesiredFor checks that each spec is invalid, or describes a subnet that
// Neutron accepts.
func FuzzDesiredFor(f *testing.F) {
	f.Add("192.168.1.0/16", "192.168.1.1", "192.168.2.0", "192.168.3.0", "10.0.0.0/8")
	f.Add("fd00::/126", "fd00::3", "fd00::1", "fd00::2", "::/0")
	f.Add("255.255.255.252/30", "", "", "", "")
	f.Add("10.0.0.0/24", "None", "10.0.0.1", "10.0.0.1", "10.9.0.0/24")
	f.Add("::ffff:1.2.3.4/120", "::ffff:1.2.3.5", "::ffff:1.2.3.6", "1.2.3.7", "0.0.0.0/0")
	f.Fuzz(func(t *testing.T, cidr, gateway, start, end, destination string) {
		spec := spec{CIDR: cidr, Gateway: gateway}
		if start != "" {
			spec.AllocationPools = []samplecrdv1.AllocationPool{{Start: start, End: end}}
			spec.DNSNameservers = []string{end}
			spec.HostRoutes = []samplecrdv1.HostRoute{{Destination: destination, NextHop: start}}
		}
		got := plan.DesiredFor(owner, spec)
		if got.Invalid != "" {
			return
		}
		if got.CIDR != got.CIDR.Masked() || got.Gateway.IsValid() && (!got.CIDR.Contains(got.Gateway) || got.Gateway == got.CIDR.Addr()) {
			t.Fatalf("DesiredFor(%+v) = %v, gateway %v", spec, got.CIDR, got.Gateway)
		}
		actualGateway := got.Gateway
		if !actualGateway.IsValid() && !got.NoGateway {
			actualGateway = got.CIDR.Addr().Next()
		}
		for _, pool := range append(plan.Pools(got.CIDR, actualGateway), got.Pools...) {
			if pool.End.Less(pool.Start) || !got.CIDR.Contains(pool.Start) || !got.CIDR.Contains(pool.End) || contains(pool, actualGateway) {
				t.Fatalf("DesiredFor(%+v): pool %v, gateway %v", spec, pool, actualGateway)
			}
		}
	})
}

func contains(pool neutron.Pool, address netip.Addr) bool {
	return address.IsValid() && !address.Less(pool.Start) && !pool.End.Less(address)
}

// TestWords: observers see the desired and the actual state in words.
func TestWords(t *testing.T) {
	for want, desired := range map[string]plan.Desired{
		"the Network is deleted; what is in Neutron stays":             retain,
		"the Network is deleted: no subnet; the adopted network stays": release,
		"the Network is deleted: nothing in Neutron":                   absent,
		"invalid: no": {Invalid: "no"},
		"a network, subnet 192.168.0.0/16, gateway 192.168.0.1":                present,
		"the network net-1, subnet 192.168.0.0/16, gateway 192.168.0.1":        adopt,
		"a network, subnet 10.0.0.0/24, no gateway, tags a b":                  desiredFor("cidr: 10.0.0.0/24, gateway: None, tags: [b, a]"),
		"a network, subnet a /26 from subnet pool campus, tags a, router id-1": desiredFor("subnetPool: {name: campus, prefixLength: 26}, tags: [a], router: {id: id-1}"),
	} {
		if got := desired.Words(); got != want {
			t.Errorf("the desired state is %q, want %q", got, want)
		}
	}
	for want, actual := range map[string]plan.Actual{
		"no finalizer, so nothing in Neutron":                                               newObject,
		"no network in the cache of Neutron's state":                                        with(newObject, func(a *plan.Actual) { a.Cached = true }),
		"no network recorded in the status":                                                 fresh,
		"network net-1, no subnet, in the cache of Neutron's state":                         with(foundByMarker(fresh, empty), func(a *plan.Actual) { a.Cached = true }),
		"network net-1, subnet 192.168.0.0/16, gateway 192.168.0.1, recorded in the status": foundSubnets(subnet),
		"network net-1, subnet 192.168.0.0/16, recorded in the status":                      foundSubnets(with(subnet, func(s *sub) { s.Gateway = none })),
	} {
		if got := actual.Words(present); got != want {
			t.Errorf("the actual state is %q, want %q", got, want)
		}
	}
}

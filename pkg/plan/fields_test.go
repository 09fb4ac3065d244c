package plan_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// allExtensions are the extensions that a plan can require.
var allExtensions = []string{neutron.ExtensionMTU, neutron.ExtensionPortSecurity, neutron.ExtensionDNS, neutron.ExtensionTags, neutron.ExtensionSubnetPools, neutron.ExtensionRouter}

// found returns the state after our network, with a change, and our subnet were
// found in a cloud with all extensions.
func found(change func(*net)) plan.Actual {
	return foundByMarker(recorded, with(network, change)).After(findSubnets, ourSubnet).After(plan.FindExtensions{}, allExtensions)
}

// foundSubnet returns that state with a change of the subnet.
func foundSubnet(change func(*sub)) plan.Actual {
	return foundSubnets(with(subnet, change)).After(plan.FindExtensions{}, allExtensions)
}

func unchanged[T any](*T) {}

func pool(start, end string) []neutron.Pool {
	return []neutron.Pool{{Start: addr(start), End: addr(end)}}
}

// updateNetwork returns the step that changes one setting of our network.
func updateNetwork(change plan.Change, settings neutron.NetworkSettings) plan.Step {
	return plan.UpdateNetwork{ID: "net-1", Changes: []plan.Change{change}, Update: neutron.NetworkUpdate{
		Name: "default/example", Description: ours, NetworkSettings: settings, Revision: 3,
	}}
}

var (
	withMTU  = desiredFor(first + "mtu: 1400")
	withDNS  = desiredFor(first + "dnsDomain: Example.org")
	withTags = desiredFor(first + "tags: [blue, amber]")
	withPool = desiredFor("subnetPool: {name: campus, prefixLength: 24}")
	slaac    = desiredFor("cidr: fd00::/64, ipv6: {addressMode: slaac, raMode: slaac}")

	noDNS = "this cloud lacks a Neutron extension: spec.dnsDomain requires \"dns-integration\". Everything else is as desired. Omit the field, or ask the operator of the cloud for the extension."
)

var networkRows = map[string]row{
	"settings, no network, extensions not looked for": {withMTU, foundByMarker(fresh), plan.FindExtensions{}},
	"settings, no network":                            {withMTU, foundByMarker(fresh).After(plan.FindExtensions{}, allExtensions), plan.CreateNetwork{Network: neutron.NewNetwork{Name: "default/example", Description: owner.NetworkMarker("", false), NetworkSettings: neutron.NetworkSettings{MTU: new(1400)}}}},
	"settings, no network, and an extension missing":  {withMTU, foundByMarker(fresh).After(plan.FindExtensions{}, []string{}), newNetwork},
	"settings that every Neutron has, no network":     {desiredFor(first + "adminStateUp: false"), foundByMarker(fresh), plan.CreateNetwork{Network: neutron.NewNetwork{Name: "default/example", Description: owner.NetworkMarker("", false), NetworkSettings: neutron.NetworkSettings{AdminStateUp: new(false)}}}},
	"another MTU, extensions not looked for":          {withMTU, foundByMarker(recorded, network), plan.FindExtensions{}},
	"the right MTU, extensions not looked for":        {withMTU, foundByMarker(recorded, with(network, func(n *net) { n.MTU = new(1400) })).After(findSubnets, ourSubnet), plan.Nothing{}},
	"MTU removed from the spec, with which the network was created": {present, foundByMarker(with(recorded, func(a *plan.Actual) { a.MTU, a.DefaultMTU = 1400, 0 }), with(network, func(n *net) { n.MTU = new(1400) })).After(plan.FindExtensions{}, allExtensions),
		updateNetwork(plan.Change{What: "MTU", From: "1400", To: "the largest allowed"}, neutron.NetworkSettings{MTU: new(0)})},
	"MTU in a status that is older than the field": {present, foundByMarker(with(recorded, func(a *plan.Actual) { a.MTU, a.DefaultMTU = 0, 0 }), with(network, func(n *net) { n.MTU = new(9000) })).After(findSubnets, ourSubnet), plan.Nothing{}},
	"MTU of a network that no status records":      {present, foundByMarker(fresh, with(network, func(n *net) { n.MTU = new(9000) })).After(findSubnets, ourSubnet), plan.Nothing{}},
	"MTU of a network that no status records, and the spec was edited": {with(present, func(d *plan.Desired) { d.Edited = true }), foundByMarker(fresh, with(network, func(n *net) { n.MTU = new(1400) })).After(plan.FindExtensions{}, allExtensions),
		updateNetwork(plan.Change{What: "MTU", From: "1400", To: "the largest allowed"}, neutron.NetworkSettings{MTU: new(0)})},
	"MTU, just left to Neutron, which chose another one than before": {present, found(unchanged).After(plan.UpdateNetwork{Update: neutron.NetworkUpdate{NetworkSettings: neutron.NetworkSettings{MTU: new(0)}}}, with(network, func(n *net) { n.MTU = new(8950) })), plan.Nothing{}},
	"DNS domain without its extension":                               {withDNS, found(unchanged).After(plan.FindExtensions{}, []string{}), plan.Blocked{Reason: plan.ReasonExtensionMissing, Message: noDNS}},
	"DNS domain without its extension, and the subnet is missing":    {withDNS, foundByMarker(recorded, empty).After(plan.FindExtensions{}, []string{}), newSubnet},
	"settings of a network that was adopted":                         {adopt, foundByID(recorded, with(unmarked, func(n *net) { n.AdminStateUp, n.Tags = new(false), []string{"theirs"} })).After(findSubnets, ourSubnet), plan.Nothing{}},
}

// TestSettings checks which differences of our network and subnet are corrected.
// FuzzConverge checks the values that the updates set.
func TestSettings(t *testing.T) {
	someRoutes := []neutron.HostRoute{{Destination: prefix("10.0.0.0/16"), NextHop: addr("192.168.0.9")}, {Destination: prefix("10.1.0.0/16"), NextHop: addr("192.168.0.9")}}
	servers := []netip.Addr{addr("9.9.9.9"), addr("1.1.1.1")}
	first, second := pool("192.168.0.2", "192.168.6.255"), pool("192.168.7.0", "192.168.255.254")
	for name, test := range map[string]struct {
		spec    string // in YAML, beside cidr
		network func(*net)
		subnet  func(*sub)
		want    string
	}{
		"as desired":                  {"", nil, nil, "nothing to do"},
		"another MTU":                 {"mtu: 1400", nil, nil, "update network net-1: MTU 1450 → 1400"},
		"MTU removed from the spec":   {"", func(n *net) { n.MTU = new(1400) }, nil, "update network net-1: MTU 1400 → the largest allowed"},
		"MTU unknown":                 {"", func(n *net) { n.MTU = nil }, nil, "nothing to do"},
		"MTU unknown, one desired":    {"mtu: 1400", func(n *net) { n.MTU = nil }, nil, "update network net-1: MTU unknown → 1400"},
		"down":                        {"", func(n *net) { n.AdminStateUp = new(false) }, nil, "update network net-1: admin state up false → true"},
		"without port security":       {"", func(n *net) { n.PortSecurity = new(false) }, nil, "update network net-1: port security false → true"},
		"another DNS domain":          {"dnsDomain: Example.org", func(n *net) { n.DNSDomain = new("") }, nil, "update network net-1: DNS domain none → example.org."},
		"DNS domain not desired":      {"", func(n *net) { n.DNSDomain = new("theirs.") }, nil, "update network net-1: DNS domain theirs. → none"},
		"a foreign tag":               {"", func(n *net) { n.Tags = []string{"theirs"} }, nil, "nothing to do"},
		"another gateway":             {"gateway: 192.168.1.1", nil, nil, "update subnet: gateway 192.168.0.1 → 192.168.1.1"},
		"no gateway, one is desired":  {"", nil, func(s *sub) { s.Gateway = none }, "update subnet: gateway none → 192.168.0.1"},
		"no gateway desired":          {"gateway: None", nil, nil, "update subnet: gateway 192.168.0.1 → none"},
		"other pools":                 {"allocationPools: [{start: 192.168.0.10, end: 192.168.0.20}]", nil, nil, "update subnet: allocation pools 192.168.0.2-192.168.255.254 → 192.168.0.10-192.168.0.20"},
		"pools removed":               {"", nil, func(s *sub) { s.Pools = nil }, "update subnet: allocation pools none → 192.168.0.2-192.168.255.254"},
		"equal pools, in two parts":   {"", nil, func(s *sub) { s.Pools = slices.Concat(second, first) }, "nothing to do"},
		"DHCP off":                    {"", nil, func(s *sub) { s.DHCP = false }, "update subnet: DHCP false → true"},
		"name servers swapped":        {"dnsNameservers: [1.1.1.1, 9.9.9.9]", nil, func(s *sub) { s.Nameservers = servers }, "update subnet: DNS name servers 9.9.9.9 and 1.1.1.1 → 1.1.1.1 and 9.9.9.9"},
		"name servers removed":        {"", nil, func(s *sub) { s.Nameservers = servers[:1] }, "update subnet: DNS name servers 9.9.9.9 → none"},
		"host routes swapped":         {"hostRoutes: [{destination: 10.1.0.0/16, nextHop: 192.168.0.9}, {destination: 10.0.0.0/16, nextHop: 192.168.0.9}]", nil, func(s *sub) { s.HostRoutes = someRoutes }, "nothing to do"},
		"host routes removed":         {"", nil, func(s *sub) { s.HostRoutes = someRoutes[:1] }, "update subnet: host routes 10.0.0.0/16 via 192.168.0.9 → none"},
		"several differences at once": {"", nil, func(s *sub) { s.DHCP, s.Nameservers = false, servers[:1] }, "update subnet: DHCP false → true, DNS name servers 9.9.9.9 → none"},
	} {
		t.Run(name, func(t *testing.T) {
			network, subnet := network, subnet
			if test.network != nil {
				test.network(&network)
			}
			if test.subnet != nil {
				test.subnet(&subnet)
			}
			actual := foundByMarker(recorded, network).After(findSubnets, []sub{subnet}).After(plan.FindExtensions{}, allExtensions)
			if got := plan.Next(desiredFor("cidr: 192.168.0.0/16, "+test.spec), actual).String(); got != test.want {
				t.Errorf("Next() = %q, want %q", got, test.want)
			}
		})
	}
}

var tagRows = map[string]row{
	"tags, extensions not looked for":         {withTags, foundSubnets(subnet), plan.FindExtensions{}},
	"tags that are not recorded":              {withTags, found(unchanged), plan.RecordTags{Tags: []string{"amber", "blue"}}},
	"tags, of which another client added one": {withTags, found(func(n *net) { n.Tags = []string{"blue"} }), plan.RecordTags{Tags: []string{"amber"}}},
	"tags that are recorded":                  {withTags, found(func(n *net) { n.Tags = []string{"blue", "theirs"} }).After(plan.RecordTags{Tags: []string{"amber", "blue"}}, nil), plan.AddTag{ID: "net-1", Tag: "amber"}},
	"tags, added just now":                    {withTags, found(func(n *net) { n.Tags = []string{"blue"} }).After(plan.AddTag{ID: "net-1", Tag: "amber"}, nil), plan.Nothing{}},
	"a tag that is no longer desired":         {present, found(func(n *net) { n.Tags = []string{"theirs", "blue"} }).After(plan.RecordTags{Tags: []string{"blue"}}, nil), plan.RemoveTag{ID: "net-1", Tag: "blue"}},
	"a tag that was removed just now":         {present, found(func(n *net) { n.Tags = []string{"theirs", "blue"} }).After(plan.RecordTags{Tags: []string{"blue"}}, nil).After(plan.RemoveTag{ID: "net-1", Tag: "blue"}, nil), plan.Nothing{}},
	"tags without their extension":            {withTags, found(unchanged).After(plan.FindExtensions{}, []string{}), "blocked: ExtensionMissing: this cloud lacks a Neutron extension: spec.tags requires \"standard-attr-tag\". Everything else is as desired. Omit the field, or ask the operator of the cloud for the extension."},
	"a duplicate with our tags":               {withTags, foundByMarker(recorded, network, with(duplicate, func(n *net) { n.Tags = []string{"blue"} })).After(findSubnets, ourSubnet).After(plan.AddTag{ID: "net-1", Tag: "amber"}, nil).After(plan.AddTag{ID: "net-1", Tag: "blue"}, nil), deleteDuplicate},
}

var subnetRows = map[string]row{
	"another RA mode than that of an adopted subnet": {
		adopting(with(slaac, func(d *plan.Desired) { d.AddressMode = "" })),
		foundToAdopt(recorded, with(subnet, func(s *sub) { s.Description, s.CIDR = "mine", prefix("fd00::/64") })),
		"blocked: NotOurs: subnet sub-1 with the range fd00::/64 was adopted: it is not deleted to make room for fd00::/64 with RA mode slaac. Delete the subnet, or restore the previous spec.",
	},
	"no subnet, all fields": {
		desiredFor("cidr: 192.168.0.0/16, gateway: None, enableDHCP: false, dnsNameservers: [192.168.0.53, 192.168.0.54], " +
			"allocationPools: [{start: 192.168.9.0, end: 192.168.9.9}, {start: 192.168.0.1, end: 192.168.0.9}], " +
			"hostRoutes: [{destination: 10.0.0.0/8, nextHop: 192.168.0.9}]"), foundByMarker(recorded, empty),
		plan.CreateSubnet{Subnet: neutron.NewSubnet{
			NetworkID: "net-1", Name: "default/example", Description: marker, CIDR: prefix("192.168.0.0/16"),
			SubnetSettings: neutron.SubnetSettings{
				Gateway:     new(netip.Addr),
				Pools:       []neutron.Pool{{Start: addr("192.168.0.1"), End: addr("192.168.0.9")}, {Start: addr("192.168.9.0"), End: addr("192.168.9.9")}},
				DHCP:        new(false),
				Nameservers: &[]netip.Addr{addr("192.168.0.53"), addr("192.168.0.54")},
				HostRoutes:  &[]neutron.HostRoute{{Destination: prefix("10.0.0.0/8"), NextHop: addr("192.168.0.9")}},
			},
		}},
	},
	"another IPv6 mode": {slaac, foundSubnet(func(s *sub) { s.CIDR = prefix("fd00::/64") }), plan.DeleteSubnet{ID: "sub-1", Revision: 4, From: prefix("fd00::/64"), For: "fd00::/64 with address mode slaac and RA mode slaac"}},
	"an edit of the range, from one subnet that was adopted to another one": {adopting(desiredFor("cidr: 10.9.0.0/24")), foundToAdopt(recorded, with(subnet, func(s *sub) { s.Description = "mine" }), foreign), plan.Nothing{}},
	"an adopted subnet keeps what the spec leaves out": {
		adopting(desiredFor("cidr: 192.168.0.0/16")), foundToAdopt(fresh, with(subnet, func(s *sub) {
			s.Description, s.Gateway, s.DHCP, s.Nameservers, s.Pools, s.AddressMode = "mine", addr("192.168.0.254"), false, []netip.Addr{addr("9.9.9.9")}, pool("192.168.0.7", "192.168.0.8"), ""
		})),
		plan.Nothing{},
	},
}

// fromPool is our subnet with a range from the subnet pool.
func fromPool(s *sub) {
	s.CIDR, s.SubnetPoolID, s.Gateway = prefix("10.7.0.0/24"), "pool-1", addr("10.7.0.1")
	s.Pools = plan.Pools(s.CIDR, s.Gateway)
}

var (
	ready      = foundByMarker(fresh, empty).After(plan.FindExtensions{}, allExtensions) // to create a subnet
	findCampus = plan.FindSubnetPool{Filter: neutron.SubnetPoolFilter{Name: "campus"}}
	campusOnly = []neutron.SubnetPool{campus}
	campus     = neutron.SubnetPool{ID: "pool-1", Name: "campus", IPVersion: 4}
	poolStatus = with(recorded, func(a *plan.Actual) { a.SubnetPoolID, a.SubnetPoolName = "pool-1", "campus" })
	replaced   = plan.DeleteSubnet{ID: "sub-1", Revision: 4, From: prefix("192.168.0.0/16"), For: "a /24 from subnet pool campus"}
)

var subnetPoolRows = map[string]row{
	"two subnets from a subnet pool that is unknown":                {withPool, foundByMarker(recorded, network).After(plan.FindExtensions{}, allExtensions).After(findSubnets, []sub{with(subnet, fromPool), oldRange}), findCampus},
	"subnet pool, extensions not looked for":                        {withPool, foundByMarker(fresh, empty), plan.FindExtensions{}},
	"subnet pool, and this Neutron has none":                        {withPool, foundByMarker(fresh, empty).After(plan.FindExtensions{}, []string{}), "blocked: ExtensionMissing: this cloud lacks a Neutron extension: spec.subnetPool requires \"subnet_allocation\". Set spec.cidr instead, or ask the operator of the cloud for the extension."},
	"subnet pool not looked for":                                    {withPool, ready, findCampus},
	"subnet pool not looked for, by ID":                             {desiredFor("subnetPool: {id: pool-1}"), ready, plan.FindSubnetPool{Filter: neutron.SubnetPoolFilter{ID: "pool-1"}}},
	"no such subnet pool":                                           {withPool, ready.After(findCampus, []neutron.SubnetPool{}), `blocked: NotFound: subnet pool "campus", which spec.subnetPool names, does not exist, or the controller's project cannot see it.`},
	"several subnet pools of the name":                              {withPool, ready.After(findCampus, []neutron.SubnetPool{campus, {ID: "pool-0", Name: "campus", IPVersion: 4}}), `blocked: Ambiguous: Neutron has 2 subnet pools with the name "campus" (pool-0, pool-1). Set spec.subnetPool.id to one of these IDs, and remove spec.subnetPool.name.`},
	"subnet pool, no subnet":                                        {withPool, ready.After(findCampus, campusOnly), plan.CreateSubnet{Subnet: neutron.NewSubnet{NetworkID: "net-1", Name: "default/example", Description: marker, FromPool: &neutron.FromPool{SubnetPoolID: "pool-1", IPVersion: 4, PrefixLength: 24}}}},
	"subnet from the subnet pool that the status names":             {withPool, foundByMarker(poolStatus, network).After(findSubnets, []sub{with(subnet, fromPool)}), plan.Nothing{}},
	"subnet from a subnet pool, and the status has lost its name":   {withPool, foundSubnets(with(subnet, fromPool)).After(plan.FindExtensions{}, allExtensions), findCampus},
	"subnet that is not from the subnet pool":                       {withPool, foundSubnet(unchanged).After(findCampus, campusOnly), replaced},
	"subnet that is not from the subnet pool, which does not exist": {withPool, foundSubnet(unchanged).After(findCampus, []neutron.SubnetPool{}), `blocked: NotFound: subnet pool "campus", which spec.subnetPool names, does not exist, or the controller's project cannot see it.`},
	"subnet with another prefix length":                             {withPool, foundByMarker(poolStatus, network).After(plan.FindExtensions{}, allExtensions).After(findCampus, campusOnly).After(findSubnets, []sub{with(subnet, func(s *sub) { fromPool(s); s.CIDR = prefix("10.7.0.0/26") })}), plan.FindPorts{NetworkID: "net-1"}},
	"subnet with another prefix length, and the subnet pool not looked for": {
		withPool, foundByMarker(poolStatus, network).After(plan.FindExtensions{}, allExtensions).
			After(findSubnets, []sub{with(subnet, func(s *sub) { fromPool(s); s.CIDR = prefix("10.7.0.0/26") })}),
		plan.FindSubnetPool{Filter: neutron.SubnetPoolFilter{ID: "pool-1"}},
	},
	"a range from a subnet pool, and now the same range as cidr": {desiredFor("cidr: 10.7.0.0/24"), foundSubnet(fromPool), plan.Nothing{}},
	"two subnets from the subnet pool, and the status names one": {
		withPool, foundByMarker(poolStatus, network).After(findSubnets, []sub{
			with(subnet, func(s *sub) { fromPool(s); s.ID, s.CIDR = "sub-0", prefix("10.7.1.0/24") }), with(subnet, fromPool),
		}),
		plan.DeleteSubnet{Duplicate: true, ID: "sub-0", Revision: 4, From: prefix("10.7.1.0/24"), For: "a /24 from subnet pool campus"},
	},
	"two subnets from the subnet pool, and the status names none": {
		withPool, foundByMarker(fresh, network).After(plan.FindExtensions{}, allExtensions).After(findCampus, campusOnly).After(findSubnets, []sub{
			with(subnet, fromPool), with(subnet, func(s *sub) { fromPool(s); s.ID, s.CIDR = "sub-2", prefix("10.7.1.0/24") }),
		}),
		plan.Nothing{},
	},
}

// TestSubnetPoolFits checks which subnet pools can be used for which spec.
func TestSubnetPoolFits(t *testing.T) {
	ipv4 := neutron.SubnetPool{ID: "pool-1", Name: "campus", IPVersion: 4, MinPrefixLength: 20, MaxPrefixLength: 28}
	ipv6 := neutron.SubnetPool{ID: "pool-1", Name: "campus", IPVersion: 6}
	for name, test := range map[string]struct {
		pool neutron.SubnetPool
		spec string // in YAML
		want string // a part of the message; empty if the subnet pool fits
	}{
		"its shortest prefix length":       {ipv4, "subnetPool: {name: campus, prefixLength: 20}", ""},
		"its longest prefix length":        {ipv4, "subnetPool: {name: campus, prefixLength: 28}", ""},
		"a shorter prefix length":          {ipv4, "subnetPool: {name: campus, prefixLength: 19}", "from /20 to /28, but spec.subnetPool.prefixLength is 19."},
		"a longer prefix length":           {ipv4, "subnetPool: {name: campus, prefixLength: 29}", "from /20 to /28, but spec.subnetPool.prefixLength is 29."},
		"no limit":                         {neutron.SubnetPool{ID: "pool-1", IPVersion: 4}, "subnetPool: {name: campus, prefixLength: 30}", ""},
		"too long for IPv4":                {neutron.SubnetPool{ID: "pool-1", IPVersion: 4}, "subnetPool: {name: campus, prefixLength: 31}", "IPv4 ranges, but spec.subnetPool.prefixLength is 31; the maximum for IPv4 is 30."},
		"IPv6 can be longer":               {ipv6, "subnetPool: {name: campus, prefixLength: 64}", ""},
		"address mode":                     {ipv6, "subnetPool: {name: campus}, ipv6: {addressMode: slaac}", ""},
		"address mode for IPv4":            {ipv4, "subnetPool: {name: campus}, ipv6: {addressMode: slaac}", "IPv4 ranges, but spec.ipv6 is set."},
		"RA mode for IPv4":                 {ipv4, "subnetPool: {name: campus}, ipv6: {raMode: slaac}", "IPv4 ranges, but spec.ipv6 is set."},
		"MTU for IPv4":                     {ipv4, "subnetPool: {name: campus}, mtu: 1279", ""},
		"smallest MTU for IPv6":            {ipv6, "subnetPool: {name: campus}, mtu: 1280", ""},
		"too small an MTU for IPv6":        {ipv6, "subnetPool: {name: campus}, mtu: 1279", "IPv6 ranges, but spec.mtu is 1279; the minimum for IPv6 is 1280."},
		"name servers":                     {ipv6, "subnetPool: {name: campus}, dnsNameservers: ['fd00::53']", ""},
		"name servers of the other family": {ipv6, "subnetPool: {name: campus}, dnsNameservers: ['1.1.1.1']", "spec.dnsNameservers has an address of another IP version."},
		"routes":                           {ipv4, "subnetPool: {name: campus}, hostRoutes: [{destination: '10.9.0.0/16', nextHop: '10.0.0.9'}]", ""},
		"routes of the other family":       {ipv4, "subnetPool: {name: campus}, hostRoutes: [{destination: 'fd09::/64', nextHop: 'fd00::9'}]", "spec.hostRoutes has an address of another IP version."},
	} {
		t.Run(name, func(t *testing.T) {
			desired := desiredFor(test.spec)
			actual := foundByMarker(fresh, with(empty, func(n *net) { n.MTU = desired.Settings.MTU })).After(plan.FindExtensions{}, allExtensions).After(findCampus, []neutron.SubnetPool{test.pool})
			step := plan.Next(desired, actual)
			blocked, isBlocked := step.(plan.Blocked)
			if _, fits := step.(plan.CreateSubnet); fits != (test.want == "") || isBlocked && blocked.Reason != plan.ReasonSubnetPoolMismatch || !strings.Contains(blocked.Message, test.want) {
				t.Errorf("Next() = %v, want %q", step, test.want)
			}
		})
	}
}

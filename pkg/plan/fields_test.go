package plan_test

import (
	"net/netip"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// The rows of the decision table for the fields beside cidr and gateway.

// all are the extensions of a Neutron that has all that we know of.
var all = []string{neutron.ExtensionMTU, neutron.ExtensionPortSecurity, neutron.ExtensionDNS, neutron.ExtensionTags, neutron.ExtensionSubnetPools}

// asking returns what the walkthrough's spec with a change asks for.
func asking(change func(*samplecrdv1.NetworkSpec)) plan.Desired {
	spec := samplecrdv1.NetworkSpec{CIDR: "192.168.0.0/16", Gateway: "192.168.0.1"}
	change(&spec)
	return plan.DesiredFor(owner, spec)
}

// found returns what is known when our network and subnet were looked for, in a
// cloud that can do all, and the network has a change.
func found(change func(*neutron.Network)) plan.Actual {
	return marked(settled, with(network, change)).WithSubnets("net-1", []neutron.Subnet{subnet}).WithExtensions(all)
}

// foundSubnet does the same with a change of the subnet.
func foundSubnet(change func(*neutron.Subnet)) plan.Actual {
	return marked(settled, network).WithSubnets("net-1", []neutron.Subnet{with(subnet, change)}).WithExtensions(all)
}

func same[T any](*T) {}

func pool(start, end string) []neutron.Pool {
	return []neutron.Pool{{Start: addr(start), End: addr(end)}}
}

// updateNetwork returns the step that changes one setting of our network.
func updateNetwork(change plan.Change, settings neutron.NetworkSettings) plan.Step {
	return plan.UpdateNetwork{ID: "net-1", Changes: []plan.Change{change}, Update: neutron.NetworkUpdate{
		Name: "default/example", Description: mark, NetworkSettings: settings, Revision: 3,
	}}
}

var (
	withMTU  = asking(func(s *samplecrdv1.NetworkSpec) { s.MTU = new(int32(1400)) })
	withDNS  = asking(func(s *samplecrdv1.NetworkSpec) { s.DNSDomain = "Example.org" })
	withTags = asking(func(s *samplecrdv1.NetworkSpec) { s.Tags = []string{"blue", "amber"} })
	withPool = asking(func(s *samplecrdv1.NetworkSpec) {
		s.CIDR, s.Gateway, s.SubnetPool = "", "", &samplecrdv1.SubnetPoolReference{Name: "campus", PrefixLength: 24}
	})
	slaac = plan.DesiredFor(owner, samplecrdv1.NetworkSpec{CIDR: "fd00::/64", IPv6: &samplecrdv1.IPv6Options{AddressMode: "slaac", RAMode: "slaac"}})

	noDNS = "blocked: ExtensionMissing: this cloud lacks a Neutron extension: spec.dnsDomain requires \"dns-integration\". Everything else is as desired. Omit the field, or ask the operator of the cloud for the extension."
)

var networkRows = map[string]row{
	"settings, no network, extensions not looked for": {
		withMTU, marked(fresh),
		plan.FindExtensions{}, "find extensions",
	},
	"settings, no network": {
		withMTU, marked(fresh).WithExtensions(all),
		plan.CreateNetwork{Network: neutron.NewNetwork{Name: "default/example", Description: mark, NetworkSettings: neutron.NetworkSettings{MTU: new(1400)}}},
		"create network default/example",
	},
	"settings, no network, and an extension missing": {
		withMTU, marked(fresh).WithExtensions(nil),
		newNetwork, "create network default/example",
	},
	"settings that every Neutron has, no network": {
		asking(func(s *samplecrdv1.NetworkSpec) { s.AdminStateUp = new(false) }), marked(fresh),
		plan.CreateNetwork{Network: neutron.NewNetwork{Name: "default/example", Description: mark, NetworkSettings: neutron.NetworkSettings{AdminStateUp: new(false)}}},
		"create network default/example",
	},
	"another MTU": {
		withMTU, found(same),
		updateNetwork(plan.Change{What: "MTU", From: "1450", To: "1400"}, neutron.NetworkSettings{MTU: new(1400)}),
		"update network net-1: MTU 1450 → 1400",
	},
	"another MTU, extensions not looked for": {
		withMTU, marked(settled, network),
		plan.FindExtensions{}, "find extensions",
	},
	"the right MTU, extensions not looked for": {
		withMTU, marked(settled, with(network, func(n *neutron.Network) { n.MTU = new(1400) })).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.Nothing{}, "nothing to do",
	},
	"MTU taken out of the spec": {
		want, found(func(n *neutron.Network) { n.MTU = new(1400) }),
		updateNetwork(plan.Change{What: "MTU", From: "1400", To: "the largest allowed"}, neutron.NetworkSettings{MTU: new(0)}),
		"update network net-1: MTU 1400 → the largest allowed",
	},
	"MTU taken out of the spec, with which the network was made": {
		want, marked(plan.Actual{Finalizer: true, Record: plan.Record{NetworkID: "net-1", SubnetID: "sub-1", MTU: 1400}}, with(network, func(n *neutron.Network) { n.MTU = new(1400) })).WithExtensions(all),
		updateNetwork(plan.Change{What: "MTU", From: "1400", To: "the largest allowed"}, neutron.NetworkSettings{MTU: new(0)}),
		"update network net-1: MTU 1400 → the largest allowed",
	},
	"MTU in a status that is older than the field": {
		want, marked(plan.Actual{Finalizer: true, Record: plan.Record{NetworkID: "net-1", SubnetID: "sub-1"}}, with(network, func(n *neutron.Network) { n.MTU = new(9000) })).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.Nothing{}, "nothing to do",
	},
	"MTU of a network that no status speaks of": {
		want, marked(fresh, with(network, func(n *neutron.Network) { n.MTU = new(9000) })).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.Nothing{}, "nothing to do",
	},
	"MTU of a network that no status speaks of, and the spec was edited": {
		with(want, func(d *plan.Desired) { d.Edited = true }), marked(fresh, with(network, func(n *neutron.Network) { n.MTU = new(1400) })).WithExtensions(all),
		updateNetwork(plan.Change{What: "MTU", From: "1400", To: "the largest allowed"}, neutron.NetworkSettings{MTU: new(0)}),
		"update network net-1: MTU 1400 → the largest allowed",
	},
	"MTU, just given back to Neutron, which gave another one than before": {
		want, found(same).WithUpdatedNetwork(neutron.NetworkUpdate{NetworkSettings: neutron.NetworkSettings{MTU: new(0)}}, with(network, func(n *neutron.Network) { n.MTU = new(8950) })),
		plan.Nothing{}, "nothing to do",
	},
	"MTU that the cloud does not tell": {
		want, found(func(n *neutron.Network) { n.MTU = nil }),
		plan.Nothing{}, "nothing to do",
	},
	"down": {
		want, found(func(n *neutron.Network) { n.AdminStateUp = new(false) }),
		updateNetwork(plan.Change{What: "admin state up", From: "false", To: "true"}, neutron.NetworkSettings{AdminStateUp: new(true)}),
		"update network net-1: admin state up false → true",
	},
	"without port security": {
		want, found(func(n *neutron.Network) { n.PortSecurity = new(false) }),
		updateNetwork(plan.Change{What: "port security", From: "false", To: "true"}, neutron.NetworkSettings{PortSecurity: new(true)}),
		"update network net-1: port security false → true",
	},
	"another DNS domain": {
		withDNS, found(func(n *neutron.Network) { n.DNSDomain = new("") }),
		updateNetwork(plan.Change{What: "DNS domain", From: "none", To: "example.org."}, neutron.NetworkSettings{DNSDomain: new("example.org.")}),
		"update network net-1: DNS domain none → example.org.",
	},
	"a DNS domain that nobody asked for": {
		want, found(func(n *neutron.Network) { n.DNSDomain = new("theirs.") }),
		updateNetwork(plan.Change{What: "DNS domain", From: "theirs.", To: "none"}, neutron.NetworkSettings{DNSDomain: new("")}),
		"update network net-1: DNS domain theirs. → none",
	},
	"DNS domain without its extension": {
		withDNS, found(same).WithExtensions(nil),
		plan.Blocked{Reason: plan.ReasonExtensionMissing}, noDNS,
	},
	"DNS domain without its extension, and the subnet is missing": {
		withDNS, marked(settled, bare).WithExtensions(nil),
		newSubnet, "create subnet: 192.168.0.0/16, gateway 192.168.0.1",
	},
	"settings of a network that was adopted": {
		adopt, named(settled, with(theirs, func(n *neutron.Network) { n.AdminStateUp, n.Tags = new(false), []string{"theirs"} })).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.Nothing{}, "nothing to do",
	},
}

var tagRows = map[string]row{
	"tags, extensions not looked for": {
		withTags, marked(settled, network).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.FindExtensions{}, "find extensions",
	},
	"tags that are not noted": {
		withTags, found(same),
		plan.RecordTags{Tags: []string{"amber", "blue"}}, "record tags in the status: amber, blue",
	},
	"tags, of which somebody else has set one": {
		withTags, found(func(n *neutron.Network) { n.Tags = []string{"blue"} }),
		plan.RecordTags{Tags: []string{"amber"}}, "record tags in the status: amber",
	},
	"tags that are noted": {
		withTags, found(func(n *neutron.Network) { n.Tags = []string{"blue", "theirs"} }).WithRecordedTags([]string{"amber", "blue"}),
		plan.AddTag{ID: "net-1", Tag: "amber"}, `add tag "amber" to network net-1`,
	},
	"tags that are there": {
		withTags, found(func(n *neutron.Network) { n.Tags = []string{"blue", "theirs", "amber"} }),
		plan.Nothing{}, "nothing to do",
	},
	"tags, added a moment ago": {
		withTags, found(func(n *neutron.Network) { n.Tags = []string{"blue"} }).WithTag("net-1", "amber", true),
		plan.Nothing{}, "nothing to do",
	},
	"a tag that is no longer asked for": {
		want, found(func(n *neutron.Network) { n.Tags = []string{"theirs", "blue"} }).WithRecordedTags([]string{"blue"}),
		plan.RemoveTag{ID: "net-1", Tag: "blue"}, `remove tag "blue" from network net-1`,
	},
	"a tag that was removed a moment ago": {
		want, found(func(n *neutron.Network) { n.Tags = []string{"theirs", "blue"} }).WithRecordedTags([]string{"blue"}).WithTag("net-1", "blue", false),
		plan.Nothing{}, "nothing to do",
	},
	"a tag of somebody else": {
		want, found(func(n *neutron.Network) { n.Tags = []string{"theirs"} }),
		plan.Nothing{}, "nothing to do",
	},
	"tags without their extension": {
		withTags, found(same).WithExtensions(nil),
		plan.Blocked{Reason: plan.ReasonExtensionMissing},
		"blocked: ExtensionMissing: this cloud lacks a Neutron extension: spec.tags requires \"standard-attr-tag\". Everything else is as desired. Omit the field, or ask the operator of the cloud for the extension.",
	},
	"a twin with our tags": {
		withTags, marked(settled, network, with(twin, func(n *neutron.Network) { n.Tags = []string{"blue"} })).WithSubnets("net-1", []neutron.Subnet{subnet}).
			WithTag("net-1", "amber", true).WithTag("net-1", "blue", true),
		plan.DeleteNetwork{ID: "net-2", Revision: 1, DuplicateOf: "net-1"}, twinGoes,
	},
}

var subnetRows = map[string]row{
	"no subnet, all fields": {
		asking(func(s *samplecrdv1.NetworkSpec) {
			s.Gateway, s.EnableDHCP = "None", new(false)
			s.AllocationPools = []samplecrdv1.AllocationPool{{Start: "192.168.9.0", End: "192.168.9.9"}, {Start: "192.168.0.1", End: "192.168.0.9"}}
			s.DNSNameservers = []string{"192.168.0.53", "192.168.0.54"}
			s.HostRoutes = []samplecrdv1.HostRoute{{Destination: "10.0.0.0/8", NextHop: "192.168.0.9"}}
		}),
		marked(settled, bare),
		plan.CreateSubnet{Subnet: neutron.NewSubnet{
			NetworkID: "net-1", Name: "default/example", Description: mark, CIDR: prefix("192.168.0.0/16"),
			SubnetSettings: neutron.SubnetSettings{
				Gateway:     new(netip.Addr),
				Pools:       []neutron.Pool{{Start: addr("192.168.0.1"), End: addr("192.168.0.9")}, {Start: addr("192.168.9.0"), End: addr("192.168.9.9")}},
				DHCP:        new(false),
				Nameservers: &[]netip.Addr{addr("192.168.0.53"), addr("192.168.0.54")},
				HostRoutes:  &[]neutron.HostRoute{{Destination: prefix("10.0.0.0/8"), NextHop: addr("192.168.0.9")}},
			},
		}},
		"create subnet: 192.168.0.0/16, gateway none",
	},
	"a gateway, and there must be none": {
		asking(func(s *samplecrdv1.NetworkSpec) { s.Gateway = "None" }), foundSubnet(same),
		updateSubnet(plan.Change{What: "gateway", From: "192.168.0.1", To: "none"}, neutron.SubnetSettings{Gateway: new(netip.Addr), Pools: pool("192.168.0.1", "192.168.255.254")}),
		"update subnet: gateway 192.168.0.1 → none",
	},
	"other allocation pools": {
		asking(func(s *samplecrdv1.NetworkSpec) {
			s.AllocationPools = []samplecrdv1.AllocationPool{{Start: "192.168.0.10", End: "192.168.0.20"}}
		}), foundSubnet(same),
		updateSubnet(plan.Change{What: "allocation pools", From: "192.168.0.2-192.168.255.254", To: "192.168.0.10-192.168.0.20"}, neutron.SubnetSettings{Pools: pool("192.168.0.10", "192.168.0.20")}),
		"update subnet: allocation pools 192.168.0.2-192.168.255.254 → 192.168.0.10-192.168.0.20",
	},
	"allocation pools taken out of the spec": {
		want, foundSubnet(func(s *neutron.Subnet) { s.Pools = nil }),
		updateSubnet(plan.Change{What: "allocation pools", From: "none", To: "192.168.0.2-192.168.255.254"}, neutron.SubnetSettings{Pools: pool("192.168.0.2", "192.168.255.254")}),
		"update subnet: allocation pools none → 192.168.0.2-192.168.255.254",
	},
	"allocation pools that are the same, in two parts": {
		want, foundSubnet(func(s *neutron.Subnet) {
			s.Pools = []neutron.Pool{{Start: addr("192.168.7.0"), End: addr("192.168.255.254")}, {Start: addr("192.168.0.2"), End: addr("192.168.6.255")}}
		}),
		plan.Nothing{}, "nothing to do",
	},
	"DHCP off": {
		want, foundSubnet(func(s *neutron.Subnet) { s.DHCP = false }),
		updateSubnet(plan.Change{What: "DHCP", From: "false", To: "true"}, neutron.SubnetSettings{DHCP: new(true)}),
		"update subnet: DHCP false → true",
	},
	"name servers in another order": {
		asking(func(s *samplecrdv1.NetworkSpec) { s.DNSNameservers = []string{"1.1.1.1", "9.9.9.9"} }),
		foundSubnet(func(s *neutron.Subnet) { s.Nameservers = []netip.Addr{addr("9.9.9.9"), addr("1.1.1.1")} }),
		updateSubnet(plan.Change{What: "DNS name servers", From: "9.9.9.9 and 1.1.1.1", To: "1.1.1.1 and 9.9.9.9"}, neutron.SubnetSettings{Nameservers: &[]netip.Addr{addr("1.1.1.1"), addr("9.9.9.9")}}),
		"update subnet: DNS name servers 9.9.9.9 and 1.1.1.1 → 1.1.1.1 and 9.9.9.9",
	},
	"name servers taken out of the spec": {
		want, foundSubnet(func(s *neutron.Subnet) { s.Nameservers = []netip.Addr{addr("9.9.9.9")} }),
		updateSubnet(plan.Change{What: "DNS name servers", From: "9.9.9.9", To: "none"}, neutron.SubnetSettings{Nameservers: &[]netip.Addr{}}),
		"update subnet: DNS name servers 9.9.9.9 → none",
	},
	"host routes in another order": {
		asking(func(s *samplecrdv1.NetworkSpec) {
			s.HostRoutes = []samplecrdv1.HostRoute{{Destination: "10.1.0.0/16", NextHop: "192.168.0.9"}, {Destination: "10.0.0.0/16", NextHop: "192.168.0.9"}}
		}),
		foundSubnet(func(s *neutron.Subnet) {
			s.HostRoutes = []neutron.HostRoute{{Destination: prefix("10.0.0.0/16"), NextHop: addr("192.168.0.9")}, {Destination: prefix("10.1.0.0/16"), NextHop: addr("192.168.0.9")}}
		}),
		plan.Nothing{}, "nothing to do",
	},
	"host routes taken out of the spec": {
		want, foundSubnet(func(s *neutron.Subnet) {
			s.HostRoutes = []neutron.HostRoute{{Destination: prefix("10.0.0.0/16"), NextHop: addr("192.168.0.9")}}
		}),
		updateSubnet(plan.Change{What: "host routes", From: "10.0.0.0/16 via 192.168.0.9", To: "none"}, neutron.SubnetSettings{HostRoutes: &[]neutron.HostRoute{}}),
		"update subnet: host routes 10.0.0.0/16 via 192.168.0.9 → none",
	},
	"another IPv6 mode": {
		slaac, foundSubnet(func(s *neutron.Subnet) { s.CIDR = prefix("fd00::/64") }),
		plan.DeleteSubnet{ID: "sub-1", Revision: 4, From: prefix("fd00::/64"), For: "fd00::/64 with address mode slaac and RA mode slaac"},
		"delete subnet: fd00::/64 makes room for fd00::/64 with address mode slaac and RA mode slaac",
	},
	"an edit of the range, from one subnet that was adopted to another one": {
		adopting(wanting("10.9.0.0/24", "")),
		named(settled, theirs).WithSubnets("net-1", []neutron.Subnet{with(subnet, func(s *neutron.Subnet) { s.Description = "mine" }), foreign}),
		plan.Nothing{}, "nothing to do",
	},
	"an adopted subnet keeps what the spec leaves out": {
		adopting(wanting("192.168.0.0/16", "")),
		named(fresh, theirs).WithSubnets("net-1", []neutron.Subnet{with(subnet, func(s *neutron.Subnet) {
			s.Description, s.Gateway, s.DHCP, s.Nameservers, s.Pools, s.AddressMode = "mine", addr("192.168.0.254"), false, []netip.Addr{addr("9.9.9.9")}, pool("192.168.0.7", "192.168.0.8"), ""
		})}),
		plan.Nothing{}, "nothing to do",
	},
}

// fromPool is our subnet with a range from the subnet pool.
func fromPool(s *neutron.Subnet) {
	s.CIDR, s.SubnetPoolID, s.Gateway = prefix("10.7.0.0/24"), "pool-1", addr("10.7.0.1")
	s.Pools = plan.Pools(s.CIDR, s.Gateway)
}

var (
	campus     = neutron.SubnetPool{ID: "pool-1", Name: "campus", IPVersion: 4}
	poolStatus = plan.Actual{Finalizer: true, Record: plan.Record{NetworkID: "net-1", SubnetID: "sub-1", MTU: 1450, DefaultMTU: 1450, SubnetPoolID: "pool-1", SubnetPoolName: "campus"}}
	replaced   = plan.DeleteSubnet{ID: "sub-1", Revision: 4, From: prefix("192.168.0.0/16"), For: "a /24 from subnet pool campus"}
)

var subnetPoolRows = map[string]row{
	"subnet pool, extensions not looked for": {
		withPool, marked(fresh, bare),
		plan.FindExtensions{}, "find extensions",
	},
	"subnet pool, and this Neutron has none": {
		withPool, marked(fresh, bare).WithExtensions(nil),
		plan.Blocked{Reason: plan.ReasonExtensionMissing},
		"blocked: ExtensionMissing: this cloud lacks a Neutron extension: spec.subnetPool requires \"subnet_allocation\". Set spec.cidr instead, or ask the operator of the cloud for the extension.",
	},
	"subnet pool not looked for": {
		withPool, marked(fresh, bare).WithExtensions(all),
		plan.FindSubnetPool{Filter: neutron.SubnetPoolFilter{Name: "campus"}}, `find subnet pool with name "campus"`,
	},
	"subnet pool not looked for, by ID": {
		asking(func(s *samplecrdv1.NetworkSpec) {
			s.CIDR, s.Gateway, s.SubnetPool = "", "", &samplecrdv1.SubnetPoolReference{ID: "pool-1"}
		}), marked(fresh, bare).WithExtensions(all),
		plan.FindSubnetPool{Filter: neutron.SubnetPoolFilter{ID: "pool-1"}}, "find subnet pool pool-1",
	},
	"no such subnet pool": {
		withPool, marked(fresh, bare).WithExtensions(all).WithSubnetPools(nil),
		plan.Blocked{Reason: plan.ReasonNotFound},
		`blocked: NotFound: subnet pool "campus", which spec.subnetPool names, does not exist, or the controller's project cannot see it.`,
	},
	"several subnet pools of the name": {
		withPool, marked(fresh, bare).WithExtensions(all).WithSubnetPools([]neutron.SubnetPool{campus, {ID: "pool-0", Name: "campus", IPVersion: 4}}),
		plan.Blocked{Reason: plan.ReasonAmbiguous},
		`blocked: Ambiguous: Neutron has 2 subnet pools with the name "campus" (pool-0, pool-1). Set spec.subnetPool.id to one of these IDs, and remove spec.subnetPool.name.`,
	},
	"subnet pool of another IP version": {
		asking(func(s *samplecrdv1.NetworkSpec) {
			s.CIDR, s.Gateway, s.SubnetPool, s.DNSNameservers = "", "", &samplecrdv1.SubnetPoolReference{Name: "campus"}, []string{"fd00::53"}
		}), marked(fresh, bare).WithExtensions(all).WithSubnetPools([]neutron.SubnetPool{campus}),
		plan.Blocked{Reason: plan.ReasonSubnetPoolMismatch},
		`blocked: SubnetPoolMismatch: subnet pool "campus" allocates IPv4 ranges, but spec.dnsNameservers has an address of another IP version.`,
	},
	"subnet pool that hands out no such range": {
		withPool, marked(fresh, bare).WithExtensions(all).WithSubnetPools([]neutron.SubnetPool{{ID: "pool-1", Name: "campus", IPVersion: 4, MinPrefixLength: 26, MaxPrefixLength: 28}}),
		plan.Blocked{Reason: plan.ReasonSubnetPoolMismatch},
		`blocked: SubnetPoolMismatch: subnet pool "campus" allocates ranges from /26 to /28, but spec.subnetPool.prefixLength is 24.`,
	},
	"subnet pool, no subnet": {
		withPool, marked(fresh, bare).WithExtensions(all).WithSubnetPools([]neutron.SubnetPool{campus}),
		plan.CreateSubnet{Subnet: neutron.NewSubnet{
			NetworkID: "net-1", Name: "default/example", Description: mark,
			FromPool: &neutron.FromPool{SubnetPoolID: "pool-1", IPVersion: 4, PrefixLength: 24},
		}},
		"create subnet: a /24 from subnet pool pool-1",
	},
	"subnet from the subnet pool that the status names": {
		withPool, marked(poolStatus, network).WithSubnets("net-1", []neutron.Subnet{with(subnet, fromPool)}),
		plan.Nothing{}, "nothing to do",
	},
	"subnet from a subnet pool, and the status has lost its name": {
		withPool, marked(settled, network).WithSubnets("net-1", []neutron.Subnet{with(subnet, fromPool)}).WithExtensions(all),
		plan.FindSubnetPool{Filter: neutron.SubnetPoolFilter{Name: "campus"}}, `find subnet pool with name "campus"`,
	},
	"subnet that is not from the subnet pool": {
		withPool, foundSubnet(same).WithSubnetPools([]neutron.SubnetPool{campus}),
		replaced, "delete subnet: 192.168.0.0/16 makes room for a /24 from subnet pool campus",
	},
	"subnet that is not from the subnet pool, which is not there": {
		withPool, foundSubnet(same).WithSubnetPools(nil),
		plan.Blocked{Reason: plan.ReasonNotFound},
		`blocked: NotFound: subnet pool "campus", which spec.subnetPool names, does not exist, or the controller's project cannot see it.`,
	},
	"subnet with another prefix length": {
		withPool, marked(poolStatus, network).WithExtensions(all).WithSubnetPools([]neutron.SubnetPool{campus}).
			WithSubnets("net-1", []neutron.Subnet{with(subnet, func(s *neutron.Subnet) { fromPool(s); s.CIDR = prefix("10.7.0.0/26") })}),
		plan.DeleteSubnet{ID: "sub-1", Revision: 4, From: prefix("10.7.0.0/26"), For: "a /24 from subnet pool campus"},
		"delete subnet: 10.7.0.0/26 makes room for a /24 from subnet pool campus",
	},
	"subnet with another prefix length, and the subnet pool not looked for": {
		withPool, marked(poolStatus, network).WithExtensions(all).
			WithSubnets("net-1", []neutron.Subnet{with(subnet, func(s *neutron.Subnet) { fromPool(s); s.CIDR = prefix("10.7.0.0/26") })}),
		plan.FindSubnetPool{Filter: neutron.SubnetPoolFilter{ID: "pool-1"}}, "find subnet pool pool-1",
	},
	"a range from a subnet pool, and now the same as cidr": {
		wanting("10.7.0.0/24", ""), foundSubnet(fromPool),
		plan.Nothing{}, "nothing to do",
	},
	"two subnets from the subnet pool, and the status names one": {
		withPool, marked(poolStatus, network).WithSubnets("net-1", []neutron.Subnet{
			with(subnet, func(s *neutron.Subnet) { fromPool(s); s.ID, s.CIDR = "sub-0", prefix("10.7.1.0/24") }), with(subnet, fromPool),
		}),
		plan.DeleteSubnet{ID: "sub-0", Revision: 4, From: prefix("10.7.1.0/24"), For: "a /24 from subnet pool campus"},
		"delete subnet: 10.7.1.0/24 makes room for a /24 from subnet pool campus",
	},
	"two subnets from the subnet pool, and the status names none": {
		withPool, marked(fresh, network).WithExtensions(all).WithSubnetPools([]neutron.SubnetPool{campus}).WithSubnets("net-1", []neutron.Subnet{
			with(subnet, fromPool), with(subnet, func(s *neutron.Subnet) { fromPool(s); s.ID, s.CIDR = "sub-2", prefix("10.7.1.0/24") }),
		}),
		plan.Nothing{}, "nothing to do",
	},
}

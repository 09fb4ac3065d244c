package plan_test

import (
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

var (
	owner = neutron.Owner{Cluster: "c1", Namespace: "default", Name: "example"}
	mark  = owner.Marker()

	born    = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	up      = neutron.NetworkSettings{AdminStateUp: new(true), PortSecurity: new(true), MTU: new(1450)}
	network = neutron.Network{ID: "net-1", Name: "default/example", Description: mark, NetworkSettings: up, SubnetIDs: []string{"sub-1"}, CreatedAt: born, Revision: 3}
	subnet  = neutron.Subnet{ID: "sub-1", NetworkID: "net-1", Name: "default/example", Description: mark, CIDR: prefix("192.168.0.0/16"), Gateway: addr("192.168.0.1"), Pools: plan.Pools(prefix("192.168.0.0/16"), addr("192.168.0.1")), DHCP: true, CreatedAt: born, Revision: 4}

	want    = wanting("192.168.0.0/16", "192.168.0.1")
	absent  = plan.DesiredAbsent(owner)
	retain  = plan.Desired{Owner: owner, Absent: true, Leave: plan.LeaveAll}
	adopt   = adopting(want)
	byID    = neutron.NetworkFilter{ID: "net-1"}
	byMark  = neutron.NetworkFilter{Descriptions: []string{mark}}
	byMarks = neutron.NetworkFilter{Descriptions: []string{mark, owner.RetainedMarker()}}
	on      = neutron.SubnetFilter{NetworkID: "net-1"}

	fresh   = plan.Actual{Finalizer: true}                                                                                          // nothing in the status
	settled = plan.Actual{Finalizer: true, Record: plan.Record{NetworkID: "net-1", SubnetID: "sub-1", MTU: 1450, DefaultMTU: 1450}} // a full status

	theirs   = neutron.Network{ID: "net-1", Name: "mine", Description: "mine", NetworkSettings: up, Revision: 3}                        // the ID, without the mark
	another  = neutron.Owner{Cluster: "c2", Namespace: "default", Name: "example"}.Marker()                                             // of another cluster
	twin     = neutron.Network{ID: "net-2", Name: network.Name, Description: mark, NetworkSettings: up, CreatedAt: born, Revision: 1}   // born when ours was
	copied   = neutron.Network{ID: "net-2", Name: network.Name, Description: mark, NetworkSettings: up, CreatedAt: born.Add(time.Hour)} // by a person, later
	foreign  = neutron.Subnet{ID: "sub-9", NetworkID: "net-1", Description: "theirs", CIDR: prefix("10.9.0.0/24")}                      // on our network
	bare     = with(network, func(n *neutron.Network) { n.SubnetIDs = nil })
	retained = with(network, func(n *neutron.Network) { n.Description = owner.RetainedMarker() })
	crowded  = with(network, func(n *neutron.Network) { n.SubnetIDs = []string{"sub-1", "sub-9"} })
	oldRange = with(subnet, func(s *neutron.Subnet) { s.ID, s.CIDR = "sub-2", prefix("10.0.0.0/24") }) // born when ours was

	newNetwork = plan.CreateNetwork{Network: neutron.NewNetwork{Name: "default/example", Description: mark}}
	newSubnet  = plan.CreateSubnet{Subnet: neutron.NewSubnet{
		NetworkID: "net-1", Name: "default/example", Description: mark,
		CIDR: prefix("192.168.0.0/16"), SubnetSettings: neutron.SubnetSettings{Gateway: new(addr("192.168.0.1"))},
	}}
)

// wanting returns what the spec with this CIDR and gateway asks for.
func wanting(cidr, gateway string) plan.Desired {
	return plan.DesiredFor(owner, samplecrdv1.NetworkSpec{CIDR: cidr, Gateway: gateway})
}

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }
func addr(text string) netip.Addr     { return netip.MustParseAddr(text) }

// updateSubnet returns the step that changes one thing of our subnet.
func updateSubnet(change plan.Change, settings neutron.SubnetSettings) plan.Step {
	return plan.UpdateSubnet{ID: "sub-1", Changes: []plan.Change{change}, Update: neutron.SubnetUpdate{SubnetSettings: settings, Revision: 4}}
}

// with returns a value with a change.
func with[T any](value T, change func(*T)) T {
	change(&value)
	return value
}

// adopting returns the same wish, for the network net-1.
func adopting(desired plan.Desired) plan.Desired {
	desired.Adopted = "net-1"
	return desired
}

// marked returns what is known when these networks were found by mark.
func marked(actual plan.Actual, networks ...neutron.Network) plan.Actual {
	return actual.WithNetworks(byMark, networks)
}

// named returns what is known when these were found by the ID.
func named(actual plan.Actual, networks ...neutron.Network) plan.Actual {
	return actual.WithNetworks(byID, networks)
}

// compareValues makes cmp compare addresses as values.
var compareValues = cmp.Options{
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
	cmpopts.EquateEmpty(),
}

type row struct {
	desired plan.Desired
	actual  plan.Actual
	want    plan.Step
	text    string
}

// TestNext walks every row of the decision table above Next, in its order.
func TestNext(t *testing.T) {
	for _, rows := range []map[string]row{absentRows, leavingRows, presentRows, twinRows, adoptingRows, networkRows, tagRows, subnetRows, subnetPoolRows} {
		for name, test := range rows {
			t.Run(name, func(t *testing.T) {
				got := plan.Next(test.desired, test.actual)
				if got.String() != test.text {
					t.Errorf("Next() says\n %s\nwant\n %s", got, test.text)
				}
				ignoreMessage := cmpopts.IgnoreFields(plan.Blocked{}, "Message") // it is in the text
				if diff := cmp.Diff(test.want, got, compareValues, ignoreMessage); diff != "" {
					t.Errorf("Next() differs (-want +got):\n%s", diff)
				}
			})
		}
	}
}

const (
	findMark  = `find network with description "samplecrd.k8s.io owner: c1/default/example"`
	findMarks = findMark + ` or "samplecrd.k8s.io retained: c1/default/example"`
	two       = `blocked: Ambiguous: Neutron has 2 networks with the description "samplecrd.k8s.io owner: c1/default/example" (net-1, net-2), but there must be only one.`
	notMarked = `blocked: NotOurs: network net-1, which status.networkID names, does not have the owner marker of this Network: its description is not "samplecrd.k8s.io owner: c1/default/example". If the network belongs to this Network, restore the description. Otherwise remove status.networkID (kubectl edit --subresource=status).`
	foreignOn = "blocked: InUse: network net-1 cannot be deleted: subnets that do not belong to this Network are on it (sub-9), and Neutron would delete them too. Delete them first, or set spec.deletionPolicy to Retain."
	twinGoes  = "delete network net-2: duplicate of net-1, created when a response was lost"
)

var absentRows = map[string]row{
	"absent, no finalizer": {
		absent, plan.Actual{Record: plan.Record{NetworkID: "net-1"}},
		plan.Nothing{}, "nothing to do",
	},
	"absent, network not looked for by mark": {
		absent, fresh,
		plan.FindNetwork{Filter: byMark}, findMark,
	},
	"absent, network not looked for by mark, ID known": {
		absent, settled,
		plan.FindNetwork{Filter: byMark}, findMark,
	},
	"absent, none with our mark, ID not looked for": {
		absent, marked(settled),
		plan.FindNetwork{Filter: byID}, "find network net-1",
	},
	"absent, none with our mark, ID gone": {
		absent, named(marked(settled)),
		plan.RemoveFinalizer{}, "remove finalizer",
	},
	"absent, no network": {
		absent, marked(fresh),
		plan.RemoveFinalizer{}, "remove finalizer",
	},
	"absent, network deleted": {
		absent, marked(settled, network).WithoutNetwork("net-1"),
		plan.RemoveFinalizer{}, "remove finalizer",
	},
	"absent, twin": {
		absent, marked(settled, twin, network),
		plan.DeleteNetwork{ID: "net-2", Revision: 1, DuplicateOf: "net-1"}, twinGoes,
	},
	"absent, twin, and neither in the status": {
		absent, marked(fresh, twin, network),
		plan.DeleteNetwork{ID: "net-2", Revision: 1, DuplicateOf: "net-1"}, twinGoes,
	},
	"absent, several networks with our mark": {
		absent, marked(fresh, copied, network),
		plan.Blocked{Reason: plan.ReasonAmbiguous}, two + " Delete the ones that are not needed.",
	},
	"absent, several networks with our mark, one in the status": {
		absent, marked(settled, copied, network),
		plan.Blocked{Reason: plan.ReasonAmbiguous}, two + " The status names net-1. Delete the ones that are not needed.",
	},
	"absent, a network with the ID but not our mark": {
		absent, named(marked(settled), theirs),
		plan.Blocked{Reason: plan.ReasonNotOurs}, notMarked,
	},
	"absent, a network with the ID, without our mark, but our subnet on it": {
		absent, named(marked(settled), with(network, func(n *neutron.Network) { n.Description = "" })).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.DeleteNetwork{ID: "net-1", Revision: 3}, "delete network net-1",
	},
	"absent, a network with the ID that was retained before": {
		absent, named(marked(settled), retained),
		plan.DeleteNetwork{ID: "net-1", Revision: 3}, "delete network net-1",
	},
	"absent, network with subnets that we do not know": {
		absent, marked(settled, crowded),
		plan.FindSubnets{Filter: on}, "find subnets of network net-1",
	},
	"absent, network with a subnet and none in the status": {
		absent, marked(fresh, network),
		plan.FindSubnets{Filter: on}, "find subnets of network net-1",
	},
	"absent, network with somebody else's subnet": {
		absent, marked(settled, crowded).WithSubnets("net-1", []neutron.Subnet{subnet, foreign}),
		plan.Blocked{Reason: plan.ReasonInUse}, foreignOn,
	},
	"absent, network with a subnet that we are not shown": {
		absent, marked(settled, crowded).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.Blocked{Reason: plan.ReasonInUse}, foreignOn,
	},
	"absent, network with no subnet but the one in the status": {
		absent, marked(settled, network),
		plan.DeleteNetwork{ID: "net-1", Revision: 3}, "delete network net-1",
	},
	"absent, network with no subnet but ours": {
		absent, marked(fresh, network).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.DeleteNetwork{ID: "net-1", Revision: 3}, "delete network net-1",
	},
}

var leavingRows = map[string]row{
	"retain, network not looked for": {
		retain, settled,
		plan.FindNetwork{Filter: byMarks}, findMarks,
	},
	"retain, network with our mark": {
		retain, marked(settled, network),
		plan.RetainNetwork{ID: "net-1", Update: neutron.NetworkUpdate{Name: "default/example", Description: owner.RetainedMarker(), Revision: 3}},
		`retain network net-1: description → "samplecrd.k8s.io retained: c1/default/example"`,
	},
	"retain, network that is marked so": {
		retain, marked(settled, network).WithNetwork(retained),
		plan.RemoveFinalizer{}, "remove finalizer",
	},
	"retain, network that was marked so by an earlier try": {
		retain, named(marked(settled), retained),
		plan.RemoveFinalizer{}, "remove finalizer",
	},
	"retain, no network": {
		retain, marked(fresh),
		plan.RemoveFinalizer{}, "remove finalizer",
	},
	"retain, network without our mark, but our subnet on it": {
		retain, named(marked(settled), with(network, func(n *neutron.Network) { n.Description = "" })).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.RetainNetwork{ID: "net-1", Update: neutron.NetworkUpdate{Name: "default/example", Description: owner.RetainedMarker(), Revision: 3}},
		`retain network net-1: description → "samplecrd.k8s.io retained: c1/default/example"`,
	},
	"retain, network without our mark": {
		retain, named(marked(settled), theirs),
		plan.RemoveFinalizer{}, "remove finalizer",
	},
	"retain, twin that came late": {
		retain, settled.WithNetworks(byMarks, []neutron.Network{with(twin, func(n *neutron.Network) { n.CreatedAt = born.Add(10 * time.Second) }), retained}),
		plan.DeleteNetwork{ID: "net-2", Revision: 1, DuplicateOf: "net-1"}, twinGoes,
	},
	"retain, twin": {
		retain, marked(settled, network, twin),
		plan.DeleteNetwork{ID: "net-2", Revision: 1, DuplicateOf: "net-1"}, twinGoes,
	},
	"retain, adopted": {
		adopting(retain), settled,
		plan.RemoveFinalizer{}, "remove finalizer",
	},
	"leave the network, subnets not looked for": {
		adopting(plan.Desired{Owner: owner, Absent: true, Leave: plan.LeaveNetwork}), settled,
		plan.FindSubnets{Filter: on}, "find subnets of network net-1",
	},
	"leave the network, our subnet on it": {
		adopting(plan.Desired{Owner: owner, Absent: true, Leave: plan.LeaveNetwork}), settled.WithSubnets("net-1", []neutron.Subnet{foreign, subnet}),
		plan.DeleteSubnet{ID: "sub-1", Revision: 4, From: prefix("192.168.0.0/16")}, "delete subnet: 192.168.0.0/16",
	},
	"leave the network, no subnet of ours": {
		adopting(plan.Desired{Owner: owner, Absent: true, Leave: plan.LeaveNetwork}), settled.WithSubnets("net-1", []neutron.Subnet{foreign}),
		plan.RemoveFinalizer{}, "remove finalizer",
	},
	"adopted network to go, not looked for": {
		adopting(absent), settled,
		plan.FindNetwork{Filter: byID}, "find network net-1",
	},
	"adopted network to go": {
		adopting(absent), named(settled, with(theirs, func(n *neutron.Network) { n.SubnetIDs = []string{"sub-1"} })),
		plan.DeleteNetwork{ID: "net-1", Revision: 3}, "delete network net-1",
	},
	"adopted network to go, with somebody else's subnet": {
		adopting(absent), named(settled, with(theirs, func(n *neutron.Network) { n.SubnetIDs = []string{"sub-1", "sub-9"} })).WithSubnets("net-1", []neutron.Subnet{subnet, foreign}),
		plan.Blocked{Reason: plan.ReasonInUse}, foreignOn,
	},
	"adopted network to go, but it never became ours": {
		adopting(absent), named(fresh, theirs),
		plan.FindSubnets{Filter: on}, "find subnets of network net-1",
	},
	"adopted network to go, but it never became ours, though a subnet on it did": {
		adopting(absent), named(fresh, theirs).WithSubnets("net-1", []neutron.Subnet{foreign, subnet}),
		plan.DeleteSubnet{ID: "sub-1", Revision: 4, From: prefix("192.168.0.0/16")}, "delete subnet: 192.168.0.0/16",
	},
	"adopted network to go, but it never became ours, nor a subnet on it": {
		adopting(absent), named(fresh, theirs).WithSubnets("net-1", []neutron.Subnet{foreign}),
		plan.RemoveFinalizer{}, "remove finalizer",
	},
	"adopted network to go, but another object has it": {
		adopting(absent), named(settled, with(theirs, func(n *neutron.Network) { n.Description = another })).WithSubnets("net-1", []neutron.Subnet{foreign}),
		plan.RemoveFinalizer{}, "remove finalizer",
	},
}

var presentRows = map[string]row{
	"invalid, nothing made": {
		wanting("nonsense", ""), plan.Actual{},
		plan.Blocked{Reason: plan.ReasonInvalidSpec},
		`blocked: InvalidSpec: spec.cidr "nonsense" is not a range in CIDR notation, such as 192.168.0.0/16 or fd00:1234::/64`,
	},
	"invalid, all made": {
		wanting("192.168.0.0/16", "10.0.0.1"), settled.WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.Blocked{Reason: plan.ReasonInvalidSpec},
		"blocked: InvalidSpec: spec.gateway 10.0.0.1 is not inside spec.cidr: use an address from 192.168.0.1 to 192.168.255.254",
	},
	"obstacle": {
		with(adopt, func(d *plan.Desired) {
			d.Obstacle = plan.Blocked{Reason: plan.ReasonAdoptionNotAllowed, Message: "no."}
		}), fresh,
		plan.Blocked{Reason: plan.ReasonAdoptionNotAllowed}, "blocked: AdoptionNotAllowed: no.",
	},

	"present, no finalizer": {
		want, plan.Actual{},
		plan.AddFinalizer{}, "add finalizer",
	},
	"present, network not looked for by mark": {
		want, settled,
		plan.FindNetwork{Filter: byMarks}, findMarks,
	},
	"present, none with our mark, ID not looked for": {
		want, marked(settled),
		plan.FindNetwork{Filter: byID}, "find network net-1",
	},
	"present, ID gone": {
		want, named(marked(settled)),
		newNetwork, "create network default/example",
	},
	"present, no network": {
		want, marked(fresh),
		newNetwork, "create network default/example",
	},
	"present, several networks with our mark": {
		want, marked(fresh, network, copied),
		plan.Blocked{Reason: plan.ReasonAmbiguous}, two + " Delete the ones that are not needed.",
	},
	"present, a network with the ID but not our mark": {
		want, named(marked(settled), theirs),
		plan.Blocked{Reason: plan.ReasonNotOurs}, notMarked,
	},
	"present, a network with the ID and another object's mark": {
		want, named(marked(settled), with(network, func(n *neutron.Network) { n.Description = another + "-2" })),
		plan.Blocked{Reason: plan.ReasonNotOurs}, notMarked,
	},
	"present, a network with the ID and our mark, but of another cluster": {
		want, named(marked(settled), with(network, func(n *neutron.Network) { n.Description = another })),
		plan.Blocked{Reason: plan.ReasonNotOurs},
		`blocked: NotOurs: network net-1, which status.networkID names, has an owner marker of the cluster "c2", but this cluster is "c1". If both are the same cluster, restore its name with -cluster-name. Otherwise remove status.networkID (kubectl edit --subresource=status).`,
	},
	"present, a network with the ID, without our mark, subnets not looked for": {
		want, named(marked(settled), with(theirs, func(n *neutron.Network) { n.SubnetIDs = []string{"sub-1"} })),
		plan.FindSubnets{Filter: on}, "find subnets of network net-1",
	},
	"present, a network with the ID, without our mark, but our subnet on it": {
		want, named(marked(settled), theirs).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.UpdateNetwork{ID: "net-1", Changes: []plan.Change{{What: "name", From: strconv.Quote("mine"), To: `"default/example"`}, {What: "description", From: strconv.Quote("mine"), To: strconv.Quote(mark)}}, Update: neutron.NetworkUpdate{Name: "default/example", Description: mark, Revision: 3}},
		`update network net-1: name "mine" → "default/example", description "mine" → "samplecrd.k8s.io owner: c1/default/example"`,
	},
	"present, our network, with another name": {
		want, marked(settled, with(network, func(n *neutron.Network) { n.Name = "x" })),
		plan.UpdateNetwork{ID: "net-1", Changes: []plan.Change{{What: "name", From: strconv.Quote("x"), To: `"default/example"`}}, Update: neutron.NetworkUpdate{Name: "default/example", Description: mark, Revision: 3}},
		`update network net-1: name "x" → "default/example"`,
	},
	"present, our network, retained before": {
		want, marked(plan.Actual{Finalizer: true}.WithExtensions(all), retained),
		plan.UpdateNetwork{
			ID:      "net-1",
			Changes: []plan.Change{{What: "description", From: strconv.Quote(owner.RetainedMarker()), To: strconv.Quote(mark)}, {What: "MTU", From: "1450", To: "the largest allowed"}},
			Update:  neutron.NetworkUpdate{Name: "default/example", Description: mark, NetworkSettings: neutron.NetworkSettings{MTU: new(0)}, Revision: 3},
		},
		`update network net-1: description "samplecrd.k8s.io retained: c1/default/example" → "samplecrd.k8s.io owner: c1/default/example", MTU 1450 → the largest allowed`,
	},
	"present, our network, subnets not looked for": {
		want, marked(settled, network),
		plan.FindSubnets{Filter: on}, "find subnets of network net-1",
	},
	"present, our network, without subnets": {
		want, marked(settled, bare),
		newSubnet, "create subnet: 192.168.0.0/16, gateway 192.168.0.1",
	},
	"present, our network, none of our subnets": {
		want, marked(fresh, network).WithSubnets("net-1", []neutron.Subnet{foreign}),
		newSubnet, "create subnet: 192.168.0.0/16, gateway 192.168.0.1",
	},
	"present, our network, just created": {
		want, marked(fresh).WithNetwork(bare),
		newSubnet, "create subnet: 192.168.0.0/16, gateway 192.168.0.1",
	},
	"present, our subnet, with another CIDR": {
		wanting("10.0.0.0/24", ""), marked(settled, network).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.DeleteSubnet{ID: "sub-1", Revision: 4, From: prefix("192.168.0.0/16"), For: "10.0.0.0/24"},
		"delete subnet: 192.168.0.0/16 makes room for 10.0.0.0/24",
	},
	"present, our subnet taken away for another CIDR": {
		want, marked(settled, network).WithSubnets("net-1", []neutron.Subnet{oldRange}).WithoutSubnet("sub-2"),
		newSubnet, "create subnet: 192.168.0.0/16, gateway 192.168.0.1",
	},
	"present, our subnet, with another gateway": {
		wanting("192.168.1.0/16", "192.168.1.1"), marked(settled, network).WithSubnets("net-1", []neutron.Subnet{subnet}),
		updateSubnet(plan.Change{What: "gateway", From: "192.168.0.1", To: "192.168.1.1"}, neutron.SubnetSettings{
			Gateway: new(addr("192.168.1.1")), Pools: []neutron.Pool{
				{Start: addr("192.168.0.1"), End: addr("192.168.1.0")},
				{Start: addr("192.168.1.2"), End: addr("192.168.255.254")},
			},
		}),
		"update subnet: gateway 192.168.0.1 → 192.168.1.1",
	},
	"present, our subnet, without a gateway": {
		want, marked(settled, network).WithSubnets("net-1", []neutron.Subnet{with(subnet, func(s *neutron.Subnet) { s.Gateway, s.Pools = netip.Addr{}, plan.Pools(s.CIDR, netip.Addr{}) })}),
		updateSubnet(plan.Change{What: "gateway", From: "none", To: "192.168.0.1"}, neutron.SubnetSettings{
			Gateway: new(addr("192.168.0.1")), Pools: []neutron.Pool{{Start: addr("192.168.0.2"), End: addr("192.168.255.254")}},
		}),
		"update subnet: gateway none → 192.168.0.1",
	},
	"present, our subnet, without its mark": {
		want, marked(settled, network).WithSubnets("net-1", []neutron.Subnet{with(subnet, func(s *neutron.Subnet) { s.Name, s.Description = "x", "" })}),
		plan.UpdateSubnet{
			ID:      "sub-1",
			Changes: []plan.Change{{What: "name", From: `"x"`, To: `"default/example"`}, {What: "description", From: `""`, To: strconv.Quote(mark)}},
			Update:  neutron.SubnetUpdate{Name: "default/example", Description: mark, Revision: 4},
		},
		`update subnet: name "x" → "default/example", description "" → "samplecrd.k8s.io owner: c1/default/example"`,
	},
	"present, all as desired": {
		want, marked(settled, network).WithSubnets("net-1", []neutron.Subnet{foreign, subnet}),
		plan.Nothing{}, "nothing to do",
	},
	"present, all as desired with host bits": {
		wanting("192.168.1.0/16", ""), marked(settled, network).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.Nothing{}, "nothing to do",
	},
}

var twinRows = map[string]row{
	"twin, and the status names ours": {
		want, marked(settled, twin, network).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.DeleteNetwork{ID: "net-2", Revision: 1, DuplicateOf: "net-1"}, twinGoes,
	},
	"twin, and the status names none yet": {
		want, marked(fresh, twin, network).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.Nothing{}, "nothing to do",
	},
	"twin that is the elder, and the status names none yet: that with subnets is ours": {
		want, marked(fresh, with(twin, func(n *neutron.Network) { n.CreatedAt = born.Add(-time.Minute) }), network),
		plan.FindSubnets{Filter: on}, "find subnets of network net-1",
	},
	"twin, and neither has subnets: the elder is ours": {
		want, marked(fresh, with(twin, func(n *neutron.Network) { n.CreatedAt = born.Add(time.Second) }), bare),
		newSubnet, "create subnet: 192.168.0.0/16, gateway 192.168.0.1",
	},
	"twin at the edge of the window": {
		want, marked(settled, with(twin, func(n *neutron.Network) { n.CreatedAt = born.Add(-plan.DuplicateWindow) }), network).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.DeleteNetwork{ID: "net-2", Revision: 1, DuplicateOf: "net-1"}, twinGoes,
	},
	"born outside of the window": {
		want, marked(settled, with(twin, func(n *neutron.Network) { n.CreatedAt = born.Add(plan.DuplicateWindow + time.Second) }), network).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.Blocked{Reason: plan.ReasonAmbiguous}, two + " The status names net-1. Delete the ones that are not needed.",
	},
	"born at a time that the cloud does not tell": {
		want, marked(settled, with(twin, func(n *neutron.Network) { n.CreatedAt = time.Time{} }), network).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.Blocked{Reason: plan.ReasonAmbiguous}, two + " The status names net-1. Delete the ones that are not needed.",
	},
	"another name than we would have given": {
		want, marked(settled, with(twin, func(n *neutron.Network) { n.Name = "x" }), network).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.Blocked{Reason: plan.ReasonAmbiguous}, two + " The status names net-1. Delete the ones that are not needed.",
	},
	"tags, which we set none of": {
		want, marked(settled, with(twin, func(n *neutron.Network) { n.Tags = []string{"x"} }), network).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.Blocked{Reason: plan.ReasonAmbiguous}, two + " The status names net-1. Delete the ones that are not needed.",
	},
	"twin with a subnet that we do not know": {
		want, marked(settled, with(twin, func(n *neutron.Network) { n.SubnetIDs = []string{"sub-2"} }), network).WithSubnets("net-1", []neutron.Subnet{subnet}),
		plan.FindSubnets{Filter: neutron.SubnetFilter{NetworkID: "net-2"}}, "find subnets of network net-2",
	},
	"twin with a subnet that we made on it": {
		want, marked(settled, with(twin, func(n *neutron.Network) { n.SubnetIDs = []string{"sub-1"} }), network).
			WithSubnets("net-1", []neutron.Subnet{subnet}).WithSubnets("net-2", []neutron.Subnet{subnet}),
		plan.DeleteNetwork{ID: "net-2", Revision: 1, DuplicateOf: "net-1"}, twinGoes,
	},
	"twin with somebody's subnet on it": {
		want, marked(settled, with(twin, func(n *neutron.Network) { n.SubnetIDs = []string{"sub-9"} }), network).
			WithSubnets("net-1", []neutron.Subnet{subnet}).WithSubnets("net-2", []neutron.Subnet{foreign}),
		plan.Blocked{Reason: plan.ReasonAmbiguous}, two + " The status names net-1. Delete the ones that are not needed.",
	},
	"twin with a subnet that we are not shown": {
		want, marked(settled, with(twin, func(n *neutron.Network) { n.SubnetIDs = []string{"sub-9"} }), network).
			WithSubnets("net-1", []neutron.Subnet{subnet}).WithSubnets("net-2", nil),
		plan.Blocked{Reason: plan.ReasonAmbiguous}, two + " The status names net-1. Delete the ones that are not needed.",
	},
	"ours is mended although somebody copied its description": {
		wanting("192.168.0.0/16", "192.168.0.7"), marked(settled, copied, network).WithSubnets("net-1", []neutron.Subnet{subnet}),
		updateSubnet(plan.Change{What: "gateway", From: "192.168.0.1", To: "192.168.0.7"}, neutron.SubnetSettings{Gateway: new(addr("192.168.0.7")), Pools: plan.Pools(prefix("192.168.0.0/16"), addr("192.168.0.7"))}),
		"update subnet: gateway 192.168.0.1 → 192.168.0.7",
	},
	"two subnets with our mark, one of a range asked for a moment ago": {
		want, marked(settled, network).WithSubnets("net-1", []neutron.Subnet{subnet, oldRange}),
		plan.DeleteSubnet{ID: "sub-2", Revision: 4, From: prefix("10.0.0.0/24"), For: "192.168.0.0/16"},
		"delete subnet: 10.0.0.0/24 makes room for 192.168.0.0/16",
	},
	"two subnets with our mark, one born later": {
		want, marked(settled, network).WithSubnets("net-1", []neutron.Subnet{subnet, with(oldRange, func(s *neutron.Subnet) { s.CreatedAt = born.Add(time.Hour) })}),
		plan.Blocked{Reason: plan.ReasonAmbiguous},
		`blocked: Ambiguous: Neutron has 2 subnets with the description "samplecrd.k8s.io owner: c1/default/example" (sub-1, sub-2), but there must be only one. The status names sub-1. Delete the ones that are not needed.`,
	},
	"two subnets with our mark, neither as desired": {
		wanting("172.16.0.0/24", ""), marked(settled, network).WithSubnets("net-1", []neutron.Subnet{subnet, oldRange}),
		plan.Blocked{Reason: plan.ReasonAmbiguous},
		`blocked: Ambiguous: Neutron has 2 subnets with the description "samplecrd.k8s.io owner: c1/default/example" (sub-1, sub-2), but there must be only one. The status names sub-1. Delete the ones that are not needed.`,
	},
}

var adoptingRows = map[string]row{
	"adopting, network not looked for": {
		adopt, fresh,
		plan.FindNetwork{Filter: byID}, "find network net-1",
	},
	"adopting, no network": {
		adopt, named(fresh),
		plan.Blocked{Reason: plan.ReasonNotFound},
		"blocked: NotFound: network net-1, which spec.networkID names, does not exist, or the controller's project cannot see it.",
	},
	"adopting, another object's network": {
		adopt, named(fresh, with(theirs, func(n *neutron.Network) { n.Description = another })),
		plan.Blocked{Reason: plan.ReasonNotOurs},
		`blocked: NotOurs: network net-1 cannot be adopted: it has the owner marker of another Network ("samplecrd.k8s.io owner: c2/default/example").`,
	},
	"adopting, subnets not looked for": {
		adopt, named(fresh, with(theirs, func(n *neutron.Network) { n.SubnetIDs = []string{"sub-9"} })),
		plan.FindSubnets{Filter: on}, "find subnets of network net-1",
	},
	"adopting, no subnet": {
		adopt, named(fresh, theirs),
		newSubnet, "create subnet: 192.168.0.0/16, gateway 192.168.0.1",
	},
	"adopting, our subnet on it": {
		adopt, named(settled, theirs).WithSubnets("net-1", []neutron.Subnet{foreign, subnet}),
		plan.Nothing{}, "nothing to do",
	},
	"adopting, somebody's subnet of the range asked for": {
		adopt, named(fresh, theirs).WithSubnets("net-1", []neutron.Subnet{with(subnet, func(s *neutron.Subnet) { s.Name, s.Description = "x", "mine" })}),
		plan.Nothing{}, "nothing to do",
	},
	"adopting, somebody's subnet of the range asked for, with another gateway": {
		adopt, named(fresh, theirs).WithSubnets("net-1", []neutron.Subnet{with(subnet, func(s *neutron.Subnet) {
			s.Description, s.Gateway, s.Pools = "mine", addr("192.168.0.9"), pool("192.168.0.1", "192.168.0.8")
		})}),
		updateSubnet(plan.Change{What: "gateway", From: "192.168.0.9", To: "192.168.0.1"}, neutron.SubnetSettings{Gateway: new(addr("192.168.0.1")), Pools: pool("192.168.0.2", "192.168.0.8")}),
		"update subnet: gateway 192.168.0.9 → 192.168.0.1",
	},
	"adopted, and the range of somebody's subnet is no longer asked for": {
		adopting(wanting("10.0.0.0/24", "")), named(settled, theirs).WithSubnets("net-1", []neutron.Subnet{with(subnet, func(s *neutron.Subnet) { s.Description = "mine" })}),
		plan.Blocked{Reason: plan.ReasonNotOurs},
		"blocked: NotOurs: subnet sub-1 with the range 192.168.0.0/16 was adopted: it is not deleted to make room for 10.0.0.0/24. Delete the subnet, or restore the previous spec.",
	},
}

// TestOurs says which network and subnet go into the status.
func TestOurs(t *testing.T) {
	second := with(subnet, func(s *neutron.Subnet) { s.ID, s.CreatedAt = "sub-2", born.Add(time.Hour) })
	for name, test := range map[string]struct {
		desired         plan.Desired
		actual          plan.Actual
		network, subnet string
	}{
		"nobody has looked":          {want, settled, "net-1", "sub-1"},
		"nobody has looked by ID":    {want, marked(settled), "net-1", "sub-1"},
		"gone":                       {want, named(marked(settled)), "", ""},
		"gone, and never known":      {want, marked(fresh), "", ""},
		"found":                      {want, marked(fresh, network).WithSubnets("net-1", []neutron.Subnet{foreign, subnet}), "net-1", "sub-1"},
		"found, subnets not yet":     {want, marked(settled, network), "net-1", "sub-1"},
		"another, subnets not yet":   {want, marked(plan.Actual{Record: plan.Record{NetworkID: "net-0", SubnetID: "sub-0"}}, network), "net-1", ""},
		"subnet gone":                {want, marked(settled, network).WithSubnets("net-1", []neutron.Subnet{foreign}), "net-1", ""},
		"subnet not to be told":      {want, marked(settled, network).WithSubnets("net-1", []neutron.Subnet{subnet, second}), "net-1", ""},
		"created":                    {want, marked(fresh).WithNetwork(bare).WithSubnet(subnet), "net-1", "sub-1"},
		"subnet deleted":             {want, marked(settled, network).WithSubnets("net-1", []neutron.Subnet{subnet}).WithoutSubnet("sub-1"), "net-1", ""},
		"twins, one in the status":   {want, marked(settled, twin, network).WithSubnets("net-1", []neutron.Subnet{subnet}), "net-1", "sub-1"},
		"twins, none in the status":  {want, marked(fresh, twin, network).WithSubnets("net-1", []neutron.Subnet{subnet}), "net-1", "sub-1"},
		"copies, none in the status": {want, marked(fresh, copied, network), "", ""},
		"adopted":                    {adopt, named(fresh, theirs).WithSubnets("net-1", []neutron.Subnet{with(subnet, func(s *neutron.Subnet) { s.Description = "mine" })}), "net-1", "sub-1"},
		"to adopt, not there":        {adopt, named(fresh), "", ""},
		"to adopt, another's":        {adopt, named(fresh, with(theirs, func(n *neutron.Network) { n.Description = another })), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.actual.Ours(test.desired); got.NetworkID != test.network || got.SubnetID != test.subnet {
				t.Errorf("Ours() = %+v, want %q, %q", got, test.network, test.subnet)
			}
		})
	}
}

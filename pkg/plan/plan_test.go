package plan_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

var (
	owner = neutron.Owner{Cluster: "c1", Namespace: "default", Name: "example"}
	mark  = owner.Mark()

	network = neutron.Network{ID: "net-1", Name: "default/example", Description: mark, SubnetIDs: []string{"sub-1"}, Revision: 3}
	subnet  = neutron.Subnet{ID: "sub-1", NetworkID: "net-1", Description: mark, CIDR: prefix("192.168.0.0/16"), Gateway: addr("192.168.0.1"), Revision: 4}

	want    = plan.Want(owner, "192.168.0.0/16", "192.168.0.1")
	absent  = plan.WantAbsent(owner)
	byID    = neutron.NetworkFilter{ID: "net-1"}
	byMark  = neutron.NetworkFilter{Description: mark}
	byOwner = neutron.SubnetFilter{NetworkID: "net-1"}

	fresh   = plan.Actual{Finalizer: true}                                           // nothing in the status
	settled = plan.Actual{Finalizer: true, NetworkID: "net-1", SubnetID: "sub-1"}    // a full status
	found   = fresh.WithNetworks(byMark, []neutron.Network{network})                 // by mark
	stolen  = neutron.Network{ID: "net-1", Description: "mine"}                      // the ID, without the mark
	twin    = neutron.Network{ID: "net-2", Description: mark}                        // the mark, a second time
	foreign = neutron.Subnet{ID: "sub-9", NetworkID: "net-1", Description: "theirs"} // on our network
)

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }
func addr(text string) netip.Addr     { return netip.MustParseAddr(text) }

// compareValues makes cmp compare addresses as values.
var compareValues = cmp.Options{
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
	cmpopts.EquateEmpty(),
}

// TestNext walks every row of the decision table above Next, in its order.
func TestNext(t *testing.T) {
	ourTwinSubnet := subnet
	ourTwinSubnet.ID = "sub-2"
	withForeign := network
	withForeign.SubnetIDs = []string{"sub-1", "sub-9"}
	withoutGateway := subnet
	withoutGateway.Gateway = netip.Addr{}

	for name, test := range map[string]struct {
		desired plan.Desired
		actual  plan.Actual
		want    plan.Step
		text    string
	}{
		"absent, no finalizer": {
			absent, plan.Actual{NetworkID: "net-1"},
			plan.Nothing{}, "nothing to do",
		},
		"absent, network not looked for by mark": {
			absent, fresh,
			plan.FindNetwork{Filter: byMark}, `find network with description "samplecrd.k8s.io owner: c1/default/example"`,
		},
		"absent, network not looked for by mark, ID known": {
			absent, settled,
			plan.FindNetwork{Filter: byMark}, `find network with description "samplecrd.k8s.io owner: c1/default/example"`,
		},
		"absent, none with our mark, ID not looked for": {
			absent, settled.WithNetworks(byMark, nil),
			plan.FindNetwork{Filter: byID}, "find network net-1",
		},
		"absent, none with our mark, ID gone": {
			absent, settled.WithNetworks(byMark, nil).WithNetworks(byID, nil),
			plan.RemoveFinalizer{}, "remove finalizer",
		},
		"absent, no network": {
			absent, fresh.WithNetworks(byMark, nil),
			plan.RemoveFinalizer{}, "remove finalizer",
		},
		"absent, network deleted": {
			absent, settled.WithNetworks(byMark, []neutron.Network{network}).WithoutNetwork(),
			plan.RemoveFinalizer{}, "remove finalizer",
		},
		"absent, several networks with our mark": {
			absent, fresh.WithNetworks(byMark, []neutron.Network{twin, network}),
			plan.Blocked{Reason: plan.ReasonAmbiguous},
			`blocked: Ambiguous: Neutron has 2 networks with the description "samplecrd.k8s.io owner: c1/default/example" (net-1, net-2), and there should be one. Delete what nobody needs.`,
		},
		"absent, a network with the ID but not our mark": {
			absent, settled.WithNetworks(byMark, nil).WithNetworks(byID, []neutron.Network{stolen}),
			plan.Blocked{Reason: plan.ReasonNotOurs},
			`blocked: NotOurs: network net-1, which status.networkID names, is not marked as ours: its description is not "samplecrd.k8s.io owner: c1/default/example". If it is ours, put the description back; if not, remove status.networkID (kubectl edit --subresource=status).`,
		},
		"absent, network with subnets that we do not know": {
			absent, settled.WithNetworks(byMark, []neutron.Network{withForeign}),
			plan.FindSubnets{Filter: byOwner}, "find subnets of network net-1",
		},
		"absent, network with a subnet and none in the status": {
			absent, found,
			plan.FindSubnets{Filter: byOwner}, "find subnets of network net-1",
		},
		"absent, network with somebody else's subnet": {
			absent, settled.WithNetworks(byMark, []neutron.Network{withForeign}).WithSubnets([]neutron.Subnet{subnet, foreign}),
			plan.Blocked{Reason: plan.ReasonInUse},
			"blocked: InUse: network net-1 cannot be deleted: subnets that are not ours are on it and would go with it (sub-9). Delete them, or move what uses them.",
		},
		"absent, network with a subnet that we are not shown": {
			absent, settled.WithNetworks(byMark, []neutron.Network{withForeign}).WithSubnets([]neutron.Subnet{subnet}),
			plan.Blocked{Reason: plan.ReasonInUse},
			"blocked: InUse: network net-1 cannot be deleted: subnets that are not ours are on it and would go with it (sub-9). Delete them, or move what uses them.",
		},
		"absent, network with no subnet but the one in the status": {
			absent, settled.WithNetworks(byMark, []neutron.Network{network}),
			plan.DeleteNetwork{ID: "net-1", Revision: 3}, "delete network net-1",
		},
		"absent, network with no subnet but ours": {
			absent, found.WithSubnets([]neutron.Subnet{subnet}),
			plan.DeleteNetwork{ID: "net-1", Revision: 3}, "delete network net-1",
		},

		"invalid, nothing made": {
			plan.Want(owner, "nonsense", ""), plan.Actual{},
			plan.Blocked{Reason: plan.ReasonInvalidSpec},
			`blocked: InvalidSpec: spec.cidr "nonsense" is not a range in CIDR notation, such as 192.168.0.0/16 or fd00:1234::/64`,
		},
		"invalid, all made": {
			plan.Want(owner, "192.168.0.0/16", "10.0.0.1"), settled.WithSubnets([]neutron.Subnet{subnet}),
			plan.Blocked{Reason: plan.ReasonInvalidSpec},
			"blocked: InvalidSpec: spec.gateway 10.0.0.1 is not inside spec.cidr, which goes from 192.168.0.0 to 192.168.255.255",
		},

		"present, no finalizer": {
			want, plan.Actual{},
			plan.AddFinalizer{}, "add finalizer",
		},
		"present, network ID known, subnets not looked for": {
			want, settled,
			plan.FindSubnets{Filter: byOwner}, "find subnets of network net-1",
		},
		"present, network found by mark, subnets not looked for": {
			want, found,
			plan.FindSubnets{Filter: byOwner}, "find subnets of network net-1",
		},
		"present, our subnet, as desired": {
			want, settled.WithSubnets([]neutron.Subnet{foreign, subnet}),
			plan.Nothing{}, "nothing to do",
		},
		"present, our subnet, as desired with host bits": {
			plan.Want(owner, "192.168.1.0/16", ""), settled.WithSubnets([]neutron.Subnet{subnet}),
			plan.Nothing{}, "nothing to do",
		},
		"present, our subnet, with another gateway": {
			plan.Want(owner, "192.168.1.0/16", "192.168.1.1"), settled.WithSubnets([]neutron.Subnet{subnet}),
			plan.UpdateSubnet{ID: "sub-1", From: addr("192.168.0.1"), Update: neutron.SubnetUpdate{
				Gateway: addr("192.168.1.1"),
				Pools: []neutron.Pool{
					{Start: addr("192.168.0.1"), End: addr("192.168.1.0")},
					{Start: addr("192.168.1.2"), End: addr("192.168.255.254")},
				},
				Revision: 4,
			}},
			"update subnet: gateway 192.168.0.1 → 192.168.1.1",
		},
		"present, our subnet, without a gateway": {
			want, settled.WithSubnets([]neutron.Subnet{withoutGateway}),
			plan.UpdateSubnet{ID: "sub-1", Update: neutron.SubnetUpdate{
				Gateway:  addr("192.168.0.1"),
				Pools:    []neutron.Pool{{Start: addr("192.168.0.2"), End: addr("192.168.255.254")}},
				Revision: 4,
			}},
			"update subnet: gateway none → 192.168.0.1",
		},
		"present, our subnet, with another CIDR": {
			plan.Want(owner, "10.0.0.0/24", ""), settled.WithSubnets([]neutron.Subnet{subnet}),
			plan.DeleteSubnet{ID: "sub-1", Revision: 4, From: prefix("192.168.0.0/16"), To: prefix("10.0.0.0/24")},
			"delete subnet: 192.168.0.0/16 makes room for 10.0.0.0/24",
		},
		"present, several subnets with our mark": {
			want, settled.WithSubnets([]neutron.Subnet{subnet, ourTwinSubnet}),
			plan.Blocked{Reason: plan.ReasonAmbiguous},
			`blocked: Ambiguous: Neutron has 2 subnets with the description "samplecrd.k8s.io owner: c1/default/example" (sub-1, sub-2), and there should be one. The status names sub-1. Delete what nobody needs.`,
		},
		"present, none of ours, network not looked for, ID not known": {
			want, fresh,
			plan.FindNetwork{Filter: byMark}, `find network with description "samplecrd.k8s.io owner: c1/default/example"`,
		},
		"present, none of ours, network not looked for, ID known": {
			want, settled.WithSubnets([]neutron.Subnet{foreign}),
			plan.FindNetwork{Filter: byID}, "find network net-1",
		},
		"present, ID gone": {
			want, settled.WithSubnets(nil).WithNetworks(byID, nil),
			plan.FindNetwork{Filter: byMark}, `find network with description "samplecrd.k8s.io owner: c1/default/example"`,
		},
		"present, no network": {
			want, fresh.WithNetworks(byMark, nil),
			plan.CreateNetwork{Network: neutron.Network{Name: "default/example", Description: mark}},
			"create network default/example",
		},
		"present, several networks with our mark": {
			want, fresh.WithNetworks(byMark, []neutron.Network{network, twin}),
			plan.Blocked{Reason: plan.ReasonAmbiguous},
			`blocked: Ambiguous: Neutron has 2 networks with the description "samplecrd.k8s.io owner: c1/default/example" (net-1, net-2), and there should be one. Delete what nobody needs.`,
		},
		"present, a network with the ID but not our mark": {
			want, settled.WithSubnets(nil).WithNetworks(byID, []neutron.Network{stolen}),
			plan.Blocked{Reason: plan.ReasonNotOurs},
			`blocked: NotOurs: network net-1, which status.networkID names, is not marked as ours: its description is not "samplecrd.k8s.io owner: c1/default/example". If it is ours, put the description back; if not, remove status.networkID (kubectl edit --subresource=status).`,
		},
		"present, our network, none of our subnets": {
			want, found.WithSubnets([]neutron.Subnet{foreign}),
			plan.CreateSubnet{Subnet: neutron.Subnet{
				NetworkID: "net-1", Name: "default/example", Description: mark,
				CIDR: prefix("192.168.0.0/16"), Gateway: addr("192.168.0.1"),
			}},
			"create subnet: 192.168.0.0/16, gateway 192.168.0.1",
		},
		"present, our network, just created": {
			want, fresh.WithNetworks(byMark, nil).WithNetwork(neutron.Network{ID: "net-1", Description: mark}),
			plan.CreateSubnet{Subnet: neutron.Subnet{
				NetworkID: "net-1", Name: "default/example", Description: mark,
				CIDR: prefix("192.168.0.0/16"), Gateway: addr("192.168.0.1"),
			}},
			"create subnet: 192.168.0.0/16, gateway 192.168.0.1",
		},
		"present, our subnet taken away for another CIDR": {
			plan.Want(owner, "10.0.0.0/24", ""),
			settled.WithSubnets([]neutron.Subnet{subnet}).WithoutSubnet("sub-1").WithNetworks(byID, []neutron.Network{network}),
			plan.CreateSubnet{Subnet: neutron.Subnet{
				NetworkID: "net-1", Name: "default/example", Description: mark,
				CIDR: prefix("10.0.0.0/24"), Gateway: addr("10.0.0.1"),
			}},
			"create subnet: 10.0.0.0/24, gateway 10.0.0.1",
		},
	} {
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

// TestOurSubnetID says which subnet goes into the status.
func TestOurSubnetID(t *testing.T) {
	second := subnet
	second.ID = "sub-2"
	for name, test := range map[string]struct {
		actual plan.Actual
		want   string
	}{
		"nobody has looked":  {settled, "sub-1"},
		"found":              {fresh.WithSubnets([]neutron.Subnet{foreign, subnet}), "sub-1"},
		"gone":               {settled.WithSubnets([]neutron.Subnet{foreign}), ""},
		"not to be told":     {settled.WithSubnets([]neutron.Subnet{subnet, second}), ""},
		"created":            {fresh.WithNetwork(network).WithSubnet(subnet), "sub-1"},
		"deleted":            {settled.WithSubnets([]neutron.Subnet{subnet}).WithoutSubnet("sub-1"), ""},
		"gone with its home": {settled.WithNetworks(byID, nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.actual.OurSubnetID(owner); got != test.want {
				t.Errorf("OurSubnetID() = %q, want %q", got, test.want)
			}
		})
	}
}

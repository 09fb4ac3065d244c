package neutron_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

// TestSnapshot: a snapshot answers each filter as the server does, without a request,
// and changes nothing.
func TestSnapshot(t *testing.T) {
	server := embedded.New(embedded.Options{})
	if err := server.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	client, err := openstack.New(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	owner := neutron.Owner{Cluster: "prod", Namespace: "shop", Name: "db"}
	other := neutron.Owner{Cluster: "test", Namespace: "shop", Name: "db"}
	var ids []string
	for _, description := range []string{owner.Marker(), owner.RetainedMarker(), other.Marker(), "", owner.Marker() + "/more"} {
		network, err := client.CreateNetwork(t.Context(), neutron.NewNetwork{Name: "n", Description: description})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.CreateSubnet(t.Context(), neutron.NewSubnet{NetworkID: network.ID, Description: description, CIDR: netip.MustParsePrefix("10.0.0.0/24")})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, network.ID)
	}
	snapshot, err := neutron.NewSnapshot(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	before := len(server.Requests())

	for _, filter := range []neutron.NetworkFilter{
		{}, {ID: ids[0]}, {ID: "none"}, {Name: "n"},
		{Name: "none"}, {ID: ids[0], Name: "none"}, {ID: ids[2], Name: "n"},
	} {
		want, err := client.Networks(t.Context(), filter)
		got, failure := snapshot.Networks(t.Context(), filter)
		if diff := cmp.Diff(idsOf(want), idsOf(got)); diff != "" || err != nil || failure != nil {
			t.Errorf("Networks(%+v) differs (-server +snapshot): %v, %v\n%s", filter, err, failure, diff)
		}
		before++
	}
	for filter, want := range map[neutron.SubnetFilter]int{
		{}: 5, {NetworkID: ids[0]}: 1, {NetworkID: "none"}: 0, {Description: owner.Marker()}: 1, {NetworkID: ids[1], Description: owner.Marker()}: 0,
	} {
		if got, err := snapshot.Subnets(t.Context(), filter); len(got) != want || err != nil {
			t.Errorf("Subnets(%+v) = %d, %v, want %d", filter, len(got), err, want)
		}
	}
	var marked []string
	for _, m := range snapshot.Marked("prod") {
		if m.Owner != owner || len(m.Subnets) != 1 || m.Retained != (m.ID == ids[1]) {
			t.Errorf("Marked() has %+v", m)
		}
		marked = append(marked, m.ID)
	}
	if len(marked) != 2 {
		t.Errorf("Marked() has the networks %v, want those of the cluster", marked)
	}
	if n := len(server.Requests()); n != before {
		t.Errorf("the snapshot sent %d requests", n-before)
	}
	rejectsWrites(t, snapshot, ids[0])
	if n := len(server.Requests()); n != before {
		t.Errorf("the snapshot sent %d requests", n-before)
	}
}

// rejectsWrites checks that a client rejects each request that changes something.
func rejectsWrites(t *testing.T, client neutron.Client, id string) {
	t.Helper()
	errs := map[string]error{
		"DeleteNetwork": client.DeleteNetwork(t.Context(), id, 0), "DeleteSubnet": client.DeleteSubnet(t.Context(), id, 0),
		"AddNetworkTag": client.AddNetworkTag(t.Context(), id, "a"), "RemoveNetworkTag": client.RemoveNetworkTag(t.Context(), id, "a"),
	}
	errs["RemoveRouterInterface"] = client.RemoveRouterInterface(t.Context(), neutron.RouterInterface{})
	_, errs["AddRouterInterface"] = client.AddRouterInterface(t.Context(), neutron.RouterInterface{})
	_, errs["CreateNetwork"] = client.CreateNetwork(t.Context(), neutron.NewNetwork{})
	_, errs["UpdateNetwork"] = client.UpdateNetwork(t.Context(), id, neutron.NetworkUpdate{})
	_, errs["CreateSubnet"] = client.CreateSubnet(t.Context(), neutron.NewSubnet{})
	_, errs["UpdateSubnet"] = client.UpdateSubnet(t.Context(), id, neutron.SubnetUpdate{})
	for method, err := range errs {
		if !errors.Is(err, neutron.ErrRefused) {
			t.Errorf("%s() = %v, want a rejection", method, err)
		}
	}
}

func idsOf(networks []neutron.Network) map[string]bool {
	ids := map[string]bool{}
	for _, network := range networks {
		ids[network.ID] = true
	}
	return ids
}

package neutron_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// TestSnapshot: a snapshot responds to each filter without a request, and changes nothing.
func TestSnapshot(t *testing.T) {
	client, ctx := full(), t.Context()
	foreign := neutron.Owner{Cluster: "c2", Namespace: "default", Name: "example"}
	client.networks = append(client.networks,
		neutron.Network{ID: "net-3", Name: "n", Description: owner.RetainedMarker()},
		neutron.Network{ID: "net-4", Name: "n", Description: foreign.Marker()})
	client.subnets = append(client.subnets, neutron.Subnet{ID: "sub-2", NetworkID: "net-2", Description: "theirs"})
	snapshot, err := neutron.NewSnapshot(ctx, client)
	must(t, err)
	client.failure = errors.New("a request was sent")

	for filter, want := range map[neutron.NetworkFilter][]string{
		{}: {"net-1", "net-2", "net-3", "net-4"}, {ID: "net-1"}: {"net-1"}, {ID: "none"}: nil, {Name: "n"}: {"net-3", "net-4"},
		{ID: "net-1", Name: "n"}: nil, {ID: "net-3", Name: "n"}: {"net-3"},
	} {
		var got []string
		found, err := snapshot.Networks(ctx, filter)
		for _, network := range found {
			got = append(got, network.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("Networks(%+v): %v (-want +got):\n%s", filter, err, diff)
		}
	}
	for filter, want := range map[neutron.SubnetFilter]int{{}: 2, {NetworkID: "net-1"}: 1, {NetworkID: "none"}: 0} {
		if got, err := snapshot.Subnets(ctx, filter); len(got) != want || err != nil {
			t.Errorf("Subnets(%+v) = %d, %v, want %d", filter, len(got), err, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a snapshot sends a request that changes something")
		}
	}()
	_ = snapshot.DeleteNetwork(ctx, "net-1", 0)
}

package neutrontest

import (
	"net/http"
	"net/netip"
	"slices"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

var compareAddresses = cmp.Options{
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}

func pools(fromTo ...string) []neutron.Pool {
	var all []neutron.Pool
	for ends := range slices.Chunk(fromTo, 2) {
		all = append(all, neutron.Pool{Start: netip.MustParseAddr(ends[0]), End: netip.MustParseAddr(ends[1])})
	}
	return all
}

var subnetTests = []test{
	{"a subnet is created, with the first address as its gateway", func(s *suite) {
		network := s.createNetwork()
		created := s.createSubnet(network, "192.168.0.0/16")
		want := neutron.Subnet{
			ID: created.ID, NetworkID: network.ID, Name: "neutrontest", Description: s.marker,
			CIDR:    netip.MustParsePrefix("192.168.0.0/16"),
			Gateway: netip.MustParseAddr("192.168.0.1"),
			Pools:   pools("192.168.0.2", "192.168.255.254"),
			DHCP:    true,

			CreatedAt: created.CreatedAt,
		}
		if diff := cmp.Diff(want, created, compareAddresses); diff != "" {
			s.Errorf("CreateSubnet (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]neutron.Subnet{created}, s.subnets(network.ID), compareAddresses); diff != "" {
			s.Errorf("the subnet as it was created and as it is listed (-created +listed):\n%s", diff)
		}
		if after := s.network(network.ID); after.Revision <= network.Revision || !slices.Equal(after.SubnetIDs, []string{created.ID}) {
			s.Errorf("the network is %+v, want a revision above %d and the subnet %s", after, network.Revision, created.ID)
		}
	}},
	{"a gateway is used, and not in the pools", func(s *suite) {
		for gateway, want := range map[string][]neutron.Pool{
			"10.0.0.1":   pools("10.0.0.2", "10.0.0.254"),
			"10.0.0.254": pools("10.0.0.1", "10.0.0.253"),
			"10.0.0.100": pools("10.0.0.1", "10.0.0.99", "10.0.0.101", "10.0.0.254"),
		} {
			subnet := s.subnetOn(s.createNetwork(), "10.0.0.0/24")
			subnet.Gateway = new(netip.MustParseAddr(gateway))
			created, err := s.Client.CreateSubnet(s.Context(), subnet)
			if diff := cmp.Diff(want, created.Pools, compareAddresses); err != nil || created.Gateway != *subnet.Gateway || diff != "" {
				s.Errorf("gateway %s: got %v, %v, pools (-want +got):\n%s", gateway, created.Gateway, err, diff)
			}
		}
	}},
	{"pools are used", func(s *suite) {
		subnet := s.subnetOn(s.createNetwork(), "10.0.0.0/24")
		subnet.Pools = pools("10.0.0.10", "10.0.0.20", "10.0.0.30", "10.0.0.40")
		created, err := s.Client.CreateSubnet(s.Context(), subnet)
		if diff := cmp.Diff(subnet.Pools, created.Pools, compareAddresses); err != nil || diff != "" {
			s.Errorf("CreateSubnet: %v, pools (-want +got):\n%s", err, diff)
		}
	}},
	{"IPv6 works", func(s *suite) {
		network := s.createNetwork()
		subnet := s.subnetOn(network, "fd00:1::/64")
		subnet.Gateway = new(netip.MustParseAddr("fd00:1::1"))
		created, err := s.Client.CreateSubnet(s.Context(), subnet)
		s.wantNil("creating", err)
		if created.CIDR != subnet.CIDR || created.Gateway != *subnet.Gateway {
			s.Errorf("CreateSubnet = %+v, want %v and gateway %v", created, subnet.CIDR, *subnet.Gateway)
		}
		if diff := cmp.Diff(pools("fd00:1::2", "fd00:1::ffff:ffff:ffff:ffff"), created.Pools, compareAddresses); diff != "" {
			s.Errorf("pools (-want +got):\n%s", diff)
		}
		updated, err := s.Client.UpdateSubnet(s.Context(), created.ID, neutron.SubnetUpdate{
			SubnetSettings: neutron.SubnetSettings{Gateway: new(netip.MustParseAddr("fd00:1::ff")), Pools: pools("fd00:1::1", "fd00:1::fe", "fd00:1::100", "fd00:1::ffff:ffff:ffff:ffff")},
			Revision:       created.Revision,
		})
		if err != nil || updated.Gateway != netip.MustParseAddr("fd00:1::ff") {
			s.Errorf("UpdateSubnet = %+v, %v; want the gateway fd00:1::ff", updated, err)
		}
	}},
	{"subnets are found by their whole description", func(s *suite) {
		ours := s.createSubnet(s.createNetwork(), "10.0.0.0/24")
		marker := s.marker
		s.marker += "x"
		s.createSubnet(s.createNetwork(), "10.0.0.0/24")
		found, err := s.Client.Subnets(s.Context(), neutron.SubnetFilter{Description: marker})
		if diff := cmp.Diff([]neutron.Subnet{ours}, found, compareAddresses); err != nil || diff != "" {
			s.Errorf("Subnets: %v, (-want +got):\n%s", err, diff)
		}
	}},
	{"ranges must not overlap on a network", func(s *suite) {
		network := s.createNetwork()
		s.createSubnet(network, "10.0.0.0/16")
		for _, cidr := range []string{"10.0.0.0/16", "10.0.5.0/24", "10.0.0.0/8"} {
			_, err := s.Client.CreateSubnet(s.Context(), s.subnetOn(network, cidr))
			s.want("creating "+cidr, err, neutron.ErrRefused, http.StatusBadRequest, "InvalidInput")
		}
		s.createSubnet(network, "10.1.0.0/16")
		s.createSubnet(s.createNetwork(), "10.0.0.0/16")
	}},
	{"one of several equal concurrent requests succeeds", func(s *suite) {
		network := s.createNetwork()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { _, _ = s.Client.CreateSubnet(s.Context(), s.subnetOn(network, "10.0.0.0/24")) })
		}
		all.Wait()
		if found := s.subnets(network.ID); len(found) != 1 {
			s.Errorf("there are %d subnets, want 1: %v", len(found), found)
		}
	}},
	{"a subnet needs a network", func(s *suite) {
		_, err := s.Client.CreateSubnet(s.Context(), s.subnetOn(neutron.Network{ID: missing}, "10.0.0.0/24"))
		s.want("creating", err, neutron.ErrNotFound, http.StatusNotFound, "NetworkNotFound")
	}},
	{"a subnet is deleted", func(s *suite) {
		network := s.createNetwork()
		subnet := s.createSubnet(network, "10.0.0.0/24")
		s.wantNil("deleting", s.Client.DeleteSubnet(s.Context(), subnet.ID, subnet.Revision))
		err := s.Client.DeleteSubnet(s.Context(), subnet.ID, subnet.Revision)
		s.want("deleting it again", err, neutron.ErrNotFound, http.StatusNotFound, "SubnetNotFound")
		if after := s.network(network.ID); len(after.SubnetIDs) != 0 {
			s.Errorf("the network still has the subnets %v", after.SubnetIDs)
		}
	}},
	{"a subnet is not deleted at another revision", func(s *suite) {
		subnet := s.createSubnet(s.createNetwork(), "10.0.0.0/24")
		s.mustSend(http.MethodPut, "/v2.0/subnets/"+subnet.ID, `{"subnet": {"name": "changed"}}`, http.StatusOK, nil)
		err := s.Client.DeleteSubnet(s.Context(), subnet.ID, subnet.Revision)
		s.want("deleting", err, neutron.ErrConflict, http.StatusPreconditionFailed, "RevisionNumberConstraintFailed")
	}},
	{"a subnet is not deleted while a port has an address of it", func(s *suite) {
		network := s.createNetwork()
		subnet := s.createSubnet(network, "10.0.0.0/24")
		port := s.createPort(network)
		err := s.Client.DeleteSubnet(s.Context(), subnet.ID, subnet.Revision)
		s.want("deleting", err, neutron.ErrInUse, http.StatusConflict, "SubnetInUse")
		s.wantPorts(err, port)
		s.remove("ports", port)
		s.wantNil("deleting after the port was deleted", s.Client.DeleteSubnet(s.Context(), subnet.ID, subnet.Revision))
	}},
}

// gatewayTests check the change of a gateway, which keeps the subnet.
var gatewayTests = []test{
	{"a gateway is changed together with the pools", func(s *suite) {
		network := s.createNetwork()
		created := s.createSubnet(network, "192.168.0.0/16")
		update := neutron.SubnetUpdate{
			SubnetSettings: neutron.SubnetSettings{Gateway: new(netip.MustParseAddr("192.168.1.1")), Pools: pools("192.168.0.1", "192.168.1.0", "192.168.1.2", "192.168.255.254")},
			Revision:       created.Revision,
		}
		updated, err := s.Client.UpdateSubnet(s.Context(), created.ID, update)
		s.wantNil("updating", err)
		want := created
		want.Gateway, want.Pools, want.Revision = *update.Gateway, update.Pools, updated.Revision
		if diff := cmp.Diff(want, updated, compareAddresses); diff != "" || updated.Revision <= created.Revision {
			s.Errorf("UpdateSubnet: revision %d → %d (-want +got):\n%s", created.Revision, updated.Revision, diff)
		}
		if diff := cmp.Diff([]neutron.Subnet{updated}, s.subnets(network.ID), compareAddresses); diff != "" {
			s.Errorf("the subnet as it was updated and as it is listed (-updated +listed):\n%s", diff)
		}
	}},
	{"a gateway is removed", func(s *suite) {
		created := s.createSubnet(s.createNetwork(), "10.0.0.0/24")
		updated, err := s.Client.UpdateSubnet(s.Context(), created.ID, neutron.SubnetUpdate{SubnetSettings: neutron.SubnetSettings{Gateway: new(netip.Addr), Pools: created.Pools}, Revision: created.Revision})
		if err != nil || updated.Gateway.IsValid() {
			s.Errorf("UpdateSubnet = %+v, %v; want no gateway", updated, err)
		}
	}},
	{"a gateway is not changed while a pool has its address", func(s *suite) {
		created := s.createSubnet(s.createNetwork(), "10.0.0.0/24")
		_, err := s.Client.UpdateSubnet(s.Context(), created.ID, neutron.SubnetUpdate{
			SubnetSettings: neutron.SubnetSettings{Gateway: new(netip.MustParseAddr("10.0.0.9")), Pools: created.Pools}, Revision: created.Revision,
		})
		s.want("updating", err, neutron.ErrRefused, http.StatusConflict, "GatewayConflictWithAllocationPools")
		s.wantRejected(http.MethodPut, "/v2.0/subnets/"+created.ID, `{"subnet": {"gateway_ip": "10.0.0.9"}}`, http.StatusConflict, "GatewayConflictWithAllocationPools")
	}},
	{"gateway, pools and DHCP are changed while a port has an address", func(s *suite) {
		network := s.createNetwork()
		created := s.createSubnet(network, "10.0.0.0/24")
		s.createPort(network) // its address is then outside the pools
		_, err := s.Client.UpdateSubnet(s.Context(), created.ID, neutron.SubnetUpdate{
			SubnetSettings: neutron.SubnetSettings{Gateway: new(netip.MustParseAddr("10.0.0.254")), Pools: pools("10.0.0.253", "10.0.0.253"), DHCP: new(false)},
			Revision:       created.Revision,
		})
		s.wantNil("updating", err)
	}},
	{"a gateway is not changed at another revision", func(s *suite) {
		created := s.createSubnet(s.createNetwork(), "10.0.0.0/24")
		s.mustSend(http.MethodPut, "/v2.0/subnets/"+created.ID, `{"subnet": {"name": "changed"}}`, http.StatusOK, nil)
		_, err := s.Client.UpdateSubnet(s.Context(), created.ID, neutron.SubnetUpdate{
			SubnetSettings: neutron.SubnetSettings{Gateway: new(netip.MustParseAddr("10.0.0.254")), Pools: pools("10.0.0.1", "10.0.0.253")}, Revision: created.Revision,
		})
		s.want("updating", err, neutron.ErrConflict, http.StatusPreconditionFailed, "RevisionNumberConstraintFailed")
	}},
	{"a missing subnet is not updated", func(s *suite) {
		_, err := s.Client.UpdateSubnet(s.Context(), missing, neutron.SubnetUpdate{SubnetSettings: neutron.SubnetSettings{Gateway: new(netip.MustParseAddr("10.0.0.1"))}})
		s.want("updating", err, neutron.ErrNotFound, http.StatusNotFound, "SubnetNotFound")
	}},
	{"a change of a subnet is a change of its network", func(s *suite) {
		network := s.createNetwork()
		created := s.createSubnet(network, "10.0.0.0/24")
		before := s.network(network.ID)
		wantNext := func(change string) {
			after := s.network(network.ID)
			if after.Revision != before.Revision+1 {
				s.Errorf("the network's revision is %d before %s and %d after it, want the next one", before.Revision, change, after.Revision)
			}
			before = after
		}
		// Neutron 26 does not count other fields: see Cache.UpdateSubnet.
		for change, update := range map[string]neutron.SubnetUpdate{
			"another name": {Name: "changed"},
			"no gateway":   {SubnetSettings: neutron.SubnetSettings{Gateway: new(netip.Addr)}},
			"no DHCP":      {SubnetSettings: neutron.SubnetSettings{DHCP: new(false)}},
		} {
			update.Revision = created.Revision
			updated, err := s.Client.UpdateSubnet(s.Context(), created.ID, update)
			s.wantNil(change, err)
			created.Revision = updated.Revision
			wantNext(change)
		}
		s.wantNil("deleting", s.Client.DeleteSubnet(s.Context(), created.ID, created.Revision))
		wantNext("the deletion of the subnet")
	}},
}

package neutrontest

import (
	"net/http"
	"net/netip"
	"slices"
	"sync"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

func pools(fromTo ...string) []neutron.Pool {
	var all []neutron.Pool
	for ends := range slices.Chunk(fromTo, 2) {
		all = append(all, neutron.Pool{Start: netip.MustParseAddr(ends[0]), End: netip.MustParseAddr(ends[1])})
	}
	return all
}

// gateway returns the setting of a gateway.
func gateway(address string) neutron.SubnetSettings {
	return neutron.SubnetSettings{Gateway: new(netip.MustParseAddr(address))}
}

// gatewayAndPools returns the settings of a gateway and pools.
func gatewayAndPools(address string, fromTo ...string) neutron.SubnetSettings {
	settings := gateway(address)
	settings.Pools = pools(fromTo...)
	return settings
}

var noGateway = neutron.SubnetSettings{Gateway: new(netip.Addr)}

var subnetTests = []test{
	{"a subnet is created, with the first address as its gateway", func(s *suite) {
		network := s.createNetwork()
		created := s.createSubnet(network, "192.168.0.0/16")
		s.wantSubnet("creating", created, nil, neutron.Subnet{
			ID: created.ID, NetworkID: network.ID, Name: "neutrontest", Description: s.marker, CreatedAt: created.CreatedAt,
			CIDR: netip.MustParsePrefix("192.168.0.0/16"), Gateway: netip.MustParseAddr("192.168.0.1"),
			Pools: pools("192.168.0.2", "192.168.255.254"), DHCP: true,
		})
		if after := s.network(network.ID); after.Revision <= network.Revision ||
			!slices.Equal(after.SubnetIDs, []string{created.ID}) {
			s.Errorf("the network is %+v, want a revision above %d and the subnet %s", after, network.Revision, created.ID)
		}
	}},
	{"a gateway is used, and not in the pools", func(s *suite) {
		for _, test := range []struct {
			cidr, gateway string
			want          []neutron.Pool
		}{
			{"10.0.0.0/24", "10.0.0.1", pools("10.0.0.2", "10.0.0.254")},
			{"10.0.0.0/24", "10.0.0.254", pools("10.0.0.1", "10.0.0.253")},
			{"10.0.0.0/24", "10.0.0.100", pools("10.0.0.1", "10.0.0.99", "10.0.0.101", "10.0.0.254")},
			{"10.0.0.0/24", "10.9.9.9", pools("10.0.0.1", "10.0.0.254")},
			{"fd00:1::/64", "fd00:1::1", pools("fd00:1::2", "fd00:1::ffff:ffff:ffff:ffff")},
		} {
			created, err := s.tryCreate(test.cidr, gateway(test.gateway))
			s.wantNil("creating with the gateway "+test.gateway, err)
			s.wantEqual("gateway", netip.MustParseAddr(test.gateway), created.Gateway)
			s.wantEqual("pools beside the gateway "+test.gateway, test.want, created.Pools)
		}
	}},
	{"ranges that Network permits are accepted", func(s *suite) {
		for _, cidr := range []string{
			"10.0.0.0/30", "10.0.0.4/30", "128.0.0.0/1", "169.254.0.0/16", "240.0.0.0/4", "100.64.0.0/10",
			"fd00::/126", "fd00::/8", "fe80::/64", "2001:db8::/96", "::ffff:10.0.0.0/120",
		} {
			subnet := s.createSubnet(s.createNetwork(), cidr)
			if subnet.CIDR != netip.MustParsePrefix(cidr) || !subnet.CIDR.Contains(subnet.Gateway) {
				s.Errorf("%s: got %v with gateway %v", cidr, subnet.CIDR, subnet.Gateway)
			}
		}
	}},
	{"values that do not fit together are rejected", func(s *suite) {
		// The rules of Network are for these, and for others: see schema.yaml.
		inPool := neutron.SubnetSettings{Pools: pools("10.0.0.1", "10.0.0.9")}
		for name, test := range map[string]struct {
			cidr     string
			settings neutron.SubnetSettings
			status   int
			typ      string
		}{
			"no room for DHCP":           {"10.0.0.0/31", neutron.SubnetSettings{}, http.StatusBadRequest, "InvalidInput"},
			"no room for DHCP, IPv6":     {"fd00::/127", neutron.SubnetSettings{}, http.StatusBadRequest, "InvalidInput"},
			"the network address":        {"10.0.0.0/24", gateway("10.0.0.0"), http.StatusBadRequest, "InvalidInput"},
			"the broadcast address":      {"10.0.0.0/24", gateway("10.0.0.255"), http.StatusBadRequest, "InvalidInput"},
			"a gateway of IPv6":          {"10.0.0.0/24", gateway("fd00::1"), http.StatusBadRequest, "InvalidInput"},
			"the gateway is in the pool": {"10.0.0.0/24", inPool, http.StatusConflict, "GatewayConflictWithAllocationPools"},
		} {
			_, err := s.tryCreate(test.cidr, test.settings)
			s.want("creating with "+name, err, neutron.ErrRefused, test.status, test.typ)
		}
	}},
	{"ranges must not overlap on a network", func(s *suite) {
		network := s.createNetwork()
		s.createSubnet(network, "10.0.0.0/16")
		for _, cidr := range []string{"10.0.0.0/16", "10.0.5.0/24", "10.0.0.0/8"} {
			_, err := s.Client.CreateSubnet(s.Context(), s.subnetOn(network, cidr))
			s.wantRejected("creating "+cidr, err, "InvalidInput")
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
	{"what does not exist is neither used nor changed", func(s *suite) {
		_, err := s.Client.CreateSubnet(s.Context(), s.subnetOn(neutron.Network{ID: missing}, "10.0.0.0/24"))
		s.want("creating a subnet", err, neutron.ErrNotFound, http.StatusNotFound, "NetworkNotFound")
		_, err = s.tryUpdate(neutron.Subnet{ID: missing}, gateway("10.0.0.1"))
		s.want("updating a subnet", err, neutron.ErrNotFound, http.StatusNotFound, "SubnetNotFound")
		network := s.createNetwork()
		subnet := s.createSubnet(network, "10.0.0.0/24")
		s.wantNil("deleting", s.Client.DeleteSubnet(s.Context(), subnet.ID, subnet.Revision))
		err = s.Client.DeleteSubnet(s.Context(), subnet.ID, subnet.Revision)
		s.want("deleting a subnet again", err, neutron.ErrNotFound, http.StatusNotFound, "SubnetNotFound")
		s.wantEqual("subnets of the network", []string(nil), s.network(network.ID).SubnetIDs)
	}},
	{"a gateway is not changed while a pool has its address", func(s *suite) {
		created := s.createSubnet(s.createNetwork(), "10.0.0.0/24")
		settings := gateway("10.0.0.9")
		settings.Pools = created.Pools
		_, err := s.tryUpdate(created, settings)
		s.want("updating", err, neutron.ErrRefused, http.StatusConflict, "GatewayConflictWithAllocationPools")
		s.mustFail(http.MethodPut, "/v2.0/subnets/"+created.ID, `{"subnet": {"gateway_ip": "10.0.0.9"}}`,
			http.StatusConflict, "GatewayConflictWithAllocationPools")
	}},
	{"gateway, pools and DHCP are changed while a port has an address", func(s *suite) {
		network := s.createNetwork()
		created := s.createSubnet(network, "10.0.0.0/24")
		s.createPort(network) // its address is then outside the pools
		settings := gatewayAndPools("10.0.0.254", "10.0.0.253", "10.0.0.253")
		settings.DHCP = new(false)
		_, err := s.tryUpdate(created, settings)
		s.wantNil("updating", err)
	}},
	{"a change of a subnet is a change of its network", func(s *suite) {
		network := s.createNetwork()
		revision := network.Revision
		wantNext := func(change string) {
			s.Helper()
			if revision++; s.network(network.ID).Revision != revision {
				s.Errorf("the network's revision after %s is %d, want %d", change, s.network(network.ID).Revision, revision)
			}
		}
		subnet := s.createSubnet(network, "10.0.0.0/24")
		wantNext("a create")
		// Neutron 26 does not count other fields: see Cache.UpdateSubnet.
		for change, update := range map[string]neutron.SubnetUpdate{
			"another name": {Name: "changed"},
			"no gateway":   {SubnetSettings: noGateway},
			"no DHCP":      {SubnetSettings: neutron.SubnetSettings{DHCP: new(false)}},
		} {
			update.Revision = subnet.Revision
			updated, err := s.Client.UpdateSubnet(s.Context(), subnet.ID, update)
			s.wantNil(change, err)
			subnet = updated
			wantNext(change)
		}
		if subnet.Gateway.IsValid() || subnet.DHCP || subnet.Name != "changed" {
			s.Errorf("the subnet is %+v after the changes", subnet)
		}
		s.wantNil("deleting", s.Client.DeleteSubnet(s.Context(), subnet.ID, subnet.Revision))
		wantNext("the deletion of the subnet")
	}},
}

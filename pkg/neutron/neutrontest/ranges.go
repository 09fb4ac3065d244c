package neutrontest

import (
	"net/http"
	"net/netip"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// rangeTests check which ranges, gateways and pools Neutron accepts. The schema of
// Network and the plan reject some of the others earlier, with a better message.
var rangeTests = []test{
	{"accepted ranges", func(s *suite) {
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
	{"rejected ranges", func(s *suite) {
		network := s.createNetwork()
		for _, cidr := range []string{
			"0.0.0.0/0", "::/0", "0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/24", "ff02::/64",
			"10.0.0.0/31", "10.0.0.0/32", "fd00::/127", "fd00::/128",
		} {
			_, err := s.Client.CreateSubnet(s.Context(), s.subnetOn(network, cidr))
			s.wantRejected("creating "+cidr, err, "InvalidInput")
		}
	}},
	{"rejected gateways", func(s *suite) {
		for _, gateway := range []string{"10.0.0.0", "10.0.0.255", "fd00::1"} {
			_, err := s.tryCreate("10.0.0.0/24", neutron.SubnetSettings{Gateway: new(netip.MustParseAddr(gateway))})
			s.wantRejected("creating with gateway "+gateway, err, "InvalidInput")
		}
	}},
	{"rejected pools", func(s *suite) {
		for name, test := range map[string]struct {
			pools  []neutron.Pool
			status int
			typ    string
		}{
			"with the gateway": {pools("10.0.0.1", "10.0.0.9"), http.StatusConflict, "GatewayConflictWithAllocationPools"},
			"that overlap": {pools("10.0.0.10", "10.0.0.20", "10.0.0.15", "10.0.0.30"), http.StatusConflict,
				"OverlappingAllocationPools"},
			"outside":            {pools("10.0.1.10", "10.0.1.20"), http.StatusBadRequest, "OutOfBoundsAllocationPool"},
			"to the broadcast":   {pools("10.0.0.10", "10.0.0.255"), http.StatusBadRequest, "OutOfBoundsAllocationPool"},
			"that run backwards": {pools("10.0.0.20", "10.0.0.10"), http.StatusBadRequest, "InvalidAllocationPool"},
			"of IPv6":            {pools("fd00::1", "fd00::2"), http.StatusBadRequest, "InvalidAllocationPool"},
		} {
			_, err := s.tryCreate("10.0.0.0/24", neutron.SubnetSettings{Pools: test.pools})
			s.want("creating with pools "+name, err, neutron.ErrRefused, test.status, test.typ)
		}
	}},
	{"rejected name servers and host routes", func(s *suite) {
		servers := func(addresses ...string) neutron.SubnetSettings {
			all := []netip.Addr{}
			for _, address := range addresses {
				all = append(all, netip.MustParseAddr(address))
			}
			return neutron.SubnetSettings{Nameservers: &all}
		}
		routes := func(count int, destination, nextHop string) neutron.SubnetSettings {
			var all []neutron.HostRoute
			prefix := netip.MustParsePrefix(destination)
			for range count {
				all = append(all, neutron.HostRoute{Destination: prefix, NextHop: netip.MustParseAddr(nextHop)})
				prefix = netip.PrefixFrom(prefix.Addr().Next(), prefix.Bits())
			}
			return neutron.SubnetSettings{HostRoutes: &all}
		}
		for name, test := range map[string]struct {
			settings neutron.SubnetSettings
			typ      string
		}{
			"six name servers": {servers("1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4", "1.1.1.5", "1.1.1.6"),
				"DNSNameServersExhausted"},
			"equal name servers":    {servers("1.1.1.1", "1.1.1.1"), "HTTPBadRequest"},
			"a name server of IPv6": {servers("fd00::1"), "InvalidInput"},
			"21 routes":             {routes(21, "10.9.0.0/32", "10.0.0.9"), "HostRoutesExhausted"},
			"a next hop of IPv6":    {routes(1, "10.9.0.0/32", "fd00::1"), "InvalidInput"},
			"a destination of IPv6": {routes(1, "fd00::/64", "10.0.0.9"), "InvalidInput"},
			"host bits":             {routes(1, "10.9.0.1/16", "10.0.0.9"), "HTTPBadRequest"},
		} {
			_, err := s.tryCreate("10.0.0.0/24", test.settings)
			s.wantRejected("creating with "+name, err, test.typ)
		}
	}},
}

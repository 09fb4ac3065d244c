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
			s.want("creating "+cidr, err, neutron.ErrRefused, http.StatusBadRequest, "InvalidInput")
		}
	}},
	{"rejected gateways", func(s *suite) {
		network := s.createNetwork()
		for _, gateway := range []string{"10.0.0.0", "10.0.0.255", "fd00::1"} {
			subnet := s.subnetOn(network, "10.0.0.0/24")
			subnet.Gateway = new(netip.MustParseAddr(gateway))
			_, err := s.Client.CreateSubnet(s.Context(), subnet)
			s.want("creating with gateway "+gateway, err, neutron.ErrRefused, http.StatusBadRequest, "InvalidInput")
		}
	}},
	{"a gateway outside of the range is accepted", func(s *suite) {
		subnet := s.subnetOn(s.createNetwork(), "10.0.0.0/24")
		subnet.Gateway = new(netip.MustParseAddr("10.9.9.9"))
		created, err := s.Client.CreateSubnet(s.Context(), subnet)
		if err != nil || created.Gateway != *subnet.Gateway {
			s.Errorf("CreateSubnet = %+v, %v; want the gateway %v", created, err, *subnet.Gateway)
		}
	}},
	{"rejected pools", func(s *suite) {
		network := s.createNetwork()
		for name, test := range map[string]struct {
			pools  []neutron.Pool
			status int
			typ    string
		}{
			"with the gateway":   {pools("10.0.0.1", "10.0.0.9"), http.StatusConflict, "GatewayConflictWithAllocationPools"},
			"that overlap":       {pools("10.0.0.10", "10.0.0.20", "10.0.0.15", "10.0.0.30"), http.StatusConflict, "OverlappingAllocationPools"},
			"outside":            {pools("10.0.1.10", "10.0.1.20"), http.StatusBadRequest, "OutOfBoundsAllocationPool"},
			"to the broadcast":   {pools("10.0.0.10", "10.0.0.255"), http.StatusBadRequest, "OutOfBoundsAllocationPool"},
			"that run backwards": {pools("10.0.0.20", "10.0.0.10"), http.StatusBadRequest, "InvalidAllocationPool"},
			"of IPv6":            {pools("fd00::1", "fd00::2"), http.StatusBadRequest, "InvalidAllocationPool"},
		} {
			subnet := s.subnetOn(network, "10.0.0.0/24")
			subnet.Pools = test.pools
			_, err := s.Client.CreateSubnet(s.Context(), subnet)
			s.want("creating with pools "+name, err, neutron.ErrRefused, test.status, test.typ)
		}
	}},
}

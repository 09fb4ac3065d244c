package neutrontest

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Which ranges and gateways a Neutron takes. The schema of Network, and the
// plan, refuse some of the others earlier, with a better sentence.
var rangeTests = []test{
	{"these ranges can be had", func(s *suite) {
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
	{"these ranges cannot be had", func(s *suite) {
		network := s.createNetwork()
		for _, cidr := range []string{
			"0.0.0.0/0", "::/0", "0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/24", "ff02::/64",
			"10.0.0.0/31", "10.0.0.0/32", "fd00::/127", "fd00::/128",
		} {
			_, err := s.Client.CreateSubnet(s.Context(), s.subnetOn(network, cidr))
			s.want("creating "+cidr, err, neutron.ErrRefused, http.StatusBadRequest, "InvalidInput")
		}
	}},
	{"these gateways cannot be had", func(s *suite) {
		network := s.createNetwork()
		for _, gateway := range []string{"10.0.0.0", "10.0.0.255", "fd00::1"} {
			subnet := s.subnetOn(network, "10.0.0.0/24")
			subnet.Gateway = new(netip.MustParseAddr(gateway))
			_, err := s.Client.CreateSubnet(s.Context(), subnet)
			s.want("creating with gateway "+gateway, err, neutron.ErrRefused, http.StatusBadRequest, "InvalidInput")
		}
	}},
	{"a gateway outside of the range can be had", func(s *suite) {
		subnet := s.subnetOn(s.createNetwork(), "10.0.0.0/24")
		subnet.Gateway = new(netip.MustParseAddr("10.9.9.9"))
		created, err := s.Client.CreateSubnet(s.Context(), subnet)
		if err != nil || created.Gateway != *subnet.Gateway {
			s.Errorf("CreateSubnet = %+v, %v; want the gateway %v", created, err, *subnet.Gateway)
		}
	}},
	{"these pools cannot be had", func(s *suite) {
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

// What can be seen only past the client.
var rawTests = []test{
	{"host bits are dropped", func(s *suite) {
		network := s.createNetwork()
		s.mustSend(http.MethodPost, "/v2.0/subnets", `{"subnet": {"network_id": "`+network.ID+`", "cidr": "192.168.1.0/16", "ip_version": 4}}`, http.StatusCreated, nil)
		if got := s.subnets(network.ID)[0]; got.CIDR != netip.MustParsePrefix("192.168.0.0/16") || got.Gateway != netip.MustParseAddr("192.168.0.1") {
			s.Errorf("192.168.1.0/16 became %v with gateway %v", got.CIDR, got.Gateway)
		}
	}},
	{"what a subnet is cannot be changed", func(s *suite) {
		network := s.createNetwork()
		subnet := s.createSubnet(network, "10.0.0.0/24")
		for _, change := range []string{`"cidr": "10.0.0.0/24"`, `"ip_version": 4`, `"network_id": "` + network.ID + `"`, `"id": "` + missing + `"`} {
			s.wantRefused(http.MethodPut, "/v2.0/subnets/"+subnet.ID, `{"subnet": {`+change+`}}`, http.StatusBadRequest, "HTTPBadRequest")
		}
	}},
	{"there is no idempotency key, and there are no tags at birth", func(s *suite) {
		for _, attribute := range []string{`"id": "` + missing + `"`, `"tags": ["x"]`, `"revision_number": 1`, `"nosuch": 1`} {
			s.wantRefused(http.MethodPost, "/v2.0/networks", `{"network": {`+attribute+`}}`, http.StatusBadRequest, "HTTPBadRequest")
		}
	}},
	{"a filter that is not known is refused, not ignored", func(s *suite) {
		s.wantRefused(http.MethodGet, "/v2.0/networks?nosuch=1", "", http.StatusBadRequest, "HTTPBadRequest")
		s.wantRefused(http.MethodGet, "/v2.0/subnets?nosuch=1", "", http.StatusBadRequest, "HTTPBadRequest")
	}},
	{"a list can be read in pages", func(s *suite) {
		var want, got []string
		for range 5 {
			want = append(want, s.createNetwork().ID)
		}
		query, pages := "?limit=2&description="+strings.ReplaceAll(s.mark, " ", "+"), 0
		for query != "" && pages < 5 {
			pages++
			var page struct {
				Networks []struct{ ID string }
				Links    []struct{ Rel, Href string } `json:"networks_links"`
			}
			s.mustSend(http.MethodGet, "/v2.0/networks"+query, "", http.StatusOK, &page)
			for _, network := range page.Networks {
				got = append(got, network.ID)
			}
			query = ""
			for _, link := range page.Links {
				if link.Rel == "next" {
					_, query, _ = strings.Cut(link.Href, "?")
					query = "?" + query
				}
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if pages != 3 || !slices.Equal(want, got) {
			s.Errorf("%d pages with %v, want 3 with %v", pages, got, want)
		}
	}},
	{"a page after an object that is gone", func(s *suite) {
		s.wantRefused(http.MethodGet, "/v2.0/networks?limit=2&marker="+missing, "", http.StatusNotFound, "NetworkNotFound")
		s.createSubnet(s.createNetwork(), "10.0.0.0/24")
		var page struct{ Subnets []struct{ ID string } }
		s.mustSend(http.MethodGet, "/v2.0/subnets?limit=2&description="+strings.ReplaceAll(s.mark, " ", "+")+"&marker="+missing, "", http.StatusOK, &page)
		if len(page.Subnets) != 1 {
			s.Errorf("the page has %d subnets, want the first page over again", len(page.Subnets))
		}
	}},
	{"several are created at once or not at all", func(s *suite) {
		network := s.createNetwork()
		bulk := func(cidrs ...any) string {
			one := `{"network_id": "` + network.ID + `", "ip_version": 4, "cidr": "%s"}`
			return fmt.Sprintf(`{"subnets": [`+one+`, `+one+`]}`, cidrs...)
		}
		s.wantRefused(http.MethodPost, "/v2.0/subnets", bulk("10.0.0.0/24", "10.0.0.0/25"), http.StatusBadRequest, "InvalidInput")
		if left := s.subnets(network.ID); len(left) != 0 {
			s.Errorf("left of a request that failed: %v", left)
		}
		before := s.network(network.ID)
		s.mustSend(http.MethodPost, "/v2.0/subnets", bulk("10.0.0.0/24", "10.0.1.0/24"), http.StatusCreated, nil)
		// It is one revision more, or two if a second has passed in between.
		if after := s.network(network.ID); len(after.SubnetIDs) != 2 || after.Revision <= before.Revision || after.Revision > before.Revision+2 {
			s.Errorf("the network went from %+v to %+v, want two subnets and a revision more", before, after)
		}
	}},
	{"tags are changes", func(s *suite) {
		if !s.has(neutron.ExtensionTags) {
			return // there are none
		}
		network := s.createNetwork()
		for range 2 {
			s.mustSend(http.MethodPut, "/v2.0/networks/"+network.ID+"/tags", `{"tags": ["a", "b"]}`, http.StatusOK, nil)
		}
		if after := s.network(network.ID); after.Revision != network.Revision+1 {
			s.Errorf("the revision went from %d to %d, want one more", network.Revision, after.Revision)
		}
	}},
	{"the version document", func(s *suite) {
		var body struct{ Versions []struct{ ID string } }
		s.mustSend(http.MethodGet, "/", "", http.StatusOK, &body)
		if len(body.Versions) != 1 || body.Versions[0].ID != "v2.0" {
			s.Errorf("versions = %+v, want v2.0", body.Versions)
		}
	}},
}

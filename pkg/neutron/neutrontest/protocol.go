package neutrontest

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// protocolTests check what the client depends on, with requests of their own.
var protocolTests = []test{
	{"host bits are dropped", func(s *suite) {
		network := s.createNetwork()
		s.mustSend(http.MethodPost, "/v2.0/subnets", `{"subnet": {"network_id": "`+network.ID+`", "cidr": "192.168.1.0/16", "ip_version": 4}}`, http.StatusCreated, nil)
		if got := s.subnets(network.ID)[0]; got.CIDR != netip.MustParsePrefix("192.168.0.0/16") || got.Gateway != netip.MustParseAddr("192.168.0.1") {
			s.Errorf("192.168.1.0/16 became %v with gateway %v", got.CIDR, got.Gateway)
		}
	}},
	{"the identity of a subnet is read-only", func(s *suite) {
		network := s.createNetwork()
		subnet := s.createSubnet(network, "10.0.0.0/24")
		for _, change := range []string{`"cidr": "10.0.0.0/24"`, `"ip_version": 4`, `"network_id": "` + network.ID + `"`, `"id": "` + missing + `"`} {
			s.wantRejected(http.MethodPut, "/v2.0/subnets/"+subnet.ID, `{"subnet": {`+change+`}}`, http.StatusBadRequest, "HTTPBadRequest")
		}
	}},
	{"a create accepts neither an ID nor tags", func(s *suite) {
		for _, attribute := range []string{`"id": "` + missing + `"`, `"tags": ["x"]`, `"revision_number": 1`, `"nosuch": 1`} {
			s.wantRejected(http.MethodPost, "/v2.0/networks", `{"network": {`+attribute+`}}`, http.StatusBadRequest, "HTTPBadRequest")
		}
	}},
	{"an unknown filter is rejected, not ignored", func(s *suite) {
		s.wantRejected(http.MethodGet, "/v2.0/networks?nosuch=1", "", http.StatusBadRequest, "HTTPBadRequest")
		s.wantRejected(http.MethodGet, "/v2.0/subnets?nosuch=1", "", http.StatusBadRequest, "HTTPBadRequest")
	}},
	{"a list has pages", func(s *suite) {
		var want, got []string
		for range 5 {
			want = append(want, s.createNetwork().ID)
		}
		query, pages := "?limit=2&description="+strings.ReplaceAll(s.marker, " ", "+"), 0
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
	{"the page after a deleted object", func(s *suite) {
		s.wantRejected(http.MethodGet, "/v2.0/networks?limit=2&marker="+missing, "", http.StatusNotFound, "NetworkNotFound")
		s.createSubnet(s.createNetwork(), "10.0.0.0/24")
		var page struct{ Subnets []struct{ ID string } }
		s.mustSend(http.MethodGet, "/v2.0/subnets?limit=2&description="+strings.ReplaceAll(s.marker, " ", "+")+"&marker="+missing, "", http.StatusOK, &page)
		if len(page.Subnets) != 1 {
			s.Errorf("the page has %d subnets, want the first page", len(page.Subnets))
		}
	}},
	{"a bulk request creates all objects or none", func(s *suite) {
		network := s.createNetwork()
		bulk := func(cidrs ...any) string {
			one := `{"network_id": "` + network.ID + `", "ip_version": 4, "cidr": "%s"}`
			return fmt.Sprintf(`{"subnets": [`+one+`, `+one+`]}`, cidrs...)
		}
		s.wantRejected(http.MethodPost, "/v2.0/subnets", bulk("10.0.0.0/24", "10.0.0.0/25"), http.StatusBadRequest, "InvalidInput")
		if left := s.subnets(network.ID); len(left) != 0 {
			s.Errorf("left by a failed request: %v", left)
		}
		before := s.network(network.ID)
		s.mustSend(http.MethodPost, "/v2.0/subnets", bulk("10.0.0.0/24", "10.0.1.0/24"), http.StatusCreated, nil)
		// It is one revision more, or two if a second has passed meanwhile.
		if after := s.network(network.ID); len(after.SubnetIDs) != 2 || after.Revision <= before.Revision || after.Revision > before.Revision+2 {
			s.Errorf("the network went from %+v to %+v, want two subnets and a revision more", before, after)
		}
	}},
	{"equal tags are no change", func(s *suite) {
		if !s.can(neutron.ExtensionTags) {
			return
		}
		network := s.createNetwork()
		for range 2 {
			s.mustSend(http.MethodPut, "/v2.0/networks/"+network.ID+"/tags", `{"tags": ["a", "b"]}`, http.StatusOK, nil)
		}
		if after := s.network(network.ID); after.Revision != network.Revision+1 {
			s.Errorf("the revision went from %d to %d, want one more", network.Revision, after.Revision)
		}
	}},
}

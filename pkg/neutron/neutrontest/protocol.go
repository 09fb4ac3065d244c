package neutrontest

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// protocolTests check what the client depends on, with requests that it does not
// make.
var protocolTests = []test{
	{"host bits are dropped", func(s *suite) {
		network := s.createNetwork()
		s.mustSend(http.MethodPost, "/v2.0/subnets",
			`{"subnet": {"network_id": "`+network.ID+`", "cidr": "192.168.1.0/16", "ip_version": 4}}`, http.StatusCreated, nil)
		if got := s.subnets(network.ID)[0]; got.CIDR != netip.MustParsePrefix("192.168.0.0/16") ||
			got.Gateway != netip.MustParseAddr("192.168.0.1") {
			s.Errorf("192.168.1.0/16 became %v with gateway %v", got.CIDR, got.Gateway)
		}
	}},
	{"the identity of a subnet is read-only", func(s *suite) {
		network := s.createNetwork()
		subnet := s.createSubnet(network, "10.0.0.0/24")
		for _, change := range []string{`"cidr": "10.0.0.0/24"`, `"ip_version": 4`, `"network_id": "` + network.ID + `"`,
			`"id": "` + missing + `"`} {
			s.mustFail(http.MethodPut, "/v2.0/subnets/"+subnet.ID, `{"subnet": {`+change+`}}`, http.StatusBadRequest,
				"HTTPBadRequest")
		}
	}},
	{"a create accepts neither an ID nor tags", func(s *suite) {
		for _, attribute := range []string{`"id": "` + missing + `"`, `"tags": ["x"]`, `"revision_number": 1`,
			`"nosuch": 1`} {
			s.mustFail(http.MethodPost, "/v2.0/networks", `{"network": {`+attribute+`}}`, http.StatusBadRequest,
				"HTTPBadRequest")
		}
	}},
	{"an unknown filter is rejected, not ignored", func(s *suite) {
		s.mustFail(http.MethodGet, "/v2.0/networks?nosuch=1", "", http.StatusBadRequest, "HTTPBadRequest")
		s.mustFail(http.MethodGet, "/v2.0/subnets?nosuch=1", "", http.StatusBadRequest, "HTTPBadRequest")
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
		s.mustFail(http.MethodGet, "/v2.0/networks?limit=2&marker="+missing, "", http.StatusNotFound, "NetworkNotFound")
		s.createSubnet(s.createNetwork(), "10.0.0.0/24")
		var page struct{ Subnets []struct{ ID string } }
		query := "?limit=2&description=" + strings.ReplaceAll(s.marker, " ", "+") + "&marker=" + missing
		s.mustSend(http.MethodGet, "/v2.0/subnets"+query, "", http.StatusOK, &page)
		if len(page.Subnets) != 1 {
			s.Errorf("the page has %d subnets, want the first page", len(page.Subnets))
		}
	}},
}

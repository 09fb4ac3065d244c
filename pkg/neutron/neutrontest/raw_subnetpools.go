package neutrontest

import (
	"net/http"
	"slices"
)

// withPools makes a test of one for a Neutron with subnet pools. Where there are
// none, others test that.
func withPools(run func(*suite)) func(*suite) {
	return func(s *suite) {
		if s.has("subnet_allocation") {
			run(s)
		}
	}
}

// subnetPool makes a subnet pool that is gone after the test.
func (s *suite) subnetPool(body string) (id string) {
	s.Helper()
	return s.post("subnetpool", `"name": "neutrontest"`, exchange{body: body})
}

var subnetPoolTests = []test{
	{"a subnet pool is created, with all that is left out", withPools(func(s *suite) {
		s.post("subnetpool", `"name": "neutrontest"`,
			exchange{`"prefixes": ["10.0.0.0/16"]`, `"name": "neutrontest", "description": "", "prefixes": ["10.0.0.0/16"], "ip_version": 4, "revision_number": 0,
				"min_prefixlen": "8", "default_prefixlen": "8", "max_prefixlen": "32", "default_quota": null, "address_scope_id": null, "shared": false, "is_default": false`},
			exchange{`"prefixes": ["FD00::1/48"]`, `"prefixes": ["fd00::/48"], "ip_version": 6, "min_prefixlen": "64", "default_prefixlen": "64", "max_prefixlen": "128"`},
			exchange{`"prefixes": ["10.0.0.0/16"], "min_prefixlen": "20"`, `"min_prefixlen": "20", "default_prefixlen": "20"`},
		)
	})},
	{"prefixes are sorted, and joined where that can be", withPools(func(s *suite) {
		s.post("subnetpool", `"name": "neutrontest"`,
			exchange{`"prefixes": ["10.9.0.0/24", "10.0.1.0/24", "10.0.0.0/24", "10.0.2.0/23"]`, `"prefixes": ["10.0.0.0/22", "10.9.0.0/24"]`},
			exchange{`"prefixes": ["10.0.0.0/24", "10.0.0.0/25"]`, `"prefixes": ["10.0.0.0/24"]`},
			exchange{`"prefixes": ["10.0.1.0/24", "10.0.2.0/24"]`, `"prefixes": ["10.0.1.0/24", "10.0.2.0/24"]`},
			exchange{`"prefixes": ["10.0.0.1/24"]`, `"prefixes": ["10.0.0.0/24"]`},
		)
	})},
	{"these subnet pools cannot be had", withPools(func(s *suite) {
		s.post("subnetpool", "", exchange{`"prefixes": ["10.0.0.0/24"]`, "400 HTTPBadRequest"})
		s.post("subnetpool", `"prefixes": ["10.0.0.0/24"]`,
			exchange{`"name": " "`, "400 HTTPBadRequest"},
			exchange{`"name": null`, "400 HTTPBadRequest"},
			exchange{`"name": "x", "ip_version": 4`, "400 HTTPBadRequest"},
			exchange{`"name": "x", "tags": []`, "400 HTTPBadRequest"},
			exchange{`"name": "x", "min_prefixlen": 30, "max_prefixlen": 8`, "400 IllegalSubnetPoolPrefixBounds"},
			exchange{`"name": "x", "min_prefixlen": 26, "default_prefixlen": 25`, "400 IllegalSubnetPoolPrefixBounds"},
			exchange{`"name": "x", "max_prefixlen": 28, "default_prefixlen": 29`, "400 IllegalSubnetPoolPrefixBounds"},
			exchange{`"name": "x", "max_prefixlen": 33`, "400 IllegalSubnetPoolPrefixBounds"},
			exchange{`"name": "x", "min_prefixlen": -1`, "400 HTTPBadRequest"},
			exchange{`"name": "x", "min_prefixlen": null`, "400 InvalidInput"},
			exchange{`"name": "x", "min_prefixlen": 0`, "500 HTTPInternalServerError"},
			exchange{`"name": "x", "default_quota": -1`, "400 HTTPBadRequest"},
			exchange{`"name": "x", "address_scope_id": "` + missing + `"`, "404 AddressScopeNotFound"},
		)
		s.post("subnetpool", `"name": "neutrontest"`,
			exchange{``, "400 HTTPBadRequest"},
			exchange{`"prefixes": []`, "400 EmptySubnetPoolPrefixList"},
			exchange{`"prefixes": "10.0.0.0/24"`, "400 HTTPBadRequest"},
			exchange{`"prefixes": ["x"]`, "400 HTTPBadRequest"},
			exchange{`"prefixes": ["10.0.0.0"]`, "400 HTTPBadRequest"},
			exchange{`"prefixes": ["10.0.0.0/24", "10.0.0.0/24"]`, "400 HTTPBadRequest"},
			exchange{`"prefixes": ["10.0.0.0/24", "fd00::/64"]`, "400 PrefixVersionMismatch"},
		)
		s.wantRefused(http.MethodPost, "/v2.0/subnetpools", `{"subnetpools": [{"name": "x", "prefixes": ["10.0.0.0/24"]}]}`, http.StatusBadRequest, "HTTPBadRequest")
	})},
	{"a subnet pool is changed, and only grows", withPools(func(s *suite) {
		id := s.subnetPool(`"prefixes": ["10.0.0.0/24", "10.2.0.0/24"]`)
		s.put("subnetpool", id,
			exchange{`"name": "new", "description": "d"`, `"name": "new", "description": "d", "revision_number": 1, "min_prefixlen": 8`}, // a number here
			exchange{`"prefixes": ["10.0.0.0/24"]`, "400 IllegalSubnetPoolPrefixUpdate"},
			exchange{`"prefixes": []`, "400 IllegalSubnetPoolPrefixUpdate"},
			exchange{`"prefixes": ["10.0.0.0/14", "fd00::/64"]`, "400 PrefixVersionMismatch"},
			exchange{`"prefixes": ["10.2.0.0/16", "10.0.0.0/23"]`, `"prefixes": ["10.0.0.0/23", "10.2.0.0/16"]`},
			exchange{`"min_prefixlen": 10`, "400 IllegalSubnetPoolPrefixBounds"}, // the default is shorter
			exchange{`"min_prefixlen": 16, "default_prefixlen": 24, "max_prefixlen": "28"`, `"min_prefixlen": 16, "default_prefixlen": 24, "max_prefixlen": 28`},
			exchange{`"default_prefixlen": null`, "400 InvalidInput"},
			exchange{`"shared": true`, "400 HTTPBadRequest"},
			exchange{`"ip_version": 4`, "400 HTTPBadRequest"},
			exchange{``, `"revision_number": 4`},
		)
		s.get("subnetpool", id, `"min_prefixlen": "16", "default_prefixlen": "24", "max_prefixlen": "28", "default_quota": null`)
		if status, typ := s.atRevision("1", http.MethodDelete, "/v2.0/subnetpools/"+id, ""); typ != "RevisionNumberConstraintFailed" {
			s.Errorf("deleting at another revision: %d %s", status, typ)
		}
	})},
	{"subnet pools are found", withPools(func(s *suite) {
		id := s.subnetPool(`"prefixes": ["10.0.0.0/24"], "default_prefixlen": 27, "description": "neutrontest"`)
		for _, query := range []string{"name=neutrontest", "ip_version=4", "description=neutrontest", "default_prefixlen=27", "min_prefixlen=8", "is_default=false", "shared=false"} {
			if got := s.list("subnetpool", query+"&id="+id, "id"); !slices.Equal(got, []string{id}) {
				s.Errorf("subnet pools with %s: %v, want %s", query, got, id)
			}
		}
		for _, query := range []string{"name=neutrontes", "ip_version=6", "ip_version=x", "default_prefixlen=26", "is_default=true"} {
			if got := s.list("subnetpool", query+"&id="+id, "id"); len(got) != 0 {
				s.Errorf("subnet pools with %s: %v, want none", query, got)
			}
		}
		s.wantRefused(http.MethodGet, "/v2.0/subnetpools?prefixes=10.0.0.0/24", "", http.StatusBadRequest, "HTTPBadRequest")
		s.wantRefused(http.MethodGet, "/v2.0/subnetpools?min_prefixlen=x", "", http.StatusBadRequest, "InvalidInput")
		s.wantRefused(http.MethodGet, "/v2.0/subnetpools?nosuch=1", "", http.StatusBadRequest, "HTTPBadRequest")
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			s.wantRefused(method, "/v2.0/subnetpools/"+missing, "", http.StatusNotFound, "SubnetPoolNotFound")
		}
	})},
	{"a subnet pool has tags", withPools(func(s *suite) {
		id := s.subnetPool(`"prefixes": ["10.0.0.0/24"]`)
		if !s.has("standard-attr-tag") {
			return // another test looks at that
		}
		s.mustSend(http.MethodPut, "/v2.0/subnetpools/"+id+"/tags", `{"tags": ["a", "b"]}`, http.StatusOK, nil)
		s.get("subnetpool", id, `"tags": ["a", "b"], "revision_number": 1`)
		if got := s.list("subnetpool", "tags=a,b&id="+id, "id"); !slices.Equal(got, []string{id}) {
			s.Errorf("subnet pools with the tags: %v, want %s", got, id)
		}
		s.wantRefused(http.MethodGet, "/v2.0/subnetpools/"+missing+"/tags", "", http.StatusNotFound, "TagResourceNotFound")
	})},
	{"a subnet pool is not deleted while a subnet is from it", withPools(func(s *suite) {
		id := s.subnetPool(`"prefixes": ["10.0.0.0/24"], "default_prefixlen": 26`)
		network := s.rawNetwork()
		s.post("subnet", `"network_id": "`+network+`"`, exchange{body: `"ip_version": 4, "subnetpool_id": "` + id + `"`})
		s.get("subnetpool", id, `"revision_number": 0`) // it takes no notice
		s.wantRefused(http.MethodDelete, "/v2.0/subnetpools/"+id, "", http.StatusBadRequest, "SubnetPoolDeleteError")
		s.remove("networks", network)
		s.remove("subnetpools", id)
	})},
	{"there is one default for each IP version", withPools(func(s *suite) {
		if !s.SetQuotas || !s.has("default-subnetpools") {
			return // somebody else may be using it, and only an administrator can do this
		}
		common := func() string { return `"network_id": "` + s.rawNetwork() + `", "ip_version": 4` }
		s.post("subnet", common(), exchange{`"use_default_subnetpool": true`, "400 BadRequest"}) // there is none yet
		id := s.post("subnetpool", `"name": "neutrontest", "prefixes": ["10.0.0.0/24"], "default_prefixlen": 26`, exchange{`"is_default": true`, `"is_default": true`})
		s.post("subnetpool", `"name": "neutrontest", "prefixes": ["10.0.0.0/24"]`, exchange{`"is_default": true`, "400 InvalidInput"})
		s.post("subnetpool", `"name": "neutrontest", "prefixes": ["fd00::/48"]`, exchange{`"is_default": true`, `"is_default": true`})
		s.post("subnet", common(),
			exchange{`"use_default_subnetpool": true`, `"cidr": "10.0.0.0/26", "subnetpool_id": "` + id + `"`},
			exchange{`"use_default_subnetpool": true, "cidr": "10.0.0.192/26"`, `"subnetpool_id": "` + id + `"`},
			exchange{`"use_default_subnetpool": true, "subnetpool_id": "` + id + `"`, "400 BadRequest"},
			exchange{`"use_default_subnetpool": false`, "400 BadRequest"},
		)
		s.put("subnetpool", s.subnetPool(`"prefixes": ["10.0.0.0/24"]`), exchange{`"is_default": true`, "400 InvalidInput"})
		s.put("subnetpool", id, exchange{`"is_default": false`, `"is_default": false`})
	})},
}

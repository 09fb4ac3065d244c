package neutrontest

import (
	"net/http"
	"reflect"
	"slices"
)

// has reports whether the Neutron has an extension.
func (s *suite) has(alias string) bool {
	s.Helper()
	return slices.ContainsFunc(s.extensions(), func(e object) bool { return e["alias"] == alias })
}

func (s *suite) extensions() []object {
	s.Helper()
	var body struct{ Extensions []object }
	s.mustSend(http.MethodGet, "/v2.0/extensions", "", http.StatusOK, &body)
	return body.Extensions
}

var extensionTests = []test{
	{"the extensions are listed, and each can be read", func(s *suite) {
		all := s.extensions()
		if len(all) == 0 {
			s.Fatal("there are none")
		}
		for _, e := range all {
			for _, name := range []string{"alias", "name", "description", "updated", "links"} {
				if e[name] == nil || name == "alias" && e[name] == "" {
					s.Errorf("an extension has no %s: %v", name, e)
				}
			}
		}
		var one struct{ Extension object }
		s.mustSend(http.MethodGet, "/v2.0/extensions/"+all[0]["alias"].(string), "", http.StatusOK, &one)
		if !reflect.DeepEqual(one.Extension, all[0]) {
			s.Errorf("an extension as it is read: %v, as it is listed: %v", one.Extension, all[0])
		}
		s.mustSend(http.MethodGet, "/v2.0/extensions/nosuch", "", http.StatusNotFound, nil)
	}},
	{"an attribute is there with its extension, and refused without it", func(s *suite) {
		for alias, attribute := range map[string]exchange{
			"net-mtu-writable": {body: `"mtu": 1400`},
			"port-security":    {body: `"port_security_enabled": false`},
			"dns-integration":  {body: `"dns_domain": "example.org."`},
		} {
			attribute.want = attribute.body
			if !s.has(alias) {
				attribute.want = "400 HTTPBadRequest"
			}
			s.post("network", "", attribute)
			s.put("network", s.rawNetwork(), attribute)
		}
	}},
	{"the attributes of missing extensions are in no answer", func(s *suite) {
		network := s.get("network", s.rawNetwork(), "")
		for alias, name := range map[string]string{
			"net-mtu": "mtu", "port-security": "port_security_enabled", "dns-integration": "dns_domain", "standard-attr-tag": "tags",
		} {
			if _, shown := network[name]; shown != s.has(alias) {
				s.Errorf("the network is %v; is there %s? %v", network, alias, s.has(alias))
			}
		}
	}},
	{"the paths of missing extensions are not there", func(s *suite) {
		if !s.has("standard-attr-tag") {
			tags := "/v2.0/networks/" + s.rawNetwork() + "/tags"
			s.wantRefused(http.MethodPut, tags, `{"tags": []}`, http.StatusNotFound, "HTTPNotFound")
			s.wantRefused(http.MethodPut, tags+"/a", "", http.StatusNotFound, "HTTPNotFound")
			s.wantRefused(http.MethodGet, "/v2.0/networks?tags=a", "", http.StatusBadRequest, "HTTPBadRequest")
		}
		if !s.has("subnet_allocation") {
			s.wantRefused(http.MethodGet, "/v2.0/subnetpools", "", http.StatusNotFound, "HTTPNotFound")
			s.wantRefused(http.MethodPost, "/v2.0/subnetpools", "{}", http.StatusNotFound, "HTTPNotFound")
		}
		if !s.has("default-subnetpools") {
			s.post("subnet", `"network_id": "`+s.rawNetwork()+`"`, exchange{`"ip_version": 4, "use_default_subnetpool": true`, "400 HTTPBadRequest"})
		}
	}},
	{"a domain ends with a point, and has small letters", func(s *suite) {
		network := s.rawNetwork()
		if !s.has("dns-integration") {
			s.put("network", network, exchange{`"dns_domain": ""`, "400 HTTPBadRequest"})
			return
		}
		s.get("network", network, `"dns_domain": ""`)
		s.put("network", network,
			exchange{`"dns_domain": "EXAMPLE.org."`, `"dns_domain": "example.org."`},
			exchange{`"dns_domain": "org."`, `"dns_domain": "org."`},
			exchange{`"dns_domain": "123."`, `"dns_domain": "123."`},
			exchange{`"dns_domain": "<project_id>.example.org."`, `"dns_domain": "<project_id>.example.org."`},
			exchange{`"dns_domain": "example.org"`, "400 HTTPBadRequest"},
			exchange{`"dns_domain": "."`, "400 HTTPBadRequest"},
			exchange{`"dns_domain": "a..b."`, "400 HTTPBadRequest"},
			exchange{`"dns_domain": "-a.org."`, "400 HTTPBadRequest"},
			exchange{`"dns_domain": "a_b.org."`, "400 HTTPBadRequest"},
			exchange{`"dns_domain": "1.2.3.4."`, "400 HTTPBadRequest"},
			exchange{`"dns_domain": "ä.org."`, "400 HTTPBadRequest"},
			exchange{`"dns_domain": null`, "400 InvalidInput"},
			exchange{`"dns_domain": ""`, `"dns_domain": ""`},
		)
		s.wantRefused(http.MethodGet, "/v2.0/networks?dns_domain=", "", http.StatusBadRequest, "HTTPBadRequest")
	}},
}

package neutrontest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

var networkChangeTests = []test{
	{"an MTU can be as small as one likes, and 0 is the largest", func(s *suite) {
		network := s.rawNetwork()
		if !s.has("net-mtu-writable") {
			return // another test looks at that
		}
		largest := s.get("network", network, "")["mtu"].(float64)
		s.put("network", network,
			exchange{`"mtu": 68`, `"mtu": 68`},
			exchange{`"mtu": 1`, `"mtu": 1`},
			exchange{`"mtu": "1300"`, `"mtu": 1300`},
			exchange{`"mtu": 1300.5`, `"mtu": 1300`},
			exchange{`"mtu": 0`, fmt.Sprintf(`"mtu": %v`, largest)},
			exchange{fmt.Sprintf(`"mtu": %v`, largest+1), "400 InvalidInput"},
			exchange{`"mtu": -1`, "400 HTTPBadRequest"},
			exchange{`"mtu": null`, "400 InvalidInput"},
			exchange{`"mtu": "x"`, "400 InvalidInput"},
		)
		s.post("subnet", `"network_id": "`+network+`"`, exchange{body: `"ip_version": 6, "cidr": "fd00::/64"`})
		s.put("network", network, exchange{`"mtu": 1279`, `"mtu": 1279`}) // too small for IPv6
	}},
	{"a network is switched off and on", func(s *suite) {
		s.put("network", s.rawNetwork(),
			exchange{`"admin_state_up": false`, `"admin_state_up": false, "status": "ACTIVE"`},
			exchange{`"admin_state_up": "true"`, `"admin_state_up": true`},
			exchange{`"admin_state_up": null`, "400 InvalidInput"},
		)
	}},
	{"a port is as secure as its network was when it was made", func(s *suite) {
		network := s.rawNetwork()
		if !s.has("port-security") {
			return // another test looks at that
		}
		s.put("network", network, exchange{`"port_security_enabled": false`, `"port_security_enabled": false`})
		port := s.post("port", "", exchange{`"network_id": "` + network + `"`, `"port_security_enabled": false`})
		s.put("network", network,
			exchange{`"port_security_enabled": "yes"`, `"port_security_enabled": true`},
			exchange{`"port_security_enabled": 2`, "400 InvalidInput"},
		)
		s.get("port", port, `"port_security_enabled": false`)
	}},
}

// pool is an allocation pool in a body.
func pool(start, end string) string {
	return `"allocation_pools": [{"start": "` + start + `", "end": "` + end + `"}]`
}

var subnetChangeTests = []test{
	{"DHCP is switched off and on, whatever is on the subnet", func(s *suite) {
		network := s.rawNetwork()
		subnet := s.post("subnet", `"network_id": "`+network+`"`, exchange{body: `"ip_version": 4, "cidr": "10.0.0.0/24"`})
		s.post("port", "", exchange{body: `"network_id": "` + network + `"`})
		s.put("subnet", subnet,
			exchange{`"enable_dhcp": false`, `"enable_dhcp": false`},
			exchange{`"enable_dhcp": true`, `"enable_dhcp": true`},
			exchange{`"enable_dhcp": null`, "400 InvalidInput"},
		)
	}},
	{"the modes of IPv6 fit together, need DHCP, and stay", func(s *suite) {
		s.post("subnet", `"network_id": "`+s.rawNetwork()+`", "ip_version": 6, "cidr": "fd00::/80"`,
			exchange{`"ipv6_ra_mode": "slaac", "ipv6_address_mode": "dhcpv6-stateful"`, "400 InvalidInput"},
			exchange{`"ipv6_ra_mode": "slaac"`, "400 InvalidInput"}, // it is no /64
			exchange{`"ipv6_ra_mode": "dhcpv6-stateful", "enable_dhcp": false`, "400 InvalidInput"},
			exchange{`"ipv6_ra_mode": null`, "400 HTTPBadRequest"},
			exchange{`"ipv6_ra_mode": "dhcpv6-stateful", "ipv6_address_mode": "dhcpv6-stateful"`, `"ipv6_ra_mode": "dhcpv6-stateful"`},
		)
		s.post("subnet", `"network_id": "`+s.rawNetwork()+`", "ip_version": 4, "cidr": "10.0.0.0/24"`, exchange{`"ipv6_address_mode": "slaac"`, "400 InvalidInput"})
		subnet := s.rawSubnet(`"ip_version": 6, "cidr": "fd00::/64", "ipv6_ra_mode": "slaac", "ipv6_address_mode": "slaac"`)
		s.put("subnet", subnet,
			exchange{`"enable_dhcp": false`, "400 InvalidInput"},
			exchange{`"ipv6_ra_mode": "slaac"`, "400 HTTPBadRequest"},
			exchange{`"ipv6_address_mode": null`, "400 HTTPBadRequest"},
		)
	}},
	{"the smallest ranges can be had without DHCP", func(s *suite) {
		for cidr, c := range map[string]struct{ first, gateway, pools string }{
			"10.0.0.0/31": {"400 InvalidInput", "409 IpamValueInvalid", pool("10.0.0.0", "10.0.0.1")},
			"10.0.0.0/32": {"400 InvalidInput", `"gateway_ip": "10.0.0.1"`, pool("10.0.0.0", "10.0.0.0")}, // outside
			"fd00::/127":  {`"gateway_ip": "fd00::"`, `"gateway_ip": "fd00::"`, pool("fd00::1", "fd00::1")},
			"fd00::/128":  {"409 GatewayConflictWithAllocationPools", `"gateway_ip": "fd00::"`, pool("fd00::", "fd00::")},
		} {
			version := map[bool]string{true: "4", false: "6"}[netip.MustParsePrefix(cidr).Addr().Is4()]
			common := func() string {
				return `"enable_dhcp": false, "ip_version": ` + version + `, "cidr": "` + cidr + `", "network_id": "` + s.rawNetwork() + `"`
			}
			s.post("subnet", common(), exchange{"", c.gateway})
			subnet := s.post("subnet", common(), exchange{`"gateway_ip": null`, `"gateway_ip": null, ` + c.pools})
			s.put("subnet", subnet,
				exchange{`"enable_dhcp": true`, "400 InvalidInput"},
				exchange{`"gateway_ip": "` + netip.MustParsePrefix(cidr).Addr().String() + `"`, c.first},
			)
		}
	}},
	{"name servers keep their order", func(s *suite) {
		subnet := s.rawSubnet(`"ip_version": 4, "cidr": "10.0.0.0/24", "dns_nameservers": ["9.9.9.9", "1.1.1.1"]`)
		s.put("subnet", subnet,
			exchange{`"name": "x"`, `"dns_nameservers": ["9.9.9.9", "1.1.1.1"]`},
			exchange{`"dns_nameservers": ["8.8.8.8", "1.1.1.1", "9.9.9.9"]`, `"dns_nameservers": ["8.8.8.8", "1.1.1.1", "9.9.9.9"]`},
			exchange{`"dns_nameservers": ["1.1.1.1", "9.9.9.9", "8.8.8.8", "7.7.7.7", "0.0.0.0"]`, `"dns_nameservers": ["1.1.1.1", "9.9.9.9", "8.8.8.8", "7.7.7.7", "0.0.0.0"]`},
			exchange{`"dns_nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4", "1.1.1.5", "1.1.1.6"]`, "400 DNSNameServersExhausted"},
			exchange{`"dns_nameservers": ["1.1.1.1", "1.1.1.1"]`, "400 HTTPBadRequest"},
			exchange{`"dns_nameservers": "1.1.1.1"`, "400 HTTPBadRequest"},
			exchange{`"dns_nameservers": ["fd00::1"]`, "400 InvalidInput"},
		)
		s.get("subnet", subnet, `"dns_nameservers": ["1.1.1.1", "9.9.9.9", "8.8.8.8", "7.7.7.7", "0.0.0.0"]`)
		s.put("subnet", subnet, exchange{`"dns_nameservers": null`, `"dns_nameservers": []`})
	}},
	{"name servers of IPv6 are the same only if they are written so", func(s *suite) {
		subnet := s.rawSubnet(`"ip_version": 6, "cidr": "fd00::/64"`)
		s.put("subnet", subnet, exchange{`"dns_nameservers": ["FD00:0::1", "fd00::1"]`, `"dns_nameservers": ["FD00:0::1", "fd00::1"]`})
	}},
	{"host routes are a set", func(s *suite) {
		subnet := s.rawSubnet(`"ip_version": 4, "cidr": "10.0.0.0/24"`)
		for _, destinations := range [][]string{
			{"10.3.0.0/16", "10.1.0.0/16", "10.2.0.0/16"}, {"10.4.0.0/16", "10.1.0.0/16"}, {"0.0.0.0/0", "10.0.0.0/24", "10.0.0.7/32"}, {},
		} {
			s.put("subnet", subnet, exchange{body: `"host_routes": ` + routes("10.0.0.9", destinations...)})
			var got []string
			for _, route := range s.get("subnet", subnet, "")["host_routes"].([]any) {
				got = append(got, route.(object)["destination"].(string))
			}
			slices.Sort(got)
			slices.Sort(destinations)
			if !slices.Equal(got, destinations) {
				s.Errorf("the routes go to %v, want %v", got, destinations)
			}
		}
	}},
	{"a next hop can be anywhere, a destination has no host bits", func(s *suite) {
		s.put("subnet", s.rawSubnet(`"ip_version": 4, "cidr": "10.0.0.0/24"`),
			exchange{`"host_routes": ` + routes("172.16.0.1", "10.1.0.0/16"), `"host_routes": ` + routes("172.16.0.1", "10.1.0.0/16")},
			exchange{`"host_routes": ` + routes("10.0.0.255", "10.1.0.0/16"), `"host_routes": ` + routes("10.0.0.255", "10.1.0.0/16")},
			exchange{`"host_routes": ` + routes("10.0.0.9", "10.1.0.1/16"), "400 HTTPBadRequest"},
			exchange{`"host_routes": ` + routes("10.0.0.9", "10.1.0.0"), "400 HTTPBadRequest"},
			exchange{`"host_routes": ` + routes("10.0.0.9", "127.0.0.0/8"), "400 HTTPBadRequest"},
			exchange{`"host_routes": ` + routes("10.0.0.9", "10.1.0.0/16", "10.1.0.0/16"), "400 HTTPBadRequest"},
			exchange{`"host_routes": ` + routes("fd00::1", "10.1.0.0/16"), "400 InvalidInput"},
			exchange{`"host_routes": ` + routes("10.0.0.9", "fd00::/64"), "400 InvalidInput"},
			exchange{`"host_routes": ` + routes("10.0.0.9", manyRanges(21)...), "400 HostRoutesExhausted"},
			exchange{`"host_routes": null`, `"host_routes": []`},
		)
		s.put("subnet", s.rawSubnet(`"ip_version": 6, "cidr": "fd00::/64"`),
			exchange{`"host_routes": ` + routes("FD00::9", "FD01:0::/64"), `"host_routes": ` + routes("fd00::9", "FD01:0::/64")})
	}},
	{"pools are neither merged nor moved, and may leave a port outside", func(s *suite) {
		network := s.rawNetwork()
		subnet := s.post("subnet", `"network_id": "`+network+`"`, exchange{body: `"ip_version": 4, "cidr": "10.0.0.0/24"`})
		port := s.post("port", `"network_id": "`+network+`"`, exchange{body: `"fixed_ips": [{"ip_address": "10.0.0.77"}]`})
		adjacent := `"allocation_pools": [{"start": "10.0.0.10", "end": "10.0.0.20"}, {"start": "10.0.0.21", "end": "10.0.0.30"}]`
		s.put("subnet", subnet,
			exchange{adjacent, adjacent},
			exchange{`"allocation_pools": [{"start": "10.0.0.10", "end": "10.0.0.20"}, {"start": "10.0.0.20", "end": "10.0.0.30"}]`, "409 OverlappingAllocationPools"},
			exchange{pool("10.0.1.10", "10.0.1.20"), "400 OutOfBoundsAllocationPool"},
			exchange{pool("10.0.0.20", "10.0.0.10"), "400 InvalidAllocationPool"},
			exchange{pool("10.0.0.1", "10.0.0.10"), "409 GatewayConflictWithAllocationPools"},
			exchange{`"allocation_pools": null`, "400 HTTPBadRequest"},
			exchange{`"gateway_ip": "10.0.0.77"`, `"gateway_ip": "10.0.0.77"`}, // the address of a port
			exchange{`"allocation_pools": []`, `"allocation_pools": []`},
		)
		if fixed := s.get("port", port, "")["fixed_ips"].([]any); len(fixed) != 1 || fixed[0].(object)["ip_address"] != "10.0.0.77" {
			s.Errorf("the port has %v", fixed)
		}
		s.post("subnet", `"network_id": "`+network+`"`, exchange{
			`"ip_version": 4, "cidr": "10.1.0.0/24", "allocation_pools": [{"start": "10.1.0.30", "end": "10.1.0.40"}, {"start": "10.1.0.10", "end": "10.1.0.20"}]`,
			`"allocation_pools": [{"start": "10.1.0.10", "end": "10.1.0.20"}, {"start": "10.1.0.30", "end": "10.1.0.40"}]`,
		})
	}},
	{"a gateway goes and comes back", func(s *suite) {
		ours, all := pool("10.0.0.2", "10.0.0.254"), pool("10.0.0.1", "10.0.0.254")
		s.put("subnet", s.rawSubnet(`"ip_version": 4, "cidr": "10.0.0.0/24"`),
			exchange{`"gateway_ip": null`, `"gateway_ip": null, ` + ours}, // the pool does not grow
			exchange{`"gateway_ip": "10.0.0.1"`, `"gateway_ip": "10.0.0.1", ` + ours},
			exchange{`"gateway_ip": "10.0.0.9"`, "409 GatewayConflictWithAllocationPools"},
			exchange{`"gateway_ip": "10.0.0.0"`, "400 InvalidInput"},
			exchange{`"gateway_ip": "10.0.0.255"`, "400 InvalidInput"},
			exchange{`"gateway_ip": "fd00::1"`, "400 InvalidInput"},
			exchange{`"gateway_ip": ""`, "400 HTTPBadRequest"},
			exchange{`"gateway_ip": "10.9.9.9", ` + all, `"gateway_ip": "10.9.9.9", ` + all},
		)
		s.put("subnet", s.rawSubnet(`"ip_version": 4, "cidr": "10.0.0.0/24", "gateway_ip": null`),
			exchange{`"gateway_ip": "10.0.0.1"`, "409 GatewayConflictWithAllocationPools"}, // it never had one
			exchange{`"gateway_ip": "10.0.0.1", ` + ours, `"gateway_ip": "10.0.0.1"`},
		)
		s.put("subnet", s.rawSubnet(`"ip_version": 6, "cidr": "fd00::/64"`),
			exchange{`"gateway_ip": null`, `"gateway_ip": null`},
			exchange{`"gateway_ip": "fd00::"`, `"gateway_ip": "fd00::"`},
			exchange{`"gateway_ip": "fd00::1"`, "409 GatewayConflictWithAllocationPools"},
			exchange{`"gateway_ip": "fe80::1"`, `"gateway_ip": "fe80::1"`},
		)
	}},
}

// routes are host routes in a body, with one next hop.
func routes(nexthop string, destinations ...string) string {
	var all []string
	for _, destination := range destinations {
		all = append(all, `{"destination": "`+destination+`", "nexthop": "`+nexthop+`"}`)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// manyRanges returns ranges that are all different.
func manyRanges(count int) []string {
	var ranges []string
	for i := range count {
		ranges = append(ranges, fmt.Sprintf("10.%d.0.0/16", i))
	}
	return ranges
}

package neutrontest

import (
	"net/http"
	"strconv"
)

// allocate asks for subnets from a subnet pool, on a new network. It returns
// that, and the last subnet.
func (s *suite) allocate(subnetPool, version string, exchanges ...exchange) (network, subnet string) {
	s.Helper()
	network = s.rawNetwork()
	return network, s.post("subnet", `"network_id": "`+network+`", "subnetpool_id": "`+subnetPool+`", "ip_version": `+version, exchanges...)
}

// ofLength asks for a range of a length.
func ofLength(bits int, want string) exchange {
	return exchange{`"prefixlen": ` + strconv.Itoa(bits), want}
}

// gets is the range in an answer.
func gets(cidr string) string { return `"cidr": "` + cidr + `"` }

var allocationTests = []test{
	{"a range is taken from the smallest hole that has room, at its start", withPools(func(s *suite) {
		id := s.subnetPool(`"prefixes": ["10.21.0.0/24", "10.20.0.0/23"], "default_prefixlen": 26`)
		network, _ := s.allocate(id, "4", ofLength(25, gets("10.21.0.0/25")))
		_, subnet := s.allocate(id, "4", ofLength(25, gets("10.21.0.128/25")))
		s.allocate(id, "4",
			exchange{"", gets("10.20.0.0/26")}, ofLength(24, gets("10.20.1.0/24")), ofLength(27, gets("10.20.0.64/27")), ofLength(25, gets("10.20.0.128/25")),
			ofLength(24, "500 SubnetAllocationError"),
		)
		// What goes can be had again.
		s.remove("networks", network)
		s.remove("subnets", subnet)
		s.allocate(id, "4", ofLength(27, gets("10.20.0.96/27")), ofLength(25, gets("10.21.0.0/25")), ofLength(25, gets("10.21.0.128/25")))
	})},
	{"holes of one size are taken in order", withPools(func(s *suite) {
		id := s.subnetPool(`"prefixes": ["10.3.0.0/26", "10.1.0.0/26", "10.2.0.0/25"], "default_prefixlen": 26`)
		s.allocate(id, "4", exchange{"", gets("10.1.0.0/26")}, exchange{"", gets("10.3.0.0/26")}, exchange{"", gets("10.2.0.0/26")},
			exchange{"", gets("10.2.0.64/26")}, exchange{"", "500 SubnetAllocationError"})
		s.put("subnetpool", id, exchange{body: `"prefixes": ["10.1.0.0/24", "10.2.0.0/24", "10.3.0.0/24"]`})
		s.allocate(id, "4", exchange{"", gets("10.1.0.64/26")})
	})},
	{"one can ask for a range, or for its gateway", withPools(func(s *suite) {
		id := s.subnetPool(`"prefixes": ["10.0.0.0/16"], "default_prefixlen": 24`)
		s.allocate(id, "4",
			exchange{`"cidr": "10.0.3.7/24"`, gets("10.0.3.0/24") + `, "gateway_ip": "10.0.3.1", ` + pool("10.0.3.2", "10.0.3.254")},
			exchange{`"cidr": "10.0.3.0/26"`, "500 SubnetAllocationError"}, // it is taken
			exchange{`"cidr": "10.1.0.0/24"`, "500 SubnetAllocationError"},
			exchange{`"cidr": "10.0.4.0/24", "gateway_ip": null`, `"gateway_ip": null, ` + pool("10.0.4.1", "10.0.4.254")},
			exchange{`"cidr": "10.0.5.0/24", "gateway_ip": "10.9.9.9", ` + pool("10.0.5.7", "10.0.5.9"), `"gateway_ip": "10.9.9.9", ` + pool("10.0.5.7", "10.0.5.9")},
			exchange{`"cidr": "10.0.6.0/24", ` + pool("10.0.6.1", "10.0.6.9"), "409 GatewayConflictWithAllocationPools"},
			exchange{`"cidr": "10.0.6.0/24", "gateway_ip": "10.0.6.0"`, "409 IpamValueInvalid"},
			exchange{`"cidr": "10.0.6.0/24", "gateway_ip": "fd00::1"`, "400 AddrFormatError"},
			exchange{`"gateway_ip": "10.0.7.9"`, gets("10.0.7.0/24") + `, "gateway_ip": "10.0.7.9"`},
			exchange{`"gateway_ip": "10.0.8.200", "prefixlen": 26`, gets("10.0.8.192/26")},
			exchange{`"gateway_ip": "10.0.9.255"`, "409 IpamValueInvalid"},
			exchange{`"gateway_ip": "10.1.0.1"`, "500 SubnetAllocationError"},
			exchange{`"gateway_ip": null`, `"gateway_ip": "10.0.2.1"`}, // that is not heard
			exchange{pool("10.0.6.2", "10.0.6.9"), "400 BadRequest"},
		)
	})},
	{"prefix lengths have limits", withPools(func(s *suite) {
		id := s.subnetPool(`"prefixes": ["10.0.0.0/16"], "min_prefixlen": 24, "max_prefixlen": 28`)
		s.allocate(id, "4",
			ofLength(23, "400 MinPrefixSubnetAllocationError"),
			ofLength(29, "400 MaxPrefixSubnetAllocationError"),
			ofLength(33, "400 AddrFormatError"),
			ofLength(-1, "400 HTTPBadRequest"),
			exchange{`"prefixlen": null`, "400 InvalidInput"},
			exchange{`"prefixlen": 24, "cidr": "10.0.0.0/24"`, "400 BadRequest"},
			exchange{`"cidr": "10.0.0.0/23"`, "400 MinPrefixSubnetAllocationError"},
			exchange{`"cidr": "10.0.0.0/29"`, "400 MaxPrefixSubnetAllocationError"},
			exchange{`"prefixlen": "28"`, gets("10.0.0.0/28")},
		)
		s.allocate(id, "6", exchange{"", "400 BadRequest"})
		s.allocate(missing, "4", exchange{"", "404 SubnetPoolNotFound"})
		s.allocate("x", "4", exchange{"", "400 HTTPBadRequest"})
		s.post("subnet", `"network_id": "`+missing+`"`, exchange{`"ip_version": 4, "subnetpool_id": "` + id + `"`, "404 NetworkNotFound"})
		s.post("subnet", `"network_id": "`+s.rawNetwork()+`"`, exchange{`"ip_version": 4, "prefixlen": 24`, "400 BadRequest"})
	})},
	{"all subnets of an IP version on a network are from one place", withPools(func(s *suite) {
		one, another := s.subnetPool(`"prefixes": ["10.1.0.0/16"], "default_prefixlen": 24`), s.subnetPool(`"prefixes": ["10.2.0.0/16"], "default_prefixlen": 24`)
		common := `"network_id": "` + s.rawNetwork() + `"`
		s.post("subnet", common,
			exchange{`"ip_version": 4, "subnetpool_id": "` + one + `"`, gets("10.1.0.0/24")},
			exchange{`"ip_version": 4, "subnetpool_id": "` + one + `"`, gets("10.1.1.0/24")},
			exchange{`"ip_version": 4, "subnetpool_id": "` + another + `"`, "400 NetworkSubnetPoolAffinityError"},
			exchange{`"ip_version": 4, "cidr": "10.9.0.0/24"`, "400 NetworkSubnetPoolAffinityError"},
			exchange{`"ip_version": 4, "cidr": "10.1.0.0/25"`, "400 InvalidInput"}, // it overlaps as well
			exchange{`"ip_version": 6, "cidr": "fd00::/64"`, gets("fd00::/64")},
		)
		common = `"network_id": "` + s.rawNetwork() + `"`
		s.post("subnet", common,
			exchange{`"ip_version": 4, "cidr": "10.9.0.0/24"`, `"subnetpool_id": null`},
			exchange{`"ip_version": 4, "subnetpool_id": "` + one + `"`, "400 NetworkSubnetPoolAffinityError"},
		)
		s.allocate(one, "4", exchange{"", gets("10.1.2.0/24")}) // nothing was kept of what was refused
	})},
	{"the gateway of a subnet from a subnet pool is the first address also for IPv6", withPools(func(s *suite) {
		s.allocate(s.subnetPool(`"prefixes": ["fd00:1::/48"]`), "6",
			exchange{"", gets("fd00:1::/64") + `, "gateway_ip": "fd00:1::1", ` + pool("fd00:1::2", "fd00:1::ffff:ffff:ffff:ffff")},
			exchange{`"cidr": "fd00:1:0:9::/64"`, `"gateway_ip": "fd00:1:0:9::", ` + pool("fd00:1:0:9::1", "fd00:1:0:9:ffff:ffff:ffff:ffff")}, // but not here
			ofLength(128, gets("fd00:1:0:1::/128")+`, "gateway_ip": "fd00:1:0:1::1", `+pool("fd00:1:0:1::", "fd00:1:0:1::")),
			ofLength(127, gets("fd00:1:0:1::2/127")+`, "gateway_ip": "fd00:1:0:1::3", "allocation_pools": []`),
			ofLength(63, "400 MinPrefixSubnetAllocationError"),
		)
	})},
	{"hardly anything else of a subnet from a subnet pool is checked", withPools(func(s *suite) {
		id := s.subnetPool(`"prefixes": ["10.0.0.0/16"], "default_prefixlen": 24`)
		s.allocate(id, "4",
			ofLength(32, gets("10.0.0.0/32")+`, "gateway_ip": "10.0.0.1", "enable_dhcp": true`),
			ofLength(31, "409 IpamValueInvalid"), // its gateway would be the broadcast address
			exchange{`"dns_nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4", "1.1.1.5", "fd00::1"]`, gets("10.0.1.0/24")},
			exchange{`"ipv6_ra_mode": "slaac", "ipv6_address_mode": "dhcpv6-stateful", "enable_dhcp": false`, gets("10.0.2.0/24")},
		)
		network := s.rawNetwork()
		subnet := s.post("subnet", `"network_id": "`+network+`"`, exchange{body: `"ip_version": 4, "cidr": "10.0.9.8/32", "subnetpool_id": "` + id + `"`})
		s.put("subnet", subnet,
			exchange{`"name": "x", "enable_dhcp": true`, `"name": "x"`}, // it is no change
			exchange{`"enable_dhcp": false`, `"enable_dhcp": false`},
			exchange{`"enable_dhcp": true`, "400 InvalidInput"},
			exchange{`"subnetpool_id": "` + id + `"`, "400 HTTPBadRequest"},
			exchange{`"prefixlen": 24`, "400 HTTPBadRequest"},
		)
	})},
	{"a quota counts addresses for IPv4, and /64 for IPv6", withPools(func(s *suite) {
		id := s.subnetPool(`"prefixes": ["10.0.0.0/16"], "default_quota": 96`)
		s.allocate(id, "4", ofLength(26, gets("10.0.0.0/26")), ofLength(26, "409 SubnetPoolQuotaExceeded"), ofLength(27, gets("10.0.0.64/27")))
		s.put("subnetpool", id, exchange{`"default_quota": 0`, `"default_quota": 0`}) // which is none
		s.allocate(id, "4", ofLength(26, gets("10.0.0.128/26")))
		s.allocate(s.subnetPool(`"prefixes": ["fd00::/48"], "default_quota": 1`), "6", exchange{"", gets("fd00::/64")}, exchange{"", "409 SubnetPoolQuotaExceeded"})
	})},
	{"several are taken from a subnet pool at once or not at all", withPools(func(s *suite) {
		id := s.subnetPool(`"prefixes": ["10.0.0.0/25"], "default_prefixlen": 26`)
		one := `{"network_id": "` + s.rawNetwork() + `", "ip_version": 4, "subnetpool_id": "` + id + `"}`
		s.wantRefused(http.MethodPost, "/v2.0/subnets", `{"subnets": [`+one+`, `+one+`, `+one+`]}`, http.StatusInternalServerError, "SubnetAllocationError")
		s.mustSend(http.MethodPost, "/v2.0/subnets", `{"subnets": [`+one+`, `+one+`]}`, http.StatusCreated, nil)
	})},
}

package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

func TestWant(t *testing.T) {
	for name, test := range map[string]struct {
		cidr, gateway string
		wantCIDR      string
		wantGateway   string
		wantInvalid   string // a part of the sentence
	}{
		"the walkthrough":               {cidr: "192.168.0.0/16", gateway: "192.168.0.1", wantCIDR: "192.168.0.0/16", wantGateway: "192.168.0.1"},
		"the walkthrough, host bits":    {cidr: "192.168.1.0/16", gateway: "192.168.1.1", wantCIDR: "192.168.0.0/16", wantGateway: "192.168.1.1"},
		"no gateway":                    {cidr: "10.1.2.0/24", wantCIDR: "10.1.2.0/24"},
		"no gateway, host bits":         {cidr: "10.1.2.77/24", wantCIDR: "10.1.2.0/24"},
		"smallest":                      {cidr: "10.0.0.0/30", gateway: "10.0.0.2", wantCIDR: "10.0.0.0/30", wantGateway: "10.0.0.2"},
		"IPv6":                          {cidr: "fd00:1234::/64", gateway: "fd00:1234::5", wantCIDR: "fd00:1234::/64", wantGateway: "fd00:1234::5"},
		"IPv6, no gateway":              {cidr: "fd00:1234::/64", wantCIDR: "fd00:1234::/64"},
		"IPv6, written another way":     {cidr: "FD00:1234:0::/64", wantCIDR: "fd00:1234::/64"},
		"IPv6, last address is a host":  {cidr: "fd00::/126", gateway: "fd00::3", wantCIDR: "fd00::/126", wantGateway: "fd00::3"},
		"no CIDR":                       {cidr: "", wantInvalid: "either cidr, such as 192.168.0.0/16, or subnetPool"},
		"no prefix length":              {cidr: "192.168.0.0", wantInvalid: "not a range"},
		"prefix length too long":        {cidr: "192.168.0.0/33", wantInvalid: "not a range"},
		"leading zeros":                 {cidr: "192.168.000.0/16", wantInvalid: "not a range"},
		"IPv4 in IPv6":                  {cidr: "::ffff:192.168.0.0/112", wantInvalid: "not a range"},
		"zone in the CIDR":              {cidr: "fe80::%eth0/64", wantInvalid: "not a range"},
		"no room":                       {cidr: "10.0.0.0/31", wantInvalid: "from /1 to /30"},
		"no room in IPv6":               {cidr: "fd00::/127", wantInvalid: "from /1 to /126"},
		"everything":                    {cidr: "0.0.0.0/0", wantInvalid: "from /1 to /30"},
		"multicast":                     {cidr: "239.1.0.0/16", wantInvalid: "multicast or loopback range"},
		"multicast, IPv6":               {cidr: "ff05::/64", wantInvalid: "multicast or loopback range"},
		"loopback":                      {cidr: "127.0.0.0/24", wantInvalid: "multicast or loopback range"},
		"first of all":                  {cidr: "0.0.0.0/8", wantInvalid: "begins with 0.0.0.0"},
		"first of all, IPv6":            {cidr: "::1:2:3/64", wantInvalid: "begins with 0.0.0.0 or ::"},
		"gateway is no address":         {cidr: "10.0.0.0/24", gateway: "router", wantInvalid: `spec.gateway "router" is not an IP address, such as 10.0.0.1`},
		"gateway with a zone":           {cidr: "fe80::/64", gateway: "fe80::1%eth0", wantInvalid: "is not an IP address"},
		"gateway is multicast":          {cidr: "128.0.0.0/1", gateway: "230.0.0.1", wantInvalid: "multicast or loopback address"},
		"gateway is loopback":           {cidr: "126.0.0.0/7", gateway: "127.0.0.1", wantInvalid: "multicast or loopback address"},
		"gateway outside":               {cidr: "10.0.0.0/24", gateway: "10.0.1.1", wantInvalid: "use an address from 10.0.0.1 to 10.0.0.254"},
		"gateway of the other family":   {cidr: "10.0.0.0/24", gateway: "fd00::1", wantInvalid: "not inside"},
		"gateway is IPv4 in IPv6":       {cidr: "10.0.0.0/24", gateway: "::ffff:10.0.0.1", wantInvalid: "is not an IP address"},
		"gateway is network address":    {cidr: "10.0.0.0/24", gateway: "10.0.0.0", wantInvalid: "network address of spec.cidr: use another one, such as 10.0.0.1"},
		"gateway is IPv6 first address": {cidr: "fd00::/64", gateway: "fd00::", wantInvalid: "network address"},
		"gateway is broadcast address":  {cidr: "10.0.0.0/24", gateway: "10.0.0.255", wantInvalid: "broadcast address"},
	} {
		t.Run(name, func(t *testing.T) {
			got := wanting(test.cidr, test.gateway)
			if test.wantInvalid != "" {
				if !strings.Contains(got.Invalid, test.wantInvalid) {
					t.Errorf("Invalid = %q, want a sentence with %q", got.Invalid, test.wantInvalid)
				}
				return
			}
			want := plan.Desired{Owner: owner, CIDR: prefix(test.wantCIDR)}
			if test.wantGateway != "" {
				want.Gateway = addr(test.wantGateway)
			}
			if diff := cmp.Diff(want, got, compareValues); diff != "" {
				t.Errorf("Want() differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPools(t *testing.T) {
	for name, test := range map[string]struct {
		cidr, gateway string
		want          []string
	}{
		"gateway first":              {"192.168.0.0/16", "192.168.0.1", []string{"192.168.0.2-192.168.255.254"}},
		"gateway in the middle":      {"192.168.0.0/16", "192.168.1.1", []string{"192.168.0.1-192.168.1.0", "192.168.1.2-192.168.255.254"}},
		"gateway last":               {"10.0.0.0/24", "10.0.0.254", []string{"10.0.0.1-10.0.0.253"}},
		"smallest":                   {"10.0.0.0/30", "10.0.0.1", []string{"10.0.0.2-10.0.0.2"}},
		"IPv6":                       {"fd00::/64", "fd00::1", []string{"fd00::2-fd00::ffff:ffff:ffff:ffff"}},
		"IPv6, gateway last":         {"fd00::/126", "fd00::3", []string{"fd00::1-fd00::2"}},
		"odd prefix length":          {"10.0.64.0/18", "10.0.64.1", []string{"10.0.64.2-10.0.127.254"}},
		"gateway outside":            {"10.0.0.0/30", "10.0.9.1", []string{"10.0.0.1-10.0.0.2"}},
		"gateway of the other kind":  {"10.0.0.0/30", "fd00::1", []string{"10.0.0.1-10.0.0.2"}},
		"end of the address space":   {"255.255.255.248/29", "255.255.255.254", []string{"255.255.255.249-255.255.255.253"}},
		"end of the address space 6": {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffc/126", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", []string{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffd-ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, pool := range plan.Pools(prefix(test.cidr), addr(test.gateway)) {
				got = append(got, pool.Start.String()+"-"+pool.End.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Pools() differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWantFields: what is refused of the other fields. The CRD refuses most of it
// before; what it cannot say is refused here alone.
func TestWantFields(t *testing.T) {
	type spec = samplecrdv1.NetworkSpec
	pools := func(startEnd ...string) func(*spec) {
		return func(s *spec) {
			for i := 0; i < len(startEnd); i += 2 {
				s.AllocationPools = append(s.AllocationPools, samplecrdv1.AllocationPool{Start: startEnd[i], End: startEnd[i+1]})
			}
		}
	}
	route := func(destination, nextHop string) func(*spec) {
		return func(s *spec) {
			s.HostRoutes = append(s.HostRoutes, samplecrdv1.HostRoute{Destination: destination, NextHop: nextHop})
		}
	}
	for name, test := range map[string]struct {
		change      func(*spec)
		wantInvalid string // a part of the sentence; empty where all is well
	}{
		"two pools":                    {pools("10.0.0.100", "10.0.0.200", "10.0.0.2", "10.0.0.9"), ""},
		"pools side by side":           {pools("10.0.0.2", "10.0.0.9", "10.0.0.10", "10.0.0.20"), ""},
		"pools that overlap":           {pools("10.0.0.100", "10.0.0.200", "10.0.0.2", "10.0.0.100"), "two pools that overlap: 10.0.0.2 to 10.0.0.100, and 10.0.0.100 to 10.0.0.200"},
		"a pool backwards":             {pools("10.0.0.9", "10.0.0.2"), "ends before it starts"},
		"a pool with the gateway":      {pools("10.0.0.1", "10.0.0.9"), "contains the gateway 10.0.0.1"},
		"a pool, gateway adopted":      {func(s *spec) { pools("10.0.0.1", "10.0.0.9")(s); s.NetworkID = "net-1" }, ""},
		"a pool outside":               {pools("10.0.1.1", "10.0.1.9"), "is not inside the host addresses of spec.cidr: use addresses from 10.0.0.1 to 10.0.0.254"},
		"a pool to the broadcast":      {pools("10.0.0.2", "10.0.0.255"), "is not inside the host addresses"},
		"a pool of IPv6":               {pools("fd00::1", "fd00::2"), "is not inside the host addresses"},
		"a pool of words":              {pools("here", "there"), `from "here" to "there" must have an IP address`},
		"a name server":                {func(s *spec) { s.DNSNameservers = []string{"9.9.9.9"} }, ""},
		"a name server by name":        {func(s *spec) { s.DNSNameservers = []string{"dns.example.org"} }, "is not an IP address"},
		"a name server twice":          {func(s *spec) { s.DNSNameservers = []string{"9.9.9.9", "9.9.9.9"} }, "contains 9.9.9.9 twice"},
		"a name server of IPv6":        {func(s *spec) { s.DNSNameservers = []string{"fd00::1"} }, "does not have the IP version of spec.cidr"},
		"a route":                      {route("10.9.0.0/16", "10.0.0.9"), ""},
		"a route with host bits":       {route("10.9.0.1/16", "10.0.0.9"), "without host bits"},
		"a route over a name":          {route("10.9.0.0/16", "router"), "is not an IP address"},
		"a route of IPv6":              {route("fd00::/16", "fd00::1"), "must have the IP version of spec.cidr in both addresses"},
		"a route of two IP versions":   {route("fd00::/16", "10.0.0.1"), "must have the IP version of spec.cidr in both addresses"},
		"a route twice":                {func(s *spec) { route("10.9.0.0/16", "10.0.0.9")(s); route("10.9.0.0/16", "10.0.0.9")(s) }, "contains the route to 10.9.0.0/16 via 10.0.0.9 twice"},
		"no gateway":                   {func(s *spec) { s.Gateway = "None" }, ""},
		"no gateway, in small letters": {func(s *spec) { s.Gateway = "none" }, "nor None"},
		"two addresses":                {func(s *spec) { s.CIDR, s.Gateway, s.EnableDHCP = "10.0.0.0/31", "None", new(false) }, ""},
		"two addresses and a gateway":  {func(s *spec) { s.CIDR, s.EnableDHCP = "10.0.0.0/31", new(false) }, "leaves no room"},
		"IPv6 modes for IPv4":          {func(s *spec) { s.IPv6 = &samplecrdv1.IPv6Options{RAMode: "slaac"} }, "requires an IPv6 range, but spec.cidr is 10.0.0.0/24"},
		"IPv6 modes":                   {func(s *spec) { s.CIDR, s.IPv6 = "fd00::/64", &samplecrdv1.IPv6Options{RAMode: "slaac"} }, ""},
		"IPv6 modes without DHCP": {func(s *spec) {
			s.CIDR, s.IPv6, s.EnableDHCP = "fd00::/64", &samplecrdv1.IPv6Options{RAMode: "slaac"}, new(false)
		}, "requires DHCP"},
		"IPv6 modes that differ": {func(s *spec) {
			s.CIDR, s.IPv6 = "fd00::/64", &samplecrdv1.IPv6Options{RAMode: "slaac", AddressMode: "dhcpv6-stateful"}
		}, "must be the same"},
		"SLAAC requires a /64": {func(s *spec) { s.CIDR, s.IPv6 = "fd00::/63", &samplecrdv1.IPv6Options{RAMode: "slaac"} }, "requires a /64"},
		"SLAAC, out of a pool": {func(s *spec) {
			s.CIDR, s.IPv6, s.SubnetPool = "", &samplecrdv1.IPv6Options{RAMode: "slaac"}, &samplecrdv1.SubnetPoolReference{Name: "p", PrefixLength: 80}
		}, "prefixLength is 80"},
		"stateful does not":          {func(s *spec) { s.CIDR, s.IPv6 = "fd00::/63", &samplecrdv1.IPv6Options{RAMode: "dhcpv6-stateful"} }, ""},
		"MTU too small":              {func(s *spec) { s.MTU = new(int32(67)) }, "from 68 to 65535"},
		"MTU too small for IPv6":     {func(s *spec) { s.CIDR, s.MTU = "fd00::/64", new(int32(1279)) }, "at least 1280"},
		"MTU of an adopted network":  {func(s *spec) { s.NetworkID, s.MTU = "net-1", new(int32(1400)) }, "which is not changed"},
		"tags of an adopted network": {func(s *spec) { s.NetworkID, s.Tags = "net-1", []string{"a"} }, "which is not changed"},
		"a subnet pool":              {func(s *spec) { s.CIDR, s.SubnetPool = "", &samplecrdv1.SubnetPoolReference{Name: "p"} }, ""},
		"a subnet pool and a range":  {func(s *spec) { s.SubnetPool = &samplecrdv1.SubnetPoolReference{Name: "p"} }, "either cidr"},
		"a subnet pool, twice named": {func(s *spec) { s.CIDR, s.SubnetPool = "", &samplecrdv1.SubnetPoolReference{Name: "p", ID: "i"} }, "either a name or an id"},
		"a subnet pool, and a gateway": {func(s *spec) {
			s.CIDR, s.Gateway, s.SubnetPool = "", "10.0.0.1", &samplecrdv1.SubnetPoolReference{Name: "p"}
		}, "the range is not known in advance"},
		"a subnet pool, and no gateway": {func(s *spec) {
			s.CIDR, s.Gateway, s.SubnetPool = "", "None", &samplecrdv1.SubnetPoolReference{Name: "p"}
		}, ""},
		"a subnet pool, and pools": {func(s *spec) {
			pools("10.0.0.2", "10.0.0.3")(s)
			s.CIDR, s.SubnetPool = "", &samplecrdv1.SubnetPoolReference{Name: "p"}
		}, "the range is not known in advance"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24"}
			test.change(&spec)
			got := plan.DesiredFor(owner, spec).Invalid
			if (got == "") != (test.wantInvalid == "") || !strings.Contains(got, test.wantInvalid) {
				t.Errorf("Invalid = %q, want a sentence with %q", got, test.wantInvalid)
			}
		})
	}
}

// FuzzWant: whatever a spec says, the answer is a sentence or something that
// Neutron can have.
func FuzzWant(f *testing.F) {
	f.Add("192.168.1.0/16", "192.168.1.1", "192.168.2.0", "192.168.3.0", "10.0.0.0/8")
	f.Add("fd00::/126", "fd00::3", "fd00::1", "fd00::2", "::/0")
	f.Add("255.255.255.252/30", "", "", "", "")
	f.Add("10.0.0.0/24", "None", "10.0.0.1", "10.0.0.1", "10.9.0.0/24")
	f.Add("::ffff:1.2.3.4/120", "::ffff:1.2.3.5", "::ffff:1.2.3.6", "1.2.3.7", "0.0.0.0/0")
	f.Fuzz(func(t *testing.T, cidr, gateway, start, end, destination string) {
		spec := samplecrdv1.NetworkSpec{CIDR: cidr, Gateway: gateway}
		if start != "" {
			spec.AllocationPools = []samplecrdv1.AllocationPool{{Start: start, End: end}}
			spec.DNSNameservers = []string{end}
			spec.HostRoutes = []samplecrdv1.HostRoute{{Destination: destination, NextHop: start}}
		}
		got := plan.DesiredFor(owner, spec)
		if got.Invalid != "" {
			return
		}
		if got.CIDR != got.CIDR.Masked() || got.Gateway.IsValid() && (!got.CIDR.Contains(got.Gateway) || got.Gateway == got.CIDR.Addr()) {
			t.Fatalf("Want(%+v) = %v, gateway %v", spec, got.CIDR, got.Gateway)
		}
		actualGateway := got.Gateway
		if !actualGateway.IsValid() && !got.NoGateway {
			actualGateway = got.CIDR.Addr().Next()
		}
		for _, pool := range append(plan.Pools(got.CIDR, actualGateway), got.Pools...) {
			if pool.End.Less(pool.Start) || !got.CIDR.Contains(pool.Start) || !got.CIDR.Contains(pool.End) || actualGateway.IsValid() && contains(pool, actualGateway.String()) {
				t.Fatalf("Want(%+v): pool %v, gateway %v", spec, pool, actualGateway)
			}
		}
	})
}

func contains(pool neutron.Pool, address string) bool {
	a := addr(address)
	return !a.Less(pool.Start) && !pool.End.Less(a)
}

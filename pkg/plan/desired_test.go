package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		"no gateway":                    {cidr: "10.1.2.0/24", wantCIDR: "10.1.2.0/24", wantGateway: "10.1.2.1"},
		"no gateway, host bits":         {cidr: "10.1.2.77/24", wantCIDR: "10.1.2.0/24", wantGateway: "10.1.2.1"},
		"smallest":                      {cidr: "10.0.0.0/30", gateway: "10.0.0.2", wantCIDR: "10.0.0.0/30", wantGateway: "10.0.0.2"},
		"IPv6":                          {cidr: "fd00:1234::/64", gateway: "fd00:1234::5", wantCIDR: "fd00:1234::/64", wantGateway: "fd00:1234::5"},
		"IPv6, no gateway":              {cidr: "fd00:1234::/64", wantCIDR: "fd00:1234::/64", wantGateway: "fd00:1234::1"},
		"IPv6, written another way":     {cidr: "FD00:1234:0::/64", wantCIDR: "fd00:1234::/64", wantGateway: "fd00:1234::1"},
		"IPv6, last address is a host":  {cidr: "fd00::/126", gateway: "fd00::3", wantCIDR: "fd00::/126", wantGateway: "fd00::3"},
		"no CIDR":                       {cidr: "", wantInvalid: "not a range"},
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
		"gateway outside":               {cidr: "10.0.0.0/24", gateway: "10.0.1.1", wantInvalid: "goes from 10.0.0.0 to 10.0.0.255"},
		"gateway of the other family":   {cidr: "10.0.0.0/24", gateway: "fd00::1", wantInvalid: "not inside"},
		"gateway is IPv4 in IPv6":       {cidr: "10.0.0.0/24", gateway: "::ffff:10.0.0.1", wantInvalid: "is not an IP address"},
		"gateway is network address":    {cidr: "10.0.0.0/24", gateway: "10.0.0.0", wantInvalid: "network address of spec.cidr: take another one, such as 10.0.0.1"},
		"gateway is IPv6 first address": {cidr: "fd00::/64", gateway: "fd00::", wantInvalid: "network address"},
		"gateway is broadcast address":  {cidr: "10.0.0.0/24", gateway: "10.0.0.255", wantInvalid: "broadcast address"},
	} {
		t.Run(name, func(t *testing.T) {
			got := plan.Want(owner, test.cidr, test.gateway)
			if test.wantInvalid != "" {
				if !strings.Contains(got.Invalid, test.wantInvalid) {
					t.Errorf("Invalid = %q, want a sentence with %q", got.Invalid, test.wantInvalid)
				}
				return
			}
			want := plan.Desired{Owner: owner, CIDR: prefix(test.wantCIDR), Gateway: addr(test.wantGateway)}
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

// FuzzWant: whatever a spec says, the answer is a sentence or something that
// Neutron can have.
func FuzzWant(f *testing.F) {
	f.Add("192.168.1.0/16", "192.168.1.1")
	f.Add("fd00::/126", "fd00::3")
	f.Add("255.255.255.252/30", "")
	f.Add("::ffff:1.2.3.4/120", "::ffff:1.2.3.5")
	f.Fuzz(func(t *testing.T, cidr, gateway string) {
		got := plan.Want(owner, cidr, gateway)
		if got.Invalid != "" {
			return
		}
		if got.CIDR != got.CIDR.Masked() || !got.CIDR.Contains(got.Gateway) || got.Gateway == got.CIDR.Addr() {
			t.Fatalf("Want(%q, %q) = %v, gateway %v", cidr, gateway, got.CIDR, got.Gateway)
		}
		for _, pool := range plan.Pools(got.CIDR, got.Gateway) {
			if pool.End.Less(pool.Start) || !got.CIDR.Contains(pool.Start) || !got.CIDR.Contains(pool.End) || contains(pool, got.Gateway.String()) {
				t.Fatalf("Want(%q, %q): pool %v, gateway %v", cidr, gateway, pool, got.Gateway)
			}
		}
	})
}

func contains(pool neutron.Pool, address string) bool {
	a := addr(address)
	return !a.Less(pool.Start) && !pool.End.Less(a)
}

package v1_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	typedv1 "github.com/samplecrd/network-controller/pkg/client/clientset/versioned/typed/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/test/controlplane"
)

var cluster *controlplane.Cluster

func TestMain(m *testing.M) {
	os.Exit(controlplane.RunTests(m, controlplane.Options{Apply: []string{"crd"}}, func(c *controlplane.Cluster) { cluster = c }))
}

const (
	neither      = "exactly one of cidr and subnetPool must be set, but neither is: cidr for a range of your choice, subnetPool for a range that Neutron allocates"
	both         = "exactly one of cidr and subnetPool must be set, but both are"
	notACIDR     = "cidr must be an IPv4 or IPv6 range in CIDR notation, such as 192.168.0.0/16 or fd00:1234::/64"
	noRoom       = "must have a prefix length from /1 to /30 for IPv4 and from /1 to /126 for IPv6, unless"
	noHosts      = "cidr must not be a multicast or loopback range, or start with 0.0.0.0"
	notAnAddress = "gateway must be an IPv4 or IPv6 address, such as 192.168.0.1 or fd00:1234::1"
	notAHost     = "gateway must not be a multicast or loopback address"
	notInside    = "it must be an address inside cidr, and of the same IP version"
	networkAddr  = "is the network address of cidr"
)

// TestValidation creates Networks on a real API server. The controller must
// reject the same specs, because an older CRD may accept more.
func TestValidation(t *testing.T) {
	for name, test := range map[string]struct {
		cidr, gateway string
		refusal       string // part of the error; empty if the spec is accepted
	}{
		"the walkthrough":                  {"192.168.0.0/16", "192.168.0.1", ""},
		"the walkthrough, edited":          {"192.168.1.0/16", "192.168.1.1", ""},
		"no gateway":                       {"10.0.0.0/8", "", ""},
		"smallest":                         {"10.0.0.0/30", "10.0.0.2", ""},
		"largest":                          {"128.0.0.0/1", "", ""},
		"IPv6":                             {"fd00:1234::/64", "fd00:1234::1", ""},
		"IPv6, smallest":                   {"fd00:1234::/126", "fd00:1234::3", ""},
		"IPv6, spelt out":                  {"fd00:1234:0000:0000:0000:0000:0000:0000/100", "fd00:1234:0000:0000:0000:0000:0000:0001", ""},
		"IPv6, capitals":                   {"FD00::/64", "FD00::A", ""},
		"no CIDR":                          {"", "", neither},
		"words":                            {"my network", "", notACIDR},
		"an address":                       {"192.168.0.0", "", notACIDR},
		"prefix too long":                  {"192.168.0.0/33", "", notACIDR},
		"octet too large":                  {"192.168.0.256/16", "", notACIDR},
		"leading zeros":                    {"192.168.00.0/16", "", notACIDR},
		"leading zeros in the prefix":      {"192.168.0.0/016", "", notACIDR},
		"spaces":                           {" 192.168.0.0/16", "", notACIDR},
		"IPv4 in IPv6":                     {"::ffff:192.168.0.0/112", "", notACIDR},
		"zone":                             {"fe80::1%eth0/64", "", notACIDR},
		"too long":                         {strings.Repeat("1", 60), "", "Too long"},
		"no room":                          {"10.0.0.0/31", "", noRoom},
		"one address":                      {"10.0.0.0/32", "", noRoom},
		"no room, IPv6":                    {"fd00::/127", "", noRoom},
		"everything":                       {"0.0.0.0/0", "", noRoom},
		"everything, IPv6":                 {"::/0", "", noRoom},
		"multicast":                        {"224.0.0.0/24", "", noHosts},
		"multicast, IPv6":                  {"ff02::/64", "", noHosts},
		"more than multicast":              {"224.0.0.0/3", "", ""},
		"loopback":                         {"127.0.1.0/24", "", noHosts},
		"first of all":                     {"0.0.0.0/8", "", noHosts},
		"first of all, with host bits":     {"1.2.3.4/1", "", noHosts},
		"first of all, IPv6":               {"::/64", "", noHosts},
		"gateway in words":                 {"10.0.0.0/24", "router", notAnAddress},
		"gateway with a prefix":            {"10.0.0.0/24", "10.0.0.1/24", notAnAddress},
		"gateway with leading zeros":       {"10.0.0.0/24", "10.0.0.01", notAnAddress},
		"gateway with a zone":              {"fe80::/64", "fe80::1%eth0", notAnAddress},
		"gateway IPv4 in IPv6":             {"10.0.0.0/24", "::ffff:10.0.0.1", notAnAddress},
		"gateway is multicast":             {"128.0.0.0/1", "230.0.0.1", notAHost},
		"gateway is loopback":              {"126.0.0.0/7", "127.0.0.1", notAHost},
		"gateway outside":                  {"10.0.0.0/24", "10.0.1.1", notInside},
		"gateway of the other family":      {"10.0.0.0/24", "fd00::1", notInside},
		"gateway of the other family, 6":   {"fd00::/64", "10.0.0.1", notInside},
		"gateway is the network address":   {"10.0.0.0/24", "10.0.0.0", networkAddr},
		"gateway is it, with host bits":    {"192.168.1.0/16", "192.168.0.0", networkAddr},
		"gateway is the first IPv6 one":    {"fd00::/64", "fd00::", networkAddr},
		"gateway is it, written at length": {"fd00::/64", "fd00:0:0:0::", networkAddr},
		"both are wrong":                   {"nonsense", "more nonsense", notACIDR},
	} {
		t.Run(name, func(t *testing.T) {
			err := create(t, "validation", test.cidr, test.gateway)
			switch {
			case test.refusal == "" && err != nil:
				t.Errorf("rejected: %v", err)
			case test.refusal != "" && (err == nil || !strings.Contains(err.Error(), test.refusal)):
				t.Errorf("got error %v, want one that contains %q", err, test.refusal)
			}
			ours := plan.DesiredFor(neutron.Owner{}, samplecrdv1.NetworkSpec{CIDR: test.cidr, Gateway: test.gateway}).Invalid
			if (ours == "") != (err == nil) {
				t.Errorf("the API server returns %v, but the controller returns %q", err, ours)
			}
		})
	}
}

// leftToNeutron are errors of the API server that the controller does not check
// itself: without the CRD, Neutron rejects these values.
var leftToNeutron = []string{
	"subnetPool.id", "Unsupported value", "dnsDomain must be", "tags must consist of", ".json or .xml", "Duplicate value", "tags",
}

// TestFields checks the other fields in the same way. CEL cannot order
// addresses: the API server accepts some specs that the controller rejects.
func TestFields(t *testing.T) {
	type spec = samplecrdv1.NetworkSpec
	v6 := func(s *spec) { s.CIDR = "fd00::/64" }
	fromPool := func(s *spec) {
		s.CIDR, s.SubnetPool = "", &samplecrdv1.SubnetPoolReference{Name: "campus", PrefixLength: 24}
	}
	pool := func(start, end string) func(*spec) {
		return func(s *spec) { s.AllocationPools = []samplecrdv1.AllocationPool{{Start: start, End: end}} }
	}
	route := func(destination, nextHop string) func(*spec) {
		return func(s *spec) {
			s.HostRoutes = []samplecrdv1.HostRoute{{Destination: destination, NextHop: nextHop}}
		}
	}
	for name, test := range map[string]struct {
		changes []func(*spec)
		refusal string // part of the error; empty if the spec is accepted
		later   bool   // the controller rejects what the API server accepts
	}{
		"all at once": {[]func(*spec){func(s *spec) {
			s.Gateway = "10.0.0.254"
			s.AllocationPools = []samplecrdv1.AllocationPool{{Start: "10.0.0.10", End: "10.0.0.20"}, {Start: "10.0.0.30", End: "10.0.0.40"}}
			s.DNSNameservers = []string{"10.0.0.53", "9.9.9.9"}
			s.HostRoutes = []samplecrdv1.HostRoute{{Destination: "0.0.0.0/0", NextHop: "10.0.0.9"}}
			s.EnableDHCP, s.MTU, s.AdminStateUp, s.PortSecurityEnabled = new(true), new(int32(1400)), new(false), new(false)
			s.DNSDomain, s.Tags = "net.example.org.", []string{"team=blue", "a b"}
		}}, "", false},
		"no gateway":                    {[]func(*spec){func(s *spec) { s.Gateway = "None" }}, "", false},
		"no gateway, in small letters":  {[]func(*spec){func(s *spec) { s.Gateway = "none" }}, notAnAddress + ", or None", false},
		"two addresses":                 {[]func(*spec){func(s *spec) { s.CIDR, s.Gateway, s.EnableDHCP = "10.0.0.0/31", "None", new(false) }}, "", false},
		"one address of IPv6":           {[]func(*spec){func(s *spec) { s.CIDR, s.Gateway, s.EnableDHCP = "fd00::/128", "None", new(false) }}, "", false},
		"two addresses with DHCP":       {[]func(*spec){func(s *spec) { s.CIDR, s.Gateway = "10.0.0.0/31", "None" }}, noRoom, false},
		"everything without DHCP":       {[]func(*spec){func(s *spec) { s.CIDR, s.Gateway, s.EnableDHCP = "0.0.0.0/0", "None", new(false) }}, noRoom, false},
		"subnet pool":                   {[]func(*spec){fromPool}, "", false},
		"subnet pool by ID":             {[]func(*spec){func(s *spec) { s.CIDR, s.SubnetPool = "", &samplecrdv1.SubnetPoolReference{ID: "a-b"} }}, "", false},
		"subnet pool and cidr":          {[]func(*spec){fromPool, func(s *spec) { s.CIDR = "10.0.0.0/24" }}, both, false},
		"subnet pool without a name":    {[]func(*spec){fromPool, func(s *spec) { s.SubnetPool.Name = "" }}, "exactly one of name and id must be set", false},
		"subnet pool with both":         {[]func(*spec){fromPool, func(s *spec) { s.SubnetPool.ID = "a-b" }}, "exactly one of name and id must be set", false},
		"subnet pool, ID is a path":     {[]func(*spec){func(s *spec) { s.CIDR, s.SubnetPool = "", &samplecrdv1.SubnetPoolReference{ID: "../a"} }}, "subnetPool.id", false},
		"subnet pool, prefix too long":  {[]func(*spec){fromPool, func(s *spec) { s.SubnetPool.PrefixLength = 127 }}, "prefixLength", false},
		"subnet pool and a gateway":     {[]func(*spec){fromPool, func(s *spec) { s.Gateway = "10.0.0.1" }}, "must be None or omitted with subnetPool", false},
		"subnet pool and no gateway":    {[]func(*spec){fromPool, func(s *spec) { s.Gateway = "None" }}, "", false},
		"subnet pool and pools":         {[]func(*spec){fromPool, pool("10.0.0.2", "10.0.0.9")}, "allocationPools must be omitted with subnetPool", false},
		"pool outside":                  {[]func(*spec){pool("10.0.0.2", "10.0.1.9")}, "which is not inside cidr", false},
		"pool of IPv6":                  {[]func(*spec){pool("fd00::1", "fd00::2")}, "which is not inside cidr", false},
		"pool of words":                 {[]func(*spec){pool("a", "b")}, "start must be an IPv4 or IPv6 address", false},
		"pool backwards":                {[]func(*spec){pool("10.0.0.9", "10.0.0.2")}, "", true},
		"pool with the gateway":         {[]func(*spec){pool("10.0.0.1", "10.0.0.9")}, "", true},
		"name server in words":          {[]func(*spec){func(s *spec) { s.DNSNameservers = []string{"dns.example.org"} }}, "dnsNameservers must be IPv4 or IPv6 addresses", false},
		"name server twice":             {[]func(*spec){func(s *spec) { s.DNSNameservers = []string{"9.9.9.9", "9.9.9.9"} }}, "dnsNameservers must not contain duplicates", false},
		"name server of IPv6":           {[]func(*spec){func(s *spec) { s.DNSNameservers = []string{"fd00::53"} }}, "does not have the IP version of cidr", false},
		"name server of IPv6, for IPv6": {[]func(*spec){v6, func(s *spec) { s.DNSNameservers = []string{"fd00::53"} }}, "", false},
		"route with host bits":          {[]func(*spec){route("10.9.0.1/16", "10.0.0.9")}, "must be a range in CIDR notation without host bits", false},
		"route over a name":             {[]func(*spec){route("10.9.0.0/16", "router")}, "must be an IPv4 or IPv6 address", false},
		"route of IPv6":                 {[]func(*spec){route("fd01::/64", "fd00::9")}, "does not have the IP version of cidr", false},
		"route of IPv6, for IPv6":       {[]func(*spec){v6, route("fd01::/64", "fd00::9")}, "", false},
		"IPv6 modes":                    {[]func(*spec){v6, func(s *spec) { s.IPv6 = &samplecrdv1.IPv6Options{AddressMode: "slaac", RAMode: "slaac"} }}, "", false},
		"IPv6 modes, empty":             {[]func(*spec){v6, func(s *spec) { s.IPv6 = &samplecrdv1.IPv6Options{} }}, "at least one of addressMode and raMode must be set", false},
		"IPv6 modes that differ":        {[]func(*spec){v6, func(s *spec) { s.IPv6 = &samplecrdv1.IPv6Options{AddressMode: "slaac", RAMode: "dhcpv6-stateful"} }}, "they must be equal", false},
		"IPv6 mode that is none":        {[]func(*spec){v6, func(s *spec) { s.IPv6 = &samplecrdv1.IPv6Options{RAMode: "SLAAC"} }}, "Unsupported value", false},
		"IPv6 modes for IPv4":           {[]func(*spec){func(s *spec) { s.IPv6 = &samplecrdv1.IPv6Options{RAMode: "slaac"} }}, "ipv6 requires an IPv6 cidr", false},
		"IPv6 modes without DHCP":       {[]func(*spec){v6, func(s *spec) { s.IPv6, s.EnableDHCP = &samplecrdv1.IPv6Options{RAMode: "slaac"}, new(false) }}, "ipv6 requires DHCP", false},
		"SLAAC in a /80":                {[]func(*spec){func(s *spec) { s.CIDR, s.IPv6 = "fd00::/80", &samplecrdv1.IPv6Options{RAMode: "slaac"} }}, "", true},
		"MTU too small":                 {[]func(*spec){func(s *spec) { s.MTU = new(int32(67)) }}, "mtu", false},
		"MTU too small for IPv6":        {[]func(*spec){v6, func(s *spec) { s.MTU = new(int32(1279)) }}, "must be at least 1280", false},
		"DNS domain with an underscore": {[]func(*spec){func(s *spec) { s.DNSDomain = "a_b.example.org" }}, "dnsDomain must be", false},
		"tag with a slash":              {[]func(*spec){func(s *spec) { s.Tags = []string{"a/b"} }}, "tags must consist of", false},
		"tag that ends like a file":     {[]func(*spec){func(s *spec) { s.Tags = []string{"a.json"} }}, ".json or .xml", false},
		"tag twice":                     {[]func(*spec){func(s *spec) { s.Tags = []string{"a", "a"} }}, "Duplicate value", false},
		"tag too long":                  {[]func(*spec){func(s *spec) { s.Tags = []string{strings.Repeat("a", 61)} }}, "tags", false},
		"adopted network with an MTU":   {[]func(*spec){func(s *spec) { s.NetworkID, s.MTU = "abc", new(int32(1400)) }}, "must be omitted with networkID", false},
		"adopted network with DNS":      {[]func(*spec){func(s *spec) { s.NetworkID, s.DNSNameservers = "abc", []string{"9.9.9.9"} }}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			network := &samplecrdv1.Network{Spec: spec{CIDR: "10.0.0.0/24"}}
			network.Name = "fields"
			for _, change := range test.changes {
				change(&network.Spec)
			}
			err := createNetwork(t, network)
			if test.refusal == "" && err != nil || test.refusal != "" && (err == nil || !strings.Contains(err.Error(), test.refusal)) {
				t.Errorf("got error %v, want one that contains %q", err, test.refusal)
			}
			ours := plan.DesiredFor(neutron.Owner{}, network.Spec).Invalid
			unchecked := slices.Contains(leftToNeutron, test.refusal)
			if (ours != "") != (err != nil || test.later) && !unchecked {
				t.Errorf("the API server returns %v, but the controller returns %q", err, ours)
			}
		})
	}
}

// TestPolicyAndAdoption checks deletionPolicy, and that networkID is immutable.
func TestPolicyAndAdoption(t *testing.T) {
	for name, test := range map[string]struct {
		patch   string
		refusal string // part of the error; empty if the spec is accepted
	}{
		"retain":                 {`{"spec":{"deletionPolicy":"Retain"}}`, ""},
		"delete":                 {`{"spec":{"deletionPolicy":"Delete"}}`, ""},
		"no policy":              {`{"spec":{"deletionPolicy":null}}`, ""},
		"another policy":         {`{"spec":{"deletionPolicy":"Keep"}}`, "deletionPolicy"},
		"a network, later":       {`{"spec":{"networkID":"abc"}}`, "networkID cannot be set, changed or removed later: it is not set, and the request has abc"},
		"an ID that is a path":   {`{"spec":{"networkID":"../x"}}`, "networkID"},
		"an ID that is empty":    {`{"spec":{"networkID":""}}`, "networkID"},
		"an ID that is too long": {`{"spec":{"networkID":"` + strings.Repeat("a", 65) + `"}}`, "networkID"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := create(t, "policy", "10.0.0.0/24", ""); err != nil {
				t.Fatal(err)
			}
			_, err := networks(t).Patch(t.Context(), "policy", types.MergePatchType, []byte(test.patch), metav1.PatchOptions{})
			if test.refusal == "" && err != nil || test.refusal != "" && (err == nil || !strings.Contains(err.Error(), test.refusal)) {
				t.Errorf("patching with %s: %v, want %q", test.patch, err, test.refusal)
			}
		})
	}
	adopting := &samplecrdv1.Network{Spec: samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", NetworkID: "abc"}}
	adopting.Name = "adopting"
	if _, err := networks(t).Create(t.Context(), adopting, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, patch := range []string{`{"spec":{"networkID":"abd"}}`, `{"spec":{"networkID":null}}`} {
		_, err := networks(t).Patch(t.Context(), "adopting", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err == nil || !strings.Contains(err.Error(), "networkID cannot be set, changed or removed later") {
			t.Errorf("patching with %s: %v", patch, err)
		}
	}
}

func TestNameIsLimited(t *testing.T) {
	if err := create(t, strings.Repeat("x", 63), "10.0.0.0/24", ""); err != nil {
		t.Errorf("a name of 63 characters was rejected: %v", err)
	}
	err := create(t, strings.Repeat("x", 64), "10.0.0.0/24", "")
	if err == nil || !strings.Contains(err.Error(), "is invalid: metadata: Invalid value: metadata.name must have at most 63 characters: ") {
		t.Errorf("a name of 64 characters: %v", err)
	}
}

// TestMessagesShowValues checks that an error contains the value that a user wrote.
// The API server adds the value only if the rule is about a single string or number.
func TestMessagesShowValues(t *testing.T) {
	for name, test := range map[string]struct {
		spec string // in JSON
		want string
	}{
		"words":                   {`{"cidr":"my network"}`, `spec.cidr: Invalid value: "my network": cidr must be`},
		"line break":              {`{"cidr":"10.0.0.0/24\n"}`, `spec.cidr: Invalid value: "10.0.0.0/24\n": cidr must be`},
		"gateway in words":        {`{"cidr":"10.0.0.0/24","gateway":"router"}`, `spec.gateway: Invalid value: "router": gateway must be`},
		"neither":                 {`{}`, "but neither is"},
		"both":                    {`{"cidr":"10.0.0.0/24","subnetPool":{"name":"campus"}}`, "but both are"},
		"no room":                 {`{"cidr":"10.0.0.0/31"}`, "spec: Invalid value: cidr 10.0.0.0/31 must have a prefix length"},
		"gateway outside":         {`{"cidr":"10.0.0.0/24","gateway":"10.0.1.1"}`, "spec: Invalid value: gateway 10.0.1.1 is outside of cidr 10.0.0.0/24"},
		"network address":         {`{"cidr":"10.0.0.9/24","gateway":"10.0.0.0"}`, "gateway 10.0.0.0 is the network address of cidr 10.0.0.9/24"},
		"gateway and subnet pool": {`{"subnetPool":{"name":"campus"},"gateway":"10.0.0.1"}`, "gateway is 10.0.0.1, but it must be None or omitted with subnetPool"},
		"no address and a pool":   {`{"subnetPool":{"name":"campus"},"gateway":"a\n\u001b[31mb"}`, `spec.gateway: Invalid value: "a\n\x1b[31mb": gateway must be`},
		"pool outside":            {`{"cidr":"10.0.0.0/24","allocationPools":[{"start":"10.0.0.2","end":"10.0.0.9"},{"start":"10.0.1.2","end":"10.0.1.9"}]}`, "allocationPools has 10.0.1.2 to 10.0.1.9, which is not inside cidr 10.0.0.0/24"},
		"pool of words":           {`{"cidr":"10.0.0.0/24","allocationPools":[{"start":"10.0.0.2","end":"last"}]}`, `spec.allocationPools[0].end: Invalid value: "last": end must be`},
		"name server in words":    {`{"cidr":"10.0.0.0/24","dnsNameservers":["9.9.9.9","dns.example.org"]}`, `spec.dnsNameservers[1]: Invalid value: "dns.example.org": dnsNameservers must be`},
		"name server of IPv6":     {`{"cidr":"10.0.0.0/24","dnsNameservers":["9.9.9.9","fd00::53"]}`, "dnsNameservers has fd00::53, which does not have the IP version of cidr 10.0.0.0/24"},
		"route with host bits":    {`{"cidr":"10.0.0.0/24","hostRoutes":[{"destination":"10.9.0.1/16","nextHop":"10.0.0.9"}]}`, `spec.hostRoutes[0].destination: Invalid value: "10.9.0.1/16": destination must be`},
		"route over a name":       {`{"cidr":"10.0.0.0/24","hostRoutes":[{"destination":"10.9.0.0/16","nextHop":"router"}]}`, `spec.hostRoutes[0].nextHop: Invalid value: "router": nextHop must be`},
		"route of IPv6":           {`{"cidr":"10.0.0.0/24","hostRoutes":[{"destination":"fd01::/64","nextHop":"fd00::9"}]}`, "of cidr 10.0.0.0/24"},
		"IPv6 modes for IPv4":     {`{"cidr":"10.0.0.0/24","ipv6":{"raMode":"slaac"}}`, "ipv6 requires an IPv6 cidr, but cidr is 10.0.0.0/24"},
		"MTU of IPv6":             {`{"cidr":"fd00::/64","mtu":1279}`, "mtu must be at least 1280"},
		"modes that differ":       {`{"cidr":"fd00::/64","ipv6":{"addressMode":"slaac","raMode":"dhcpv6-stateful"}}`, "addressMode is slaac and raMode is dhcpv6-stateful, but"},
		"tag with a slash":        {`{"cidr":"10.0.0.0/24","tags":["a","b/c"]}`, `spec.tags[1]: Invalid value: "b/c": tags must`},
		"tag like a file":         {`{"cidr":"10.0.0.0/24","tags":["a","b.json"]}`, `spec.tags[1]: Invalid value: "b.json": tags must`},
	} {
		t.Run(name, func(t *testing.T) {
			network := &samplecrdv1.Network{}
			network.Name = "messages"
			if err := json.Unmarshal([]byte(test.spec), &network.Spec); err != nil {
				t.Fatal(err)
			}
			err := createNetwork(t, network)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one that contains %q", err, test.want)
			}
			if err != nil && (len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\n\x1b") || strings.Contains(err.Error(), "<nil>")) {
				t.Errorf("the error is long, or has control characters, or no field: %q", err.Error())
			}
		})
	}
}

// TestNewIsNotReady checks that a Network has a condition Ready from the start,
// so that tools can wait for it before a controller has reconciled the Network.
func TestNewIsNotReady(t *testing.T) {
	if err := create(t, "new", "10.0.0.0/24", ""); err != nil {
		t.Fatal(err)
	}
	network, err := networks(t).Get(t.Context(), "new", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ready := meta.FindStatusCondition(network.Status.Conditions, samplecrdv1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionUnknown || ready.Reason != "Pending" {
		t.Errorf("the condition is %+v", ready)
	}
}

// TestKubectl checks the output of kubectl get and kubectl explain.
func TestKubectl(t *testing.T) {
	for _, name := range []string{"shown", "waiting"} {
		if err := create(t, name, "10.0.0.0/24", "10.0.0.1"); err != nil {
			t.Fatal(err)
		}
	}
	status := `{"status":{"cidr":"10.0.0.0/24","gateway":"10.0.0.1","networkID":"5fc2b1e0","conditions":[{"type":"Ready","status":"True","reason":"Provisioned","message":"The network exists.","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	if _, err := networks(t).Patch(t.Context(), "shown", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"table": {[]string{"get", "networks", "shown"}, []string{"NAME CIDR GATEWAY READY REASON AGE shown 10.0.0.0/24 10.0.0.1 True Provisioned"}},
		"wide table": {[]string{"get", "nw", "shown", "-o", "wide"}, []string{
			"NAME CIDR GATEWAY READY REASON MESSAGE NETWORK ID AGE shown 10.0.0.0/24 10.0.0.1 True Provisioned The network exists. 5fc2b1e0"}},
		"category":     {[]string{"get", "openstack"}, []string{"shown 10.0.0.0/24"}},
		"all":          {[]string{"get", "all"}, []string{"network.samplecrd.k8s.io/shown 10.0.0.0/24"}},
		"before start": {[]string{"get", "networks", "waiting", "-o", "wide"}, []string{"waiting Unknown Pending No controller has reconciled this Network yet."}},
		"explain": {[]string{"explain", "network.spec"}, []string{
			"cidr", "/1 to /30 for IPv4 and /1 to /126 for IPv6", "host bits are ignored", "gateway", "subnetPool", "allocationPools", "dnsNameservers", "hostRoutes", "enableDHCP", "ipv6", "mtu", "adminStateUp", "portSecurityEnabled", "dnsDomain", "tags", "net-mtu-writable"}},
		"explain a field": {[]string{"explain", "network.spec.subnetPool"}, []string{"prefixLength", "must be unique among the subnet pools"}},
		"explain status":  {[]string{"explain", "network.status"}, []string{"observedGeneration", "conditions are the current conditions of the Network"}},
	} {
		t.Run(name, func(t *testing.T) {
			output, err := cluster.Kubectl(t.Context(), test.args...)
			if err != nil {
				t.Fatal(err)
			}
			flat := strings.ToLower(strings.Join(strings.Fields(string(output)), " "))
			for _, want := range test.want {
				if !strings.Contains(flat, strings.ToLower(want)) {
					t.Errorf("the output of kubectl %s lacks %q:\n%s", strings.Join(test.args, " "), want, output)
				}
			}
		})
	}
}

// create creates a Network and deletes it at the end of the test.
func create(t *testing.T, name, cidr, gateway string) error {
	t.Helper()
	network := &samplecrdv1.Network{Spec: samplecrdv1.NetworkSpec{CIDR: cidr, Gateway: gateway}}
	network.Name = name
	return createNetwork(t, network)
}

func createNetwork(t *testing.T, network *samplecrdv1.Network) error {
	t.Helper()
	_, err := networks(t).Create(t.Context(), network, metav1.CreateOptions{})
	if err == nil {
		t.Cleanup(func() { // the Network has no finalizer: no controller runs
			if err := networks(t).Delete(context.Background(), network.Name, metav1.DeleteOptions{}); err != nil {
				t.Errorf("deleting the Network: %v", err)
			}
		})
	}
	return err
}

func networks(t testing.TB) typedv1.NetworkInterface {
	t.Helper()
	client, err := clientset.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client.SamplecrdV1().Networks(metav1.NamespaceDefault)
}

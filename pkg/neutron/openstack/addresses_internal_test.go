package openstack

import (
	"net/netip"
	"testing"
)

// TestForbiddenAddresses: no connection goes to this machine, its link or a service for metadata.
func TestForbiddenAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "0.0.0.0": true, "0.1.2.3": true, "::": true,
		"169.254.169.254": true, "fe80::1": true, "fe80::1%eth0": true, "fd00:ec2::254": true, "100.100.100.200": true,
		"224.0.0.1": true, "255.255.255.255": true, "ff02::1": true,
		"::ffff:127.0.0.1": true, "::ffff:169.254.169.254": true, "64:ff9b::7f00:1": true, "64:ff9b::a9fe:a9fe": true,
		"10.0.0.1": false, "192.168.1.1": false, "203.0.113.9": false, "2001:db8::1": false, "fd00::1": false,
		"64:ff9b::cb00:7109": false, "64:ff9b:1::7f00:1": true, "2002:7f00:1::": true,
	} {
		if got := isForbidden(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: forbidden is %t, want %t", address, got, want)
		}
	}
	if err := new(Addresses).control("tcp", "not an address", nil); err == nil {
		t.Error("what is no address is allowed")
	}
}

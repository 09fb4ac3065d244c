package plan

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Desired is what a Network object asks for, as values that can be compared:
// 192.168.0.0/16 and 192.168.1.0/16 are two texts for one range.
type Desired struct {
	Owner neutron.Owner
	// Absent is true when the object is being deleted.
	Absent bool
	// Leave says what stays in Neutron then.
	Leave Leave
	// Adopted is the ID of a network that was there before, to be used in place
	// of one of our own; empty where we make one.
	Adopted string
	// Obstacle is why the object must not be worked on, where something outside
	// of Neutron stands in the way; its Reason is empty where nothing does.
	Obstacle Blocked
	// Invalid says, in a sentence, why the spec cannot be met; empty where it
	// can.
	Invalid string
	// CIDR is the range of the subnet, without host bits.
	CIDR netip.Prefix
	// Gateway is the address of the gateway: the first one of the range where
	// the spec names none, as in Neutron.
	Gateway netip.Addr
}

// Leave says what stays in Neutron when an object goes.
type Leave int

const (
	// LeaveNothing means that the network goes, with our subnet on it.
	LeaveNothing Leave = iota
	// LeaveNetwork means that a network that was adopted stays, and our subnet on
	// it goes.
	LeaveNetwork
	// LeaveAll means that the network stays with all that is on it, for the next object of
	// the same name to take up.
	LeaveAll
)

// Want returns what the object of the owner asks for with the cidr and gateway
// of its spec. It checks both as the CRD does, and more: an older CRD may have
// let something through.
func Want(owner neutron.Owner, cidr, gateway string) Desired {
	desired := Desired{Owner: owner}
	var err error
	if desired.CIDR, err = parseCIDR(cidr); err == nil {
		desired.Gateway, err = parseGateway(gateway, desired.CIDR)
	}
	if err != nil {
		desired.Invalid = err.Error()
	}
	return desired
}

// WantAbsent returns that nothing should be left of the owner's object.
func WantAbsent(owner neutron.Owner) Desired {
	return Desired{Owner: owner, Absent: true}
}

func parseCIDR(text string) (netip.Prefix, error) {
	cidr, err := netip.ParsePrefix(text)
	if err != nil || cidr.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("spec.cidr %q is not a range in CIDR notation, such as 192.168.0.0/16 or fd00:1234::/64", text)
	}
	longest := 126
	if cidr.Addr().Is4() {
		longest = 30
	}
	if cidr.Bits() < 1 || cidr.Bits() > longest {
		return netip.Prefix{}, fmt.Errorf("spec.cidr %q has a prefix length that leaves no room for a gateway and a port, or is the whole address space: take one from /1 to /%d", text, longest)
	}
	cidr = cidr.Masked()
	if isPartOf(cidr, "224.0.0.0/4", "ff00::/8", "127.0.0.0/8") || cidr.Addr().IsUnspecified() {
		return netip.Prefix{}, fmt.Errorf("spec.cidr %q is a multicast or loopback range, or begins with 0.0.0.0 or ::, which hosts cannot have: take another one, such as 192.168.0.0/16", text)
	}
	return cidr, nil
}

func isPartOf(cidr netip.Prefix, ranges ...string) bool {
	return slices.ContainsFunc(ranges, func(text string) bool {
		whole := netip.MustParsePrefix(text)
		return whole.Contains(cidr.Addr()) && whole.Bits() <= cidr.Bits()
	})
}

func parseGateway(text string, cidr netip.Prefix) (netip.Addr, error) {
	if text == "" {
		return cidr.Addr().Next(), nil
	}
	gateway, err := netip.ParseAddr(text)
	if err != nil || gateway.Is4In6() || gateway.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("spec.gateway %q is not an IP address, such as %s", text, cidr.Addr().Next())
	}
	switch {
	case gateway.IsMulticast() || gateway.IsLoopback():
		return netip.Addr{}, fmt.Errorf("spec.gateway %s is a multicast or loopback address: take another one, such as %s", gateway, cidr.Addr().Next())
	case !cidr.Contains(gateway):
		return netip.Addr{}, fmt.Errorf("spec.gateway %s is not inside spec.cidr, which goes from %s to %s", gateway, cidr.Addr(), lastAddr(cidr))
	case gateway == cidr.Addr():
		return netip.Addr{}, fmt.Errorf("spec.gateway %s is the network address of spec.cidr: take another one, such as %s", gateway, cidr.Addr().Next())
	case gateway.Is4() && gateway == lastAddr(cidr):
		return netip.Addr{}, fmt.Errorf("spec.gateway %s is the broadcast address of spec.cidr: take another one, such as %s", gateway, cidr.Addr().Next())
	}
	return gateway, nil
}

package plan

import (
	"net/netip"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Desired is what a Network object asks for, as values that can be compared:
// 192.168.0.0/16 and 192.168.1.0/16 are two texts for one range. What the object
// leaves out has the value that Neutron gives by itself, unless it is said
// otherwise.
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

	// Edited is true where the object has asked for something else before.
	Edited bool
	// Settings are those of the network; nil for what is left out.
	Settings neutron.NetworkSettings
	// Tags are those to be on the network, sorted, beside those of others.
	Tags []string

	// CIDR is the range of the subnet, without host bits; the zero Prefix where
	// SubnetPool hands it out.
	CIDR netip.Prefix
	// SubnetPool is where the range is from, or nil.
	SubnetPool *SubnetPool
	// Gateway is the address of the gateway, if the spec names one, and the zero
	// Addr otherwise.
	Gateway netip.Addr
	// NoGateway is true where there must be none.
	NoGateway bool
	// Pools are the allocation pools, if the spec names any.
	Pools []neutron.Pool
	// DHCP is nil where it is left out.
	DHCP        *bool
	Nameservers []netip.Addr
	HostRoutes  []neutron.HostRoute
	// AddressMode and RAMode are those of IPv6.
	AddressMode, RAMode string
}

// SubnetPool is a subnet pool by its ID or by its name.
type SubnetPool struct {
	ID, Name     string
	PrefixLength int // 0 for whatever the subnet pool gives
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

// DesiredAbsent returns that nothing should be left of the owner's object.
func DesiredAbsent(owner neutron.Owner) Desired {
	return Desired{Owner: owner, Absent: true}
}

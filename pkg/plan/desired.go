package plan

import (
	"net/netip"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Desired is the desired state of one Network object, as values that can be
// compared: 192.168.0.0/16 and 192.168.1.0/16 are two texts for one range. A
// field that the spec omits gets Neutron's default, unless documented otherwise.
type Desired struct {
	Owner neutron.Owner
	// Absent is true if the object is being deleted.
	Absent bool
	// Leave selects what stays in Neutron then.
	Leave Leave
	// Adopted is the ID of an existing network to use instead of a new one. It is
	// empty if the controller creates the network.
	Adopted string
	// Obstacle blocks the plan for a reason outside of Neutron. Its Reason is
	// empty if there is none.
	Obstacle Blocked
	// Invalid is a sentence that explains why the spec cannot be met. It is empty
	// for a valid spec.
	Invalid string

	// ReportDrift is true if Neutron matched this spec before, and a later difference
	// is to be reported instead of corrected.
	ReportDrift bool
	// Edited is true if the spec was different at an earlier time.
	Edited bool
	// Settings are those of the network; nil for each one that the spec omits.
	Settings neutron.NetworkSettings
	// Tags are the tags that the network must have, sorted. Other tags stay.
	Tags []string

	// CIDR is the range of the subnet, without host bits. It is the zero Prefix if
	// SubnetPool is set.
	CIDR netip.Prefix
	// SubnetPool allocates the range, if it is not nil.
	SubnetPool *SubnetPool
	// Gateway is the address of the gateway. It is the zero Addr if the spec omits
	// it.
	Gateway netip.Addr
	// NoGateway is true if the subnet must not have a gateway.
	NoGateway bool
	// Pools are the allocation pools. They are nil if the spec omits them.
	Pools []neutron.Pool
	// DHCP is nil if the spec omits it.
	DHCP        *bool
	Nameservers []netip.Addr
	HostRoutes  []neutron.HostRoute
	// AddressMode and RAMode are those of IPv6.
	AddressMode, RAMode string
	// Router is the router to which the subnet is attached, or nil for none.
	Router *Router
}

// SubnetPool is a subnet pool by its ID or by its name.
type SubnetPool struct {
	ID, Name     string
	PrefixLength int // 0 for the default of the subnet pool
}

// Leave selects what stays in Neutron when an object is deleted.
type Leave int

const (
	// LeaveNothing deletes the network, with the subnet on it.
	LeaveNothing Leave = iota
	// LeaveNetwork keeps an adopted network, and deletes the subnet that was
	// created on it.
	LeaveNetwork
	// LeaveAll keeps the network and all subnets on it, for the next object of the
	// same name.
	LeaveAll
)

// DesiredAbsent returns the desired state of an object that no longer exists.
func DesiredAbsent(owner neutron.Owner) Desired {
	return Desired{Owner: owner, Absent: true}
}

// Markers returns the descriptions by which the network of the object is found.
func (d Desired) Markers() []string {
	if d.Absent && d.Leave != LeaveAll {
		return []string{d.Owner.Marker()} // this object must not delete what an earlier object retained
	}
	return []string{d.Owner.Marker(), d.Owner.RetainedMarker()}
}

// RangeText describes the range of the subnet, with the properties that cannot
// be changed later: "192.168.0.0/16", or "a /24 from subnet pool campus".
func (d Desired) RangeText() string {
	text := d.CIDR.String()
	if pool := d.SubnetPool; pool != nil {
		text = allocationText(pool.Name+pool.ID, pool.PrefixLength)
	}
	return text + modesText(d.AddressMode, d.RAMode)
}

// gatewayOr returns the desired gateway, which is byDefault if the spec omits it.
// The zero Addr stands for none.
func (d Desired) gatewayOr(byDefault netip.Addr) netip.Addr {
	switch {
	case d.NoGateway:
		return netip.Addr{}
	case d.Gateway.IsValid():
		return d.Gateway
	}
	return byDefault
}

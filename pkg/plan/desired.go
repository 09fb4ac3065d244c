package plan

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Desired is the desired state of one Network object, as values that can be compared:
// 192.168.0.0/16 and 192.168.1.0/16 are two texts for one range. A field that the spec
// omits gets Neutron's default, unless documented otherwise.
type Desired struct {
	Owner   neutron.Owner
	Absent  bool   // the object is being deleted, or does not exist
	Gone    bool   // it does not exist; then only networks with a claim count
	Claims  Claims // of the controller to networks that no status names
	Leave   Leave  // what stays in Neutron when the object is deleted
	Adopted string // the ID of an existing network to use; empty to create one
	// Request names, in the owner marker, the request with which this plan creates or
	// takes over a network. It is empty if the plan is not applied.
	Request string
	// Obstacle blocks the plan for a reason outside of Neutron, if its Reason is not empty.
	// ReasonPaused blocks also a deletion.
	Obstacle Blocked
	// Invalid is a sentence that explains why the spec cannot be met. It is empty for a
	// valid spec.
	Invalid string
	// ReportDrift is true if Neutron matched this spec before, and a later difference is to
	// be reported instead of corrected.
	ReportDrift bool
	// SharesRange is true if an older Network of the namespace has the same range. The plan
	// is the same, and the status says so.
	SharesRange bool
	Edited      bool // the spec was different at an earlier time

	Settings neutron.NetworkSettings // nil for each one that the spec omits
	Tags     []string                // that the network must have, sorted; other tags stay

	CIDR        netip.Prefix // without host bits; the zero Prefix if there is a SubnetPool
	SubnetPool  *SubnetPool  // allocates the range, if it is not nil
	Gateway     netip.Addr   // the zero Addr if the spec omits it
	NoGateway   bool         // the subnet must not have a gateway
	Pools       []neutron.Pool
	DHCP        *bool // nil if the spec omits it
	Nameservers []netip.Addr
	HostRoutes  []neutron.HostRoute
	AddressMode string  // of IPv6
	RAMode      string  // of IPv6
	Router      *Router // to which the subnet is attached; nil for none
}

// SubnetPool is a subnet pool by its ID or by its name.
type SubnetPool struct {
	ID, Name     string
	PrefixLength int // 0 for the default of the subnet pool
}

// Router is a router by its ID or by its name.
type Router struct{ ID, Name string }

// Leave selects what stays in Neutron when an object is deleted.
type Leave int

const (
	// LeaveNothing deletes the network, with the subnet on it.
	LeaveNothing Leave = iota
	// LeaveNetwork keeps an adopted network, and deletes the subnet that was created on it.
	LeaveNetwork
	// LeaveAll keeps the network and all subnets on it, for the next object of the same name.
	LeaveAll
)

// Claims say which networks with the owner marker of an object belong to the controller
// although no status names them. Without a claim, it is unknown why a network is there: a
// user may have removed the finalizer of its object to keep it.
type Claims struct {
	// Requests are those of this process that created or took over a network, or may
	// have, and that no status names.
	Requests []string
	// Released is true if this process has finished the deletion of an object. Seen are
	// the requests of the networks that Neutron had then, which were left for a reason. A
	// network of any other request was created later, by a request in flight.
	Released bool
	Seen     []string
	// Orphans is true if every network without an object is to be deleted.
	Orphans bool
}

// Has reports whether there is a claim to the network with a description.
func (c Claims) Has(description string) bool {
	request := neutron.RequestOf(description)
	appeared := c.Released && request != "" && !slices.Contains(c.Seen, request)
	return c.Orphans || appeared || slices.Contains(c.Requests, request)
}

func (d Desired) mayTakeOver() bool { return !d.Absent || d.Leave == LeaveAll }

// markerOf returns the owner marker that our network should have: the one that it has, or
// a new one.
func (d Desired) markerOf(network neutron.Network) string {
	if d.Owner.HasMarker(network.Description) {
		return network.Description
	}
	return d.Owner.NetworkMarker(d.Request, d.Owner.HasRetainedMarker(network.Description))
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

// isOtherVersion reports whether the IP version of an address differs from that
// of the range, if the range is known.
func (d Desired) isOtherVersion(address netip.Addr) bool {
	return d.CIDR.IsValid() && d.CIDR.Addr().Is4() != address.Is4()
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

// Words describes the desired state for people.
func (d Desired) Words() string {
	switch {
	case d.Absent && d.Leave == LeaveAll:
		return "the Network is deleted; what is in Neutron stays"
	case d.Absent && d.Leave == LeaveNetwork:
		return "the Network is deleted: no subnet; the adopted network stays"
	case d.Absent:
		return "the Network is deleted: nothing in Neutron"
	case d.Invalid != "":
		return "invalid: " + d.Invalid
	}
	words := []string{"a network"}
	if d.Adopted != "" {
		words[0] = "the network " + d.Adopted
	}
	words = append(words, "subnet "+d.RangeText())
	switch {
	case d.NoGateway:
		words = append(words, "no gateway")
	case d.Gateway.IsValid():
		words = append(words, "gateway "+d.Gateway.String())
	}
	if len(d.Tags) > 0 {
		words = append(words, "tags "+strings.Join(d.Tags, " "))
	}
	if d.Router != nil {
		words = append(words, "router "+d.Router.ID+d.Router.Name)
	}
	return strings.Join(words, ", ")
}

// SuccessWord is the outcome of a sync that reaches the desired state.
func (d Desired) SuccessWord() string {
	if d.Absent {
		return "Deleted"
	}
	return "Ready"
}

// Package neutron says what the controller needs of OpenStack Neutron: the
// values it reads and writes, the requests it makes, and the kinds of failure
// it can act on. The package knows nothing of HTTP; package openstack talks to
// a server, and package neutrontest holds the tests that every implementation
// and every server must pass.
package neutron

import (
	"context"
	"net/netip"
	"time"
)

// Client is a connection to one Neutron, as one project.
//
// Every method is one request (a list may take several pages), honours its
// context, and is safe for concurrent use. A failure is an *Error.
type Client interface {
	Reader
	Writer
	Tagger
}

// Reader looks, and changes nothing.
//
// A list that could not be read whole is an error: an empty answer means that
// there is nothing, never that it is not known.
type Reader interface {
	// Networks lists the networks that match.
	Networks(context.Context, NetworkFilter) ([]Network, error)
	// Subnets lists the subnets that match.
	Subnets(context.Context, SubnetFilter) ([]Subnet, error)
	// SubnetPools lists the subnet pools that match, those that others share with
	// the project included.
	SubnetPools(context.Context, SubnetPoolFilter) ([]SubnetPool, error)
	// Extensions lists the aliases of the extensions of Neutron's API that this
	// one has, such as "net-mtu".
	Extensions(context.Context) ([]string, error)
}

// Writer changes what Neutron has. A request that fails with ErrUnavailable
// may have been carried out all the same; look before trying again.
type Writer interface {
	// CreateNetwork makes a network. Neutron allows any number of networks of one
	// name: look first.
	CreateNetwork(context.Context, NewNetwork) (Network, error)
	// UpdateNetwork changes a network. It fails with ErrConflict where the network
	// no longer has the revision of the update.
	UpdateNetwork(ctx context.Context, id string, update NetworkUpdate) (Network, error)
	// DeleteNetwork takes a network away, and all subnets on it. It fails with
	// ErrInUse while a port is on it, with ErrConflict where the network no
	// longer has the revision given (somebody else changed it, or put a subnet
	// on it), and with ErrNotFound where it has gone.
	DeleteNetwork(ctx context.Context, id string, revision int) error

	// CreateSubnet makes a subnet.
	CreateSubnet(context.Context, NewSubnet) (Subnet, error)
	// UpdateSubnet changes a subnet. It fails with ErrConflict where the subnet no
	// longer has the revision of the update. Neutron takes another gateway only
	// together with allocation pools that leave it out.
	UpdateSubnet(ctx context.Context, id string, update SubnetUpdate) (Subnet, error)
	// DeleteSubnet takes a subnet away. It fails as DeleteNetwork does. The errors
	// of both name the ports, or some of them.
	DeleteSubnet(ctx context.Context, id string, revision int) error
}

// Tagger changes the tags of a network one by one, so that those that others
// set at the same time are not lost. Neutron guards that with no revision; the
// network gets another one.
type Tagger interface {
	// AddNetworkTag puts a tag on a network, if it is not there yet.
	AddNetworkTag(ctx context.Context, id, tag string) error
	// RemoveNetworkTag takes a tag away, if it is there. It fails with ErrNotFound
	// where the network has gone.
	RemoveNetworkTag(ctx context.Context, id, tag string) error
}

// The extensions of Neutron's API that some attributes need.
const (
	ExtensionMTU          = "net-mtu-writable"
	ExtensionPortSecurity = "port-security"
	ExtensionDNS          = "dns-integration"
	ExtensionTags         = "standard-attr-tag"
	ExtensionSubnetPools  = "subnet_allocation"
)

// Network is a Neutron network.
type Network struct {
	ID          string
	Name        string
	Description string
	// NetworkSettings are all there; one is nil where the cloud does not have it.
	NetworkSettings
	// SubnetIDs are the subnets on the network, ours and others', in no order.
	SubnetIDs []string
	// Tags are the network's tags, ours and others'.
	Tags []string
	// CreatedAt is when Neutron made the network, by its own clock, to the
	// second; the zero Time where the cloud does not tell.
	CreatedAt time.Time
	// Revision grows with every change of the network, and when a subnet is
	// made on it.
	Revision int
}

// NetworkSettings are what can be changed of a network at any time. In a
// request, what is nil is left to Neutron in a new network, and as it is in an
// update.
type NetworkSettings struct {
	AdminStateUp *bool
	// PortSecurity is the default of the ports on the network. It needs
	// ExtensionPortSecurity.
	PortSecurity *bool
	// MTU is in bytes. 0, in a request, is the largest one that Neutron allows. It
	// needs ExtensionMTU.
	MTU *int
	// DNSDomain ends with a dot, or is empty for none. It needs ExtensionDNS.
	DNSDomain *string
}

// NewNetwork is a network to be made.
type NewNetwork struct {
	Name, Description string
	NetworkSettings
}

// NetworkUpdate is what to change of a network.
type NetworkUpdate struct {
	// Name and Description are left as they are where they are empty.
	Name, Description string
	NetworkSettings
	// Revision is the one that the network must still have.
	Revision int
}

// Subnet is a Neutron subnet. Its IP version is that of its CIDR.
type Subnet struct {
	ID          string
	NetworkID   string
	Name        string
	Description string
	// CIDR has no host bits: Neutron drops them.
	CIDR netip.Prefix
	// SubnetPoolID is the subnet pool that the CIDR is from; empty where it is from
	// none.
	SubnetPoolID string
	// Gateway is the zero Addr where the subnet has none.
	Gateway netip.Addr
	// Pools are the ranges out of which Neutron gives addresses to ports.
	Pools []Pool
	// DHCP reports whether ports get their addresses by DHCP.
	DHCP bool
	// Nameservers are in their order, HostRoutes in none.
	Nameservers []netip.Addr
	HostRoutes  []HostRoute
	// AddressMode and RAMode are those of IPv6, such as "slaac"; empty for none.
	AddressMode, RAMode string
	// CreatedAt is when Neutron made the subnet, by its own clock, to the
	// second; the zero Time where the cloud does not tell.
	CreatedAt time.Time
	// Revision grows with every change of the subnet. It begins with 0.
	Revision int
}

// SubnetSettings are what can be changed of a subnet at any time. What is nil
// is left to Neutron in a new subnet, and as it is in an update.
type SubnetSettings struct {
	// Gateway is the zero Addr for none. Where it is left to Neutron, it is the
	// first address for IPv4 (10.0.0.1), and for IPv6 the network address itself
	// (fd00::).
	Gateway *netip.Addr
	// Pools, left to Neutron, are all addresses of hosts but the gateway.
	Pools       []Pool
	DHCP        *bool // left to Neutron, true
	Nameservers *[]netip.Addr
	HostRoutes  *[]HostRoute
}

// NewSubnet is a subnet to be made on the network NetworkID.
type NewSubnet struct {
	NetworkID         string
	Name, Description string
	// CIDR is the zero Prefix where FromPool is set.
	CIDR netip.Prefix
	// FromPool has Neutron hand out the CIDR.
	FromPool *FromPool
	// AddressMode and RAMode are those of IPv6, or empty. They cannot be changed
	// later.
	AddressMode, RAMode string
	SubnetSettings
}

// FromPool asks for a range out of a subnet pool. Neutron then gives the subnet a
// gateway, the first address of a host, whatever the request says of it.
type FromPool struct {
	SubnetPoolID string
	IPVersion    int // that of the subnet pool: 4 or 6
	PrefixLength int // 0 for the default of the subnet pool
}

// SubnetUpdate is what to change of a subnet.
type SubnetUpdate struct {
	// Name and Description are left as they are where they are empty.
	Name, Description string
	SubnetSettings
	// Revision is the one that the subnet must still have.
	Revision int
}

// SubnetPool is a subnet pool, out of which Neutron hands out ranges.
type SubnetPool struct {
	ID, Name  string
	IPVersion int // 4 or 6
	// MinPrefixLength and MaxPrefixLength bound what it hands out; 0 where it does
	// not say.
	MinPrefixLength, MaxPrefixLength int
}

// HostRoute is a route that hosts are told of.
type HostRoute struct {
	Destination netip.Prefix
	NextHop     netip.Addr
}

// Pool is a range of addresses, both ends included.
type Pool struct {
	Start, End netip.Addr
}

// NetworkFilter selects networks: those that match every field that is set.
// The zero value selects all that the project can see.
type NetworkFilter struct {
	ID string
	// Descriptions are those of which a network has one, as a whole and not as a
	// part of it.
	Descriptions []string
}

// SubnetFilter selects subnets: those that match every field that is set.
// The zero value selects all that the project can see.
type SubnetFilter struct {
	NetworkID   string
	Description string // as a whole, not a part of it
}

// SubnetPoolFilter selects subnet pools: those that match every field that is
// set.
type SubnetPoolFilter struct {
	ID   string
	Name string // as a whole
}

// Package neutron defines what the controller needs of OpenStack Neutron: the
// values that it reads and writes, the requests that it sends, and the classes of
// errors that it can act on. The package contains no HTTP: package openstack is a
// client for a server, and package neutrontest contains the tests that every client
// and every server must pass.
package neutron

import (
	"context"
	"net/netip"
	"time"
)

// Client is a connection to one Neutron, as one project.
//
// Every method sends one request (a list may take several pages), ends with its
// context, and is safe for concurrent use. Every error is an *Error.
type Client interface {
	Reader
	Writer
	Tagger
	RouterReader
	RouterWriter
	// Cloud returns the identity of the cloud that requests go to: its region and the
	// project, such as RegionOne/4f1c…. It survives renamed endpoints and changed
	// credentials, and does not change as long as the Client exists: requests fail
	// rather than go to another cloud. Cloud sends a request at most once.
	Cloud(context.Context) (string, error)
}

// Reader reads, and changes nothing.
//
// A list that was not read completely is an error: an empty result means that
// nothing exists, never that it is unknown. A list omits only objects with
// unusable values that certainly do not match its filter. A list of everything
// omits those without an owner marker.
type Reader interface {
	// Networks lists the networks that match.
	Networks(context.Context, NetworkFilter) ([]Network, error)
	// Subnets lists the subnets that match.
	Subnets(context.Context, SubnetFilter) ([]Subnet, error)
	// SubnetPools lists the subnet pools that match, including those that other
	// projects share with this one.
	SubnetPools(context.Context, SubnetPoolFilter) ([]SubnetPool, error)
	// Extensions lists the aliases of the API extensions that this Neutron has, such
	// as "net-mtu".
	Extensions(context.Context) ([]string, error)
}

// PageReader is a Reader that can pass on what it lists page by page, so that the list
// of a large project is never in memory as a whole. If a page fails, visit was called
// for a part of the list: it proves nothing. An object may be visited twice; then the
// last one counts.
type PageReader interface {
	// EachNetwork calls visit for all networks, except for those that isKnown reports to
	// be in memory already.
	EachNetwork(ctx context.Context, isKnown func(Digest) bool, visit func(Network, Digest)) error
	// EachSubnet calls visit for all subnets, except for those that isKnown reports to be
	// in memory already.
	EachSubnet(ctx context.Context, isKnown func(Digest) bool, visit func(Subnet, Digest)) error
}

// QuotaReader is a Client that knows how much of its quotas the project uses.
type QuotaReader interface {
	// Quotas returns those of kinds: network and subnet. It may return none.
	Quotas(context.Context) (map[string]Quota, error)
}

// Quota is how many objects of a kind a project may have, and how many it has. The Limit is
// negative if there is none.
type Quota struct{ Limit, Used int }

// Digest is a hash of an object as Neutron returned it, as text. It has 64 bits, so
// objects with the same Digest are equal. It is valid in this process only.
type Digest uint64

// Writer changes networks and subnets. A request that fails with ErrUnavailable may
// have been executed: look before you retry.
type Writer interface {
	// CreateNetwork creates a network. Neutron allows several networks with the same
	// name: look first.
	CreateNetwork(context.Context, NewNetwork) (Network, error)
	// UpdateNetwork changes a network. It fails with ErrConflict if the network no
	// longer has the revision of the update.
	UpdateNetwork(ctx context.Context, id string, update NetworkUpdate) (Network, error)
	// DeleteNetwork deletes a network and all its subnets. It fails with
	// ErrNotFound if the network does not exist, and with ErrInUse while a port
	// uses it. It fails with ErrConflict if the network no longer has the revision:
	// another client has changed it, or created a subnet on it.
	DeleteNetwork(ctx context.Context, id string, revision int) error

	// CreateSubnet creates a subnet.
	CreateSubnet(context.Context, NewSubnet) (Subnet, error)
	// UpdateSubnet changes a subnet. It fails with ErrConflict if the subnet no longer
	// has the revision of the update. Neutron accepts another gateway only together
	// with allocation pools that do not contain it.
	UpdateSubnet(ctx context.Context, id string, update SubnetUpdate) (Subnet, error)
	// DeleteSubnet deletes a subnet. It fails like DeleteNetwork. The errors of both
	// name the ports, or some of them.
	DeleteSubnet(ctx context.Context, id string, revision int) error
}

// Tagger changes the tags of a network one by one, so that tags that others set at
// the same time are not lost. Neutron does not check a revision for tags, but
// increases that of the network.
type Tagger interface {
	// AddNetworkTag adds a tag to a network, if it does not have the tag.
	AddNetworkTag(ctx context.Context, id, tag string) error
	// RemoveNetworkTag removes a tag, if the network has it. It fails with ErrNotFound
	// if the network does not exist.
	RemoveNetworkTag(ctx context.Context, id, tag string) error
}

// RouterReader reads how subnets are attached to routers.
type RouterReader interface {
	// Routers lists the routers of the project that match. Routers of other projects
	// are not listed, whatever the credentials permit.
	Routers(context.Context, RouterFilter) ([]Router, error)
	// RouterInterfaces lists the attachments of the subnets on a network to routers,
	// those of other projects included. With an empty ID, it lists those of the
	// project's routers.
	RouterInterfaces(ctx context.Context, networkID string) ([]RouterInterface, error)
	// Ports lists the ports on a network that keep it and its subnets from being
	// deleted, other than those of routers. (Neutron deletes the ports of DHCP itself.)
	Ports(ctx context.Context, networkID string) ([]Port, error)
}

// RouterWriter attaches subnets to routers. A router is shared by many networks, so these
// requests do not carry its revision: Neutron itself rejects a second attachment, and
// a subnet whose gateway address a port has.
type RouterWriter interface {
	// AddRouterInterface attaches a subnet to a router, which gets the gateway address
	// of the subnet. It fails with ErrInUse if another port has the address, and with
	// ErrConflict if the subnet is attached to this router already. It fails with
	// ErrNotFound if one of the two does not exist.
	AddRouterInterface(context.Context, RouterInterface) (RouterInterface, error)
	// RemoveRouterInterface detaches a subnet from a router. It fails with ErrNotFound
	// if it is not attached, and with ErrInUse while a floating IP address or a route of
	// the router requires it.
	RemoveRouterInterface(context.Context, RouterInterface) error
}

// The API extensions that some attributes require.
const (
	ExtensionMTU          = "net-mtu-writable"
	ExtensionPortSecurity = "port-security"
	ExtensionDNS          = "dns-integration"
	ExtensionTags         = "standard-attr-tag"
	ExtensionSubnetPools  = "subnet_allocation"
	ExtensionRouter       = "router"
	// ExtensionIfMatch promises that a request with a revision is rejected if the
	// object has another one. Without it, Neutron ignores the revision.
	ExtensionIfMatch = "revision-if-match"
)

// Network is a Neutron network.
type Network struct {
	ID          string
	Name        string
	Description string
	// NetworkSettings are complete: nil means that the cloud lacks the extension.
	NetworkSettings
	// SubnetIDs are all subnets of the network, in no order.
	SubnetIDs []string
	// Tags are all tags of the network.
	Tags []string
	// CreatedAt is when Neutron created the network, by Neutron's clock, with a
	// precision of a second. It is the zero Time if the cloud does not return it.
	CreatedAt time.Time
	// Revision increases with every change of the network, and when a subnet is
	// created on it.
	Revision int
}

// NetworkSettings can be changed at any time. In a request, nil is Neutron's default
// for a new network, and no change in an update.
type NetworkSettings struct {
	AdminStateUp *bool
	// PortSecurity is the default of the network's ports. It requires
	// ExtensionPortSecurity.
	PortSecurity *bool
	// MTU is in bytes. In a request, 0 is the largest that Neutron allows. It requires
	// ExtensionMTU.
	MTU *int
	// DNSDomain ends with a dot, or is empty for none. It requires ExtensionDNS.
	DNSDomain *string
}

// NewNetwork is a network to create.
type NewNetwork struct {
	Name, Description string
	NetworkSettings
}

// NetworkUpdate is a change of a network.
type NetworkUpdate struct {
	// Name and Description do not change if they are empty.
	Name, Description string
	NetworkSettings
	// Revision is the one that the network must have.
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
	// SubnetPoolID is the subnet pool that allocated the CIDR, or empty.
	SubnetPoolID string
	// Gateway is the zero Addr if the subnet has none.
	Gateway netip.Addr
	// Pools are the ranges from which Neutron assigns addresses to ports.
	Pools []Pool
	// DHCP is true if ports get their addresses by DHCP.
	DHCP bool
	// The order of Nameservers matters, that of HostRoutes does not.
	Nameservers []netip.Addr
	HostRoutes  []HostRoute
	// AddressMode and RAMode are the IPv6 modes, such as "slaac", or empty.
	AddressMode, RAMode string
	// CreatedAt is when Neutron created the subnet: see Network.
	CreatedAt time.Time
	// Revision increases with every change of the subnet. It starts with 0.
	Revision int
}

// SubnetSettings can be changed at any time. In a request, nil is Neutron's default
// for a new subnet, and no change in an update.
type SubnetSettings struct {
	// Gateway is the zero Addr for none. Neutron's default is the first address for
	// IPv4 (10.0.0.1), and the network address itself for IPv6 (fd00::).
	Gateway *netip.Addr
	// Pools default to all host addresses except the gateway.
	Pools       []Pool
	DHCP        *bool // defaults to true
	Nameservers *[]netip.Addr
	HostRoutes  *[]HostRoute
}

// NewSubnet is a subnet to create on a network.
type NewSubnet struct {
	NetworkID         string
	Name, Description string
	// CIDR is the zero Prefix if FromPool is set.
	CIDR netip.Prefix
	// FromPool lets Neutron allocate the CIDR.
	FromPool *FromPool
	// AddressMode and RAMode are the IPv6 modes, or empty. They are immutable.
	AddressMode, RAMode string
	SubnetSettings
}

// FromPool requests a range from a subnet pool. Neutron then sets the gateway to the
// first host address, whatever the request contains.
type FromPool struct {
	SubnetPoolID string
	IPVersion    int // of the subnet pool: 4 or 6
	PrefixLength int // 0 for the default of the subnet pool
}

// SubnetUpdate is a change of a subnet.
type SubnetUpdate struct {
	// Name and Description do not change if they are empty.
	Name, Description string
	SubnetSettings
	// Revision is the one that the subnet must have.
	Revision int
}

// SubnetPool is a subnet pool, from which Neutron allocates ranges.
type SubnetPool struct {
	ID, Name  string
	IPVersion int // 4 or 6
	// MinPrefixLength and MaxPrefixLength bound the ranges, or are 0.
	MinPrefixLength, MaxPrefixLength int
}

// HostRoute is a route that DHCP announces to hosts.
type HostRoute struct {
	Destination netip.Prefix `json:"destination"`
	NextHop     netip.Addr   `json:"nexthop"`
}

// Pool is a range of addresses, including both ends.
type Pool struct {
	Start netip.Addr `json:"start"`
	End   netip.Addr `json:"end"`
}

// NetworkFilter selects the networks of the project that match every field that is
// set. Those that other projects share with it are never selected.
type NetworkFilter struct {
	ID   string
	Name string // the whole one
}

// SubnetFilter selects the subnets on a network, or all subnets of the project if it is
// empty.
type SubnetFilter struct{ NetworkID string }

// SubnetPoolFilter selects the subnet pools that match every field that is set.
type SubnetPoolFilter struct {
	ID   string
	Name string // the whole one
}

// Router is a Neutron router.
type Router struct{ ID, Name string }

// RouterFilter selects the routers that match every field that is set.
type RouterFilter struct {
	ID   string
	Name string // the whole one
}

// RouterInterface is the attachment of a subnet to a router. In Neutron, it is an
// address of a port that belongs to the router.
type RouterInterface struct {
	RouterID, NetworkID, SubnetID string
	// Address is the address of the router in the subnet. AddRouterInterface requests
	// none: it is the gateway of the subnet.
	Address netip.Addr
	// PortID is empty in a request.
	PortID string
}

// Port is a port that uses a network.
type Port struct {
	ID string
	// DeviceOwner is what uses the port, such as compute:nova, or empty.
	DeviceOwner string
	SubnetIDs   []string
}

// String returns the ID, and what uses the port.
func (p Port) String() string {
	if p.DeviceOwner == "" {
		return p.ID
	}
	return p.ID + " (" + p.DeviceOwner + ")"
}

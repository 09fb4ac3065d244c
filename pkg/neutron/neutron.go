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
}

// Writer changes what Neutron has. A request that fails with ErrUnavailable
// may have been carried out all the same; look before trying again.
type Writer interface {
	// CreateNetwork makes a network with the name and description given.
	// Neutron allows any number of networks of one name: look first.
	CreateNetwork(context.Context, Network) (Network, error)
	// UpdateNetwork gives a network another name and description. It fails with
	// ErrConflict where the network no longer has the revision of the update.
	UpdateNetwork(ctx context.Context, id string, update NetworkUpdate) (Network, error)
	// DeleteNetwork takes a network away, and all subnets on it. It fails with
	// ErrInUse while a port is on it, with ErrConflict where the network no
	// longer has the revision given (somebody else changed it, or put a subnet
	// on it), and with ErrNotFound where it has gone.
	DeleteNetwork(ctx context.Context, id string, revision int) error

	// CreateSubnet makes a subnet on the network NetworkID.
	CreateSubnet(context.Context, Subnet) (Subnet, error)
	// UpdateSubnet gives a subnet another gateway, and with it the allocation
	// pools that leave room for it, and another name and description. It fails with ErrConflict where the subnet
	// no longer has the revision of the update.
	UpdateSubnet(ctx context.Context, id string, update SubnetUpdate) (Subnet, error)
	// DeleteSubnet takes a subnet away. It fails as DeleteNetwork does. The errors
	// of both name the ports, or some of them.
	DeleteSubnet(ctx context.Context, id string, revision int) error
}

// Network is a Neutron network.
type Network struct {
	ID          string
	Name        string
	Description string
	// SubnetIDs are the subnets on the network, ours and others', in no order.
	SubnetIDs []string
	// Tags are the network's tags. We set none.
	Tags []string
	// CreatedAt is when Neutron made the network, by its own clock, to the
	// second; the zero Time where the cloud does not tell.
	CreatedAt time.Time
	// Revision grows with every change of the network, and when a subnet is
	// made on it.
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
	// Gateway is the zero Addr where the subnet has none. In a request to
	// create, the zero Addr leaves the choice to Neutron: for IPv4 the first
	// address (10.0.0.1), for IPv6 the network address itself (fd00::).
	Gateway netip.Addr
	// Pools are the ranges out of which Neutron gives addresses to ports. In a
	// request to create, none means all but the gateway.
	Pools []Pool
	// CreatedAt is when Neutron made the subnet, by its own clock, to the
	// second; the zero Time where the cloud does not tell.
	CreatedAt time.Time
	// Revision grows with every change of the subnet. It begins with 0.
	Revision int
}

// Pool is a range of addresses, both ends included.
type Pool struct {
	Start, End netip.Addr
}

// NetworkUpdate is what can be changed of a network.
type NetworkUpdate struct {
	Name, Description string
	// Revision is the one that the network must still have.
	Revision int
}

// SubnetUpdate is what can be changed of a subnet in place.
type SubnetUpdate struct {
	// Name and Description are left as they are where they are empty.
	Name, Description string
	// Gateway is the one to have from now on; with the zero Addr, none.
	Gateway netip.Addr
	// Pools replace those there are; none leaves them as they are.
	Pools []Pool
	// Revision is the one that the subnet must still have.
	Revision int
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

package neutron

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
)

// Snapshot is a Client that answers from one complete list of Neutron's networks and
// subnets, and rejects every request that would change something. Rarely used lists
// are requested when they are needed.
type Snapshot struct {
	Reader
	readOnly
	routing Routing
	content *content
	cloud   string
}

// NewSnapshot lists Neutron's networks and subnets, and reads the identity of the cloud.
func NewSnapshot(ctx context.Context, client Client) (*Snapshot, error) {
	cloud, err := client.Cloud(ctx)
	if err != nil {
		return nil, err
	}
	listed, err := listContent(ctx, client, &content{})
	if err != nil {
		return nil, err
	}
	return &Snapshot{Reader: client, routing: client, content: listed, cloud: cloud}, nil
}

// Cloud implements Client, without a request.
func (s *Snapshot) Cloud(context.Context) (string, error) { return s.cloud, nil }

// Networks implements Reader, without a request.
func (s *Snapshot) Networks(_ context.Context, filter NetworkFilter) (found []Network, _ error) {
	for _, network := range s.content.networks {
		if (filter.ID == "" || network.ID == filter.ID) && (filter.Name == "" || network.Name == filter.Name) {
			found = append(found, *network)
		}
	}
	slices.SortFunc(found, func(a, b Network) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

// Subnets implements Reader, without a request.
func (s *Snapshot) Subnets(_ context.Context, filter SubnetFilter) (found []Subnet, _ error) {
	subnets := slices.Values(s.content.on[filter.NetworkID])
	if filter.NetworkID == "" {
		subnets = maps.Values(s.content.subnets)
	}
	for subnet := range subnets {
		if filter.Description == "" || subnet.Description == filter.Description {
			found = append(found, *subnet)
		}
	}
	slices.SortFunc(found, func(a, b Subnet) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

// Routers implements Routing.
func (s *Snapshot) Routers(ctx context.Context, filter RouterFilter) ([]Router, error) {
	return s.routing.Routers(ctx, filter)
}

// RouterInterfaces implements Routing.
func (s *Snapshot) RouterInterfaces(ctx context.Context, networkID string) ([]RouterInterface, error) {
	return s.routing.RouterInterfaces(ctx, networkID)
}

// Ports implements Routing.
func (s *Snapshot) Ports(ctx context.Context, networkID string) ([]Port, error) {
	return s.routing.Ports(ctx, networkID)
}

// Marked is a network with an owner marker.
type Marked struct {
	Network
	Owner Owner
	// Retained is true if it is the marker of a retained network.
	Retained bool
	// Subnets are those on the network, sorted by ID.
	Subnets []Subnet
}

// Marked returns the networks with an owner marker of a cluster, or one of a retained
// network, sorted by owner and ID.
func (s *Snapshot) Marked(cluster string) (all []Marked) {
	for _, network := range s.content.networks {
		owner, ok := ownerOf(network.Description)
		if !ok || owner.Cluster != cluster {
			continue
		}
		subnets, _ := s.Subnets(context.Background(), SubnetFilter{NetworkID: network.ID}) // it does not fail
		all = append(all, Marked{Network: *network, Owner: owner, Retained: owner.HasRetainedMarker(network.Description), Subnets: subnets})
	}
	slices.SortFunc(all, func(a, b Marked) int {
		return cmp.Or(cmp.Compare(a.Owner.Namespace, b.Owner.Namespace), cmp.Compare(a.Owner.Name, b.Owner.Name), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// readOnly rejects every request that would change something.
type readOnly struct{}

func reject(op, id string) error {
	return &Error{Op: fmt.Sprintf("%s %s", op, id), Class: ErrRefused, Message: "a snapshot of Neutron's state cannot be changed"}
}

// CreateNetwork implements Writer.
func (readOnly) CreateNetwork(_ context.Context, network NewNetwork) (Network, error) {
	return Network{}, reject("create network", network.Name)
}

// UpdateNetwork implements Writer.
func (readOnly) UpdateNetwork(_ context.Context, id string, _ NetworkUpdate) (Network, error) {
	return Network{}, reject("update network", id)
}

// DeleteNetwork implements Writer.
func (readOnly) DeleteNetwork(_ context.Context, id string, _ int) error {
	return reject("delete network", id)
}

// CreateSubnet implements Writer.
func (readOnly) CreateSubnet(_ context.Context, subnet NewSubnet) (Subnet, error) {
	return Subnet{}, reject("create subnet", subnet.Name)
}

// UpdateSubnet implements Writer.
func (readOnly) UpdateSubnet(_ context.Context, id string, _ SubnetUpdate) (Subnet, error) {
	return Subnet{}, reject("update subnet", id)
}

// DeleteSubnet implements Writer.
func (readOnly) DeleteSubnet(_ context.Context, id string, _ int) error {
	return reject("delete subnet", id)
}

// AddNetworkTag implements Tagger.
func (readOnly) AddNetworkTag(_ context.Context, id, _ string) error {
	return reject("add tag to network", id)
}

// RemoveNetworkTag implements Tagger.
func (readOnly) RemoveNetworkTag(_ context.Context, id, _ string) error {
	return reject("remove tag from network", id)
}

// AddRouterInterface implements Routing.
func (readOnly) AddRouterInterface(_ context.Context, requested RouterInterface) (RouterInterface, error) {
	return RouterInterface{}, reject("attach subnet", requested.SubnetID)
}

// RemoveRouterInterface implements Routing.
func (readOnly) RemoveRouterInterface(_ context.Context, attached RouterInterface) error {
	return reject("detach subnet", attached.SubnetID)
}

package neutron

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// Snapshot is a Client that responds from one complete list of Neutron's networks and
// subnets. Rarely used lists are requested when they are needed. It has no connection for
// requests that would change something: they panic.
type Snapshot struct {
	Reader
	RouterReader
	writer  // nil
	content *content
	cloud   string
}

// NewSnapshot lists Neutron's networks and subnets, and reads the identity of the cloud.
func NewSnapshot(ctx context.Context, client Client) (*Snapshot, error) {
	cloud, err := client.Cloud(ctx)
	if err != nil {
		return nil, err
	}
	listed, err := listContent(ctx, client, nil)
	if err != nil {
		return nil, err
	}
	return &Snapshot{Reader: client, RouterReader: client, content: listed, cloud: cloud}, nil
}

// Cloud returns the identity of the cloud, without a request.
func (s *Snapshot) Cloud(context.Context) (string, error) { return s.cloud, nil }

// Networks returns the networks that match, without a request.
func (s *Snapshot) Networks(_ context.Context, filter NetworkFilter) (found []Network, _ error) {
	for _, network := range s.content.networks {
		if (filter.ID == "" || network.ID == filter.ID) && (filter.Name == "" || network.Name == filter.Name) {
			found = append(found, *network)
		}
	}
	slices.SortFunc(found, func(a, b Network) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

// Subnets returns the subnets that match, without a request.
func (s *Snapshot) Subnets(_ context.Context, filter SubnetFilter) (found []Subnet, _ error) {
	subnets := slices.Values(s.content.on[filter.NetworkID])
	if filter.NetworkID == "" {
		subnets = maps.Values(s.content.subnets)
	}
	for subnet := range subnets {
		found = append(found, *subnet)
	}
	slices.SortFunc(found, func(a, b Subnet) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
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
		all = append(all, Marked{Network: *network, Owner: owner, Retained: owner.HasRetainedMarker(network.Description),
			Subnets: subnets})
	}
	slices.SortFunc(all, func(a, b Marked) int {
		return cmp.Or(cmp.Compare(a.Owner.Namespace, b.Owner.Namespace), cmp.Compare(a.Owner.Name, b.Owner.Name),
			cmp.Compare(a.ID, b.ID))
	})
	return all
}

type writer interface {
	Writer
	Tagger
	RouterWriter
}

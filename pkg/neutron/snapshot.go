package neutron

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"
)

// NewSnapshot lists Neutron once, and returns a Cache that looks for networks and subnets in
// that list, also where another Cache sends a request. Rarely used lists are requested when
// they are needed. It has no connection for requests that would change something: they panic.
func NewSnapshot(ctx context.Context, client Client) (*Cache, error) {
	cloud, err := client.Cloud(ctx)
	if err != nil {
		return nil, err
	}
	listed, err := listContent(ctx, client, nil)
	if err != nil {
		return nil, err
	}
	c := NewCache(snapshot{Reader: client, RouterReader: client, listed: listed, cloud: cloud}, time.Now)
	_, err = c.Refresh(ctx)
	return c, err
}

// snapshot is a Client that responds from one complete list of networks and subnets.
type snapshot struct {
	Reader
	RouterReader
	writer // nil
	listed *content
	cloud  string
}

type writer interface {
	Writer
	Tagger
	RouterWriter
}

func (s snapshot) Cloud(context.Context) (string, error) { return s.cloud, nil }

func (s snapshot) Networks(_ context.Context, filter NetworkFilter) (found []Network, _ error) {
	for _, network := range s.listed.networks {
		if (filter.ID == "" || network.ID == filter.ID) && (filter.Name == "" || network.Name == filter.Name) {
			found = append(found, *network)
		}
	}
	slices.SortFunc(found, func(a, b Network) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

func (s snapshot) Subnets(_ context.Context, filter SubnetFilter) (found []Subnet, _ error) {
	subnets := slices.Values(s.listed.on[filter.NetworkID])
	if filter.NetworkID == "" {
		subnets = maps.Values(s.listed.subnets)
	}
	for subnet := range subnets {
		found = append(found, *subnet)
	}
	slices.SortFunc(found, func(a, b Subnet) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

package openstack

import (
	"context"
	"slices"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Networks implements neutron.Reader.
func (c *client) Networks(ctx context.Context, filter neutron.NetworkFilter) ([]neutron.Network, error) {
	query, err := networks.ListOpts{ID: filter.ID, Description: filter.Description}.ToNetworkListQuery()
	if err != nil {
		return nil, c.failed(ctx, listNetworks, err)
	}
	found, err := list(ctx, c.service, "networks", query, (*networkJSON).value, func(n neutron.Network) string { return n.ID })
	if err != nil {
		return nil, c.failed(ctx, listNetworks, err)
	}
	// An old server may ignore a filter that it does not know.
	return slices.DeleteFunc(found, func(n neutron.Network) bool {
		return filter.ID != "" && n.ID != filter.ID || filter.Description != "" && n.Description != filter.Description
	}), nil
}

// CreateNetwork implements neutron.Writer.
func (c *client) CreateNetwork(ctx context.Context, network neutron.Network) (neutron.Network, error) {
	const op = "create network"
	result := networks.Create(ctx, c.service, networks.CreateOpts{Name: network.Name, Description: network.Description})
	var answer struct {
		Network *networkJSON `json:"network"`
	}
	if err := result.Result.ExtractInto(&answer); err != nil {
		return neutron.Network{}, c.failed(ctx, op, err)
	}
	created, err := answer.Network.value()
	return created, c.failed(ctx, op, err)
}

// DeleteNetwork implements neutron.Writer.
func (c *client) DeleteNetwork(ctx context.Context, id string, revision int) error {
	const op = "delete network"
	if err := checkID(op, id); err != nil {
		return err
	}
	return c.failed(ctx, op, networks.Delete(ctx, c.guarded(revision), id).ExtractErr())
}

// networkJSON is what we read of a network. A nil pointer is a key that was not
// in the answer.
type networkJSON struct {
	ID          *string   `json:"id"`
	Name        *string   `json:"name"`
	Description *string   `json:"description"`
	Subnets     *[]string `json:"subnets"`
	Revision    *int      `json:"revision_number"`
}

func (n *networkJSON) value() (neutron.Network, error) {
	if n == nil {
		return neutron.Network{}, unusable("it has no network")
	}
	if n.ID == nil || *n.ID == "" || n.Name == nil || n.Description == nil || n.Subnets == nil || n.Revision == nil {
		return neutron.Network{}, unusable("it has a network without id, name, description, subnets or revision_number")
	}
	return neutron.Network{
		ID:          *n.ID,
		Name:        *n.Name,
		Description: *n.Description,
		SubnetIDs:   *n.Subnets,
		Revision:    *n.Revision,
	}, nil
}

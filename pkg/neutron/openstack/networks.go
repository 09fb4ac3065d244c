package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

var networkKind = kind[networkJSON, neutron.Network]{
	name: "network", plural: "networks", value: (*networkJSON).value,
	required: "id, name, description, subnets, admin_state_up or revision_number",
}

func (c *client) Networks(ctx context.Context, filter neutron.NetworkFilter) ([]neutron.Network, error) {
	return list(ctx, c, networkKind, selecting("id", filter.ID, "name", filter.Name))
}

func (c *client) CreateNetwork(ctx context.Context, network neutron.NewNetwork) (neutron.Network, error) {
	return writeObject(ctx, c, networkKind, request{
		op: "create network", method: http.MethodPost, path: []string{"networks"},
		body: networkOpts{&network.Name, &network.Description, networkSettingsJSON(network.NetworkSettings)},
	})
}

func (c *client) UpdateNetwork(ctx context.Context, id string, update neutron.NetworkUpdate) (neutron.Network, error) {
	opts := networkOpts{networkSettingsJSON: networkSettingsJSON(update.NetworkSettings)}
	if update.Name != "" {
		opts.Name = &update.Name
	}
	if update.Description != "" {
		opts.Description = &update.Description
	}
	network, err := c.putNetwork(ctx, id, update.Revision, opts)
	if update.MTU == nil || *update.MTU != 0 || typeOf(err) != "NetworkMTUSubnetConflict" {
		return network, err
	}
	// Neutron 26 does not accept 0 for a network with a subnet. Nor does it publish the
	// largest MTU, but its error for a larger one contains it.
	opts.MTU = new(math.MaxUint16)
	network, tooLarge := c.putNetwork(ctx, id, update.Revision, opts)
	if tooLarge == nil {
		return network, nil // this cloud has no limit
	}
	largest := largestMTU.FindStringSubmatch(tooLarge.Error())
	if largest == nil {
		return neutron.Network{}, err
	}
	*opts.MTU, _ = strconv.Atoi(largest[1]) // the expression permits only short numbers
	return c.putNetwork(ctx, id, update.Revision, opts)
}

func (c *client) putNetwork(ctx context.Context, id string, revision int, opts networkOpts) (neutron.Network, error) {
	return writeObject(ctx, c, networkKind, request{
		op: "update network", method: http.MethodPut, path: []string{"networks", id}, revision: &revision, body: opts,
	})
}

// largestMTU finds the limit in Neutron's error for an MTU that is too large.
var largestMTU = regexp.MustCompile(`maximum is ([0-9]{2,5})\b`)

// typeOf returns Neutron's name of a failure, or an empty string.
func typeOf(err error) string {
	var failure *neutron.Error
	if !errors.As(err, &failure) {
		return ""
	}
	return failure.Type
}

func (c *client) DeleteNetwork(ctx context.Context, id string, revision int) error {
	err := c.write(ctx, request{op: "delete network", method: http.MethodDelete, path: []string{"networks", id},
		revision: &revision}, nil)
	if failure := (*neutron.Error)(nil); errors.As(err, &failure) && errors.Is(failure, neutron.ErrInUse) {
		if ids := portIDs.FindStringSubmatch(failure.Message); ids != nil {
			failure.Ports = strings.Split(ids[1], ",")
		}
	}
	return err
}

// portIDs finds the ports in Neutron's error NetworkInUse.
var portIDs = regexp.MustCompile(`ports is: ([0-9a-f-]{36}(?:,[0-9a-f-]{36})*)`)

// networkOpts is a network in a request. (gophercloud has one type per extension,
// to be nested.)
type networkOpts struct {
	Name        *string `json:"name,omitempty"`
	Description *string `json:"description,omitempty"`
	networkSettingsJSON
}

// networkSettingsJSON holds the settings of a network. In a response, a nil pointer
// is a missing key.
type networkSettingsJSON struct {
	AdminStateUp *bool   `json:"admin_state_up,omitempty"`
	PortSecurity *bool   `json:"port_security_enabled,omitempty"`
	MTU          *int    `json:"mtu,omitempty"`
	DNSDomain    *string `json:"dns_domain,omitempty"`
}

// networkJSON is a network in a response. What is nil or empty is a missing key.
type networkJSON struct {
	ID          string          `json:"id"`
	Name        *string         `json:"name"`
	Description json.RawMessage `json:"description"`
	networkSettingsJSON
	Subnets   *[]string `json:"subnets"`
	Tags      []string  `json:"tags"`
	CreatedAt string    `json:"created_at"`
	Revision  *int      `json:"revision_number"`
}

func (n *networkJSON) value() (neutron.Network, bool) {
	if n.Name == nil || n.Subnets == nil || n.AdminStateUp == nil || n.Revision == nil {
		return neutron.Network{}, false
	}
	description, ok := descriptionOf(n.Description)
	switch {
	case !ok, !isID(n.ID), isTooLong(*n.Name), n.DNSDomain != nil && isTooLong(*n.DNSDomain),
		slices.ContainsFunc(*n.Subnets, isNoID), slices.ContainsFunc(n.Tags, isTooLong), len(n.Tags) > maxTags,
		n.MTU != nil && *n.MTU < 0, *n.Revision < 0:
		return neutron.Network{}, false
	}
	return neutron.Network{
		ID: n.ID, Name: *n.Name, Description: description, NetworkSettings: neutron.NetworkSettings(n.networkSettingsJSON),
		SubnetIDs: *n.Subnets, Tags: n.Tags, CreatedAt: parseTime(n.CreatedAt), Revision: *n.Revision,
	}, true
}

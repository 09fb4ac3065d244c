package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

var networkKind = kind[networkJSON, neutron.Network]{
	name: "network", plural: "networks", value: (*networkJSON).value,
	required: "id, name, description, subnets, admin_state_up or revision_number",
	keys:     func(n neutron.Network) map[string]string { return map[string]string{"id": n.ID, "name": n.Name} },
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
	return writeObject(ctx, c, networkKind, request{
		op: "update network", method: http.MethodPut, path: []string{"networks", id}, revision: &update.Revision, body: opts,
	})
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

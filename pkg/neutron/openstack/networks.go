package openstack

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Networks implements neutron.Reader.
func (c *client) Networks(ctx context.Context, filter neutron.NetworkFilter) ([]neutron.Network, error) {
	query := url.Values{}
	if filter.ID != "" {
		query.Set("id", filter.ID)
	}
	if filter.Name != "" {
		query.Set("name", filter.Name)
	}
	found, err := list(ctx, c, "networks", query, (*networkJSON).value, func(n neutron.Network) string { return n.ID })
	if err != nil {
		return nil, c.failed(ctx, listNetworks, err)
	}
	// An old server may ignore an unknown filter.
	return slices.DeleteFunc(found, func(n neutron.Network) bool {
		return filter.ID != "" && n.ID != filter.ID || filter.Name != "" && n.Name != filter.Name
	}), nil
}

// CreateNetwork implements neutron.Writer.
func (c *client) CreateNetwork(ctx context.Context, network neutron.NewNetwork) (neutron.Network, error) {
	opts := networkOpts{
		Name:                &network.Name,
		Description:         &network.Description,
		networkSettingsJSON: settingsJSON(network.NetworkSettings),
	}
	return c.writeNetwork(ctx, "create network", http.MethodPost, c.service.ServiceURL("networks"), nil, opts)
}

// UpdateNetwork implements neutron.Writer.
func (c *client) UpdateNetwork(ctx context.Context, id string, update neutron.NetworkUpdate) (neutron.Network, error) {
	const op = "update network"
	if err := checkID(op, id); err != nil {
		return neutron.Network{}, err
	}
	opts := networkOpts{networkSettingsJSON: settingsJSON(update.NetworkSettings)}
	if update.Name != "" {
		opts.Name = &update.Name
	}
	if update.Description != "" {
		opts.Description = &update.Description
	}
	return c.writeNetwork(ctx, op, http.MethodPut, c.service.ServiceURL("networks", id), ifMatch(update.Revision), opts)
}

// networkOpts is a network in a request. (gophercloud has one type per extension,
// to be nested.)
type networkOpts struct {
	Name        *string `json:"name,omitempty"`
	Description *string `json:"description,omitempty"`
	networkSettingsJSON
}

// networkSettingsJSON holds the settings of a network. In an answer, a nil pointer
// is a missing key.
type networkSettingsJSON struct {
	AdminStateUp *bool   `json:"admin_state_up,omitempty"`
	PortSecurity *bool   `json:"port_security_enabled,omitempty"`
	MTU          *int    `json:"mtu,omitempty"`
	DNSDomain    *string `json:"dns_domain,omitempty"`
}

func settingsJSON(s neutron.NetworkSettings) networkSettingsJSON {
	return networkSettingsJSON{AdminStateUp: s.AdminStateUp, PortSecurity: s.PortSecurity, MTU: s.MTU, DNSDomain: s.DNSDomain}
}

// DeleteNetwork implements neutron.Writer.
func (c *client) DeleteNetwork(ctx context.Context, id string, revision int) error {
	const op = "delete network"
	if err := checkID(op, id); err != nil {
		return err
	}
	err := c.failed(ctx, op, c.write(ctx, http.MethodDelete, c.service.ServiceURL("networks", id), ifMatch(revision), nil, nil))
	if failure := (*neutron.Error)(nil); errors.As(err, &failure) && errors.Is(failure, neutron.ErrInUse) {
		if ids := portIDs.FindStringSubmatch(failure.Message); ids != nil {
			failure.Ports = strings.Split(ids[1], ",")
		}
	}
	return err
}

// portIDs finds the ports in Neutron's error NetworkInUse.
var portIDs = regexp.MustCompile(`ports is: ([0-9a-f-]{36}(?:,[0-9a-f-]{36})*)`)

// writeNetwork creates or updates a network.
func (c *client) writeNetwork(ctx context.Context, op, method, address string, headers map[string]string, opts networkOpts) (neutron.Network, error) {
	var answer struct {
		Network *networkJSON `json:"network"`
	}
	if err := c.write(ctx, method, address, headers, map[string]networkOpts{"network": opts}, &answer); err != nil {
		return neutron.Network{}, c.failed(ctx, op, err)
	}
	network, err := answer.Network.value()
	return network, c.failed(ctx, op, err)
}

// networkJSON is a network in an answer. A nil pointer is a missing key.
type networkJSON struct {
	ID          *string `json:"id"`
	Name        *string `json:"name"`
	Description text    `json:"description"`
	networkSettingsJSON
	Subnets   *[]string `json:"subnets"`
	Tags      []string  `json:"tags"`
	CreatedAt string    `json:"created_at"`
	Revision  *int      `json:"revision_number"`
}

func (n *networkJSON) value() (neutron.Network, error) {
	if n == nil {
		return neutron.Network{}, unusable("it has no network")
	}
	if n.ID == nil || n.Name == nil || !n.Description.found || n.Subnets == nil || n.AdminStateUp == nil || n.Revision == nil {
		return neutron.Network{}, unusable("it has a network without id, name, description, subnets, admin_state_up or revision_number")
	}
	fields := []field{{"id", *n.ID, isID}, {"name", *n.Name, isText}, {"description", n.Description.value, isText}}
	if n.DNSDomain != nil {
		fields = append(fields, field{"dns_domain", *n.DNSDomain, isText})
	}
	for _, id := range *n.Subnets {
		fields = append(fields, field{"subnet", id, isID})
	}
	for _, tag := range n.Tags {
		fields = append(fields, field{"tag", tag, isText})
	}
	switch err := checkFields("network", fields...); {
	case err != nil:
		return neutron.Network{}, err
	case len(n.Tags) > maxTags:
		return neutron.Network{}, unusable("it has a network with %d tags", len(n.Tags))
	case n.MTU != nil && *n.MTU < 0:
		return neutron.Network{}, unusable("it has a network whose mtu is %d", *n.MTU)
	case *n.Revision < 0:
		return neutron.Network{}, unusable("it has a network whose revision_number is %d", *n.Revision)
	}
	return neutron.Network{
		ID:          *n.ID,
		Name:        *n.Name,
		Description: n.Description.value,
		NetworkSettings: neutron.NetworkSettings{
			AdminStateUp: n.AdminStateUp, PortSecurity: n.PortSecurity, MTU: n.MTU, DNSDomain: n.DNSDomain,
		},
		SubnetIDs: *n.Subnets,
		Tags:      n.Tags,
		CreatedAt: parseTime(n.CreatedAt),
		Revision:  *n.Revision,
	}, nil
}

// parseTime returns the zero Time for an invalid one: a Neutron may lack the
// extension for times, and only the clean-up of duplicates needs them.
func parseTime(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

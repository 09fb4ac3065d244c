package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

var subnetKind = kind[subnetJSON, neutron.Subnet]{
	name: "subnet", plural: "subnets", value: (*subnetJSON).value,
	required: "id, network_id, name, description, cidr, allocation_pools, enable_dhcp or revision_number",
}

func (c *client) Subnets(ctx context.Context, filter neutron.SubnetFilter) ([]neutron.Subnet, error) {
	return list(ctx, c, subnetKind, selecting("network_id", filter.NetworkID))
}

func (c *client) CreateSubnet(ctx context.Context, subnet neutron.NewSubnet) (neutron.Subnet, error) {
	opts := subnetOpts{
		NetworkID: subnet.NetworkID, Name: subnet.Name, Description: subnet.Description,
		AddressMode: subnet.AddressMode, RAMode: subnet.RAMode, subnetSettingsJSON: subnetSettings(subnet.SubnetSettings),
	}
	r := request{op: "create subnet", method: http.MethodPost, path: []string{"subnets"}}
	switch pool := subnet.FromPool; {
	case pool != nil:
		opts.SubnetPoolID, opts.Prefixlen, opts.IPVersion = pool.SubnetPoolID, pool.PrefixLength, pool.IPVersion
	case !subnet.CIDR.IsValid():
		return neutron.Subnet{}, &neutron.Error{Op: r.op, Class: neutron.ErrRefused, Message: "the CIDR is not valid"}
	case subnet.CIDR.Addr().Is4():
		opts.CIDR, opts.IPVersion = subnet.CIDR.String(), 4
	default:
		opts.CIDR, opts.IPVersion = subnet.CIDR.String(), 6
	}
	r.body = opts
	return writeObject(ctx, c, subnetKind, r)
}

func (c *client) UpdateSubnet(ctx context.Context, id string, update neutron.SubnetUpdate) (neutron.Subnet, error) {
	return writeObject(ctx, c, subnetKind, request{
		op: "update subnet", method: http.MethodPut, path: []string{"subnets", id}, revision: &update.Revision,
		body: subnetOpts{Name: update.Name, Description: update.Description,
			subnetSettingsJSON: subnetSettings(update.SubnetSettings)},
	})
}

// subnetOpts is a subnet in a request.
type subnetOpts struct {
	NetworkID    string `json:"network_id,omitempty"`
	Name         string `json:"name,omitempty"`
	Description  string `json:"description,omitempty"`
	CIDR         string `json:"cidr,omitempty"`
	SubnetPoolID string `json:"subnetpool_id,omitempty"`
	Prefixlen    int    `json:"prefixlen,omitempty"`
	IPVersion    int    `json:"ip_version,omitempty"`
	AddressMode  string `json:"ipv6_address_mode,omitempty"`
	RAMode       string `json:"ipv6_ra_mode,omitempty"`
	subnetSettingsJSON
}

// subnetSettingsJSON holds the settings of a subnet in a request. A setting that is
// nil is missing in JSON.
type subnetSettingsJSON struct {
	Gateway     json.RawMessage      `json:"gateway_ip,omitempty"` // null for none
	Pools       []neutron.Pool       `json:"allocation_pools,omitempty"`
	DHCP        *bool                `json:"enable_dhcp,omitempty"`
	Nameservers *[]netip.Addr        `json:"dns_nameservers,omitempty"`
	HostRoutes  *[]neutron.HostRoute `json:"host_routes,omitempty"`
}

func subnetSettings(s neutron.SubnetSettings) subnetSettingsJSON {
	return subnetSettingsJSON{
		Gateway: gatewayJSON(s.Gateway), Pools: s.Pools, DHCP: s.DHCP,
		Nameservers: listJSON(s.Nameservers), HostRoutes: listJSON(s.HostRoutes),
	}
}

// listJSON returns a list as it is in a request: an empty one is not null.
func listJSON[V any](values *[]V) *[]V {
	if values != nil && *values == nil {
		return &[]V{}
	}
	return values
}

// gatewayJSON returns null, which means no gateway, for the zero Addr.
func gatewayJSON(gateway *netip.Addr) json.RawMessage {
	switch {
	case gateway == nil:
		return nil
	case !gateway.IsValid():
		return json.RawMessage("null")
	}
	return json.RawMessage(strconv.Quote(gateway.String()))
}

func (c *client) DeleteSubnet(ctx context.Context, id string, revision int) error {
	err := c.write(ctx, request{op: "delete subnet", method: http.MethodDelete, path: []string{"subnets", id},
		revision: &revision}, nil)
	if failure := (*neutron.Error)(nil); errors.As(err, &failure) && errors.Is(failure, neutron.ErrInUse) {
		if failure.Ports = c.portsOn(ctx, id); failure.Ports != nil {
			failure.Message += " The ports are: " + strings.Join(failure.Ports, ", ") + "."
		}
	}
	return err
}

// maxPorts limits the number of ports that an error names.
const maxPorts = 10

// portsOn returns the ports that use a subnet, with their owners. (For a network,
// Neutron's own error names them.) It returns nil if the ports cannot be listed.
func (c *client) portsOn(ctx context.Context, subnetID string) []string {
	query := url.Values{"fixed_ips": {"subnet_id=" + subnetID}, "fields": portFields,
		"limit": {strconv.Itoa(maxPorts + 1)}}
	var words []string
	l := &listing[portJSON, port]{kind: portKind, isKnown: noneKnown, visit: func(p port, _ neutron.Digest) {
		words = append(words, c.describe("").clean(neutron.Port{ID: p.id, DeviceOwner: p.owner}.String()))
	}}
	_, err := l.readPage(ctx, c, query, maxValue)
	if err != nil || len(words) == 0 {
		return nil
	}
	more := len(words) > maxPorts
	words = words[:min(len(words), maxPorts)]
	slices.Sort(words)
	if more {
		words = append(words, "and more")
	}
	return words
}

// subnetJSON is a subnet in a response. What is nil or empty is a missing key, except for
// the gateway, which is null for a subnet without one.
type subnetJSON struct {
	ID          string              `json:"id"`
	NetworkID   string              `json:"network_id"`
	Name        *string             `json:"name"`
	Description json.RawMessage     `json:"description"`
	CIDR        netip.Prefix        `json:"cidr"`
	Gateway     netip.Addr          `json:"gateway_ip"`
	SubnetPool  string              `json:"subnetpool_id"`
	Pools       *[]neutron.Pool     `json:"allocation_pools"`
	DHCP        *bool               `json:"enable_dhcp"`
	Nameservers []netip.Addr        `json:"dns_nameservers"`
	HostRoutes  []neutron.HostRoute `json:"host_routes"`
	AddressMode string              `json:"ipv6_address_mode"`
	RAMode      string              `json:"ipv6_ra_mode"`
	CreatedAt   string              `json:"created_at"`
	Revision    *int                `json:"revision_number"`
}

func (s *subnetJSON) value() (neutron.Subnet, bool) {
	if s.Name == nil || s.Pools == nil || s.DHCP == nil || s.Revision == nil {
		return neutron.Subnet{}, false
	}
	description, ok := descriptionOf(s.Description)
	switch {
	case !ok, !isID(s.ID), !isID(s.NetworkID), isTooLong(*s.Name), !isOptionalID(s.SubnetPool),
		!isOptionalID(s.AddressMode), !isOptionalID(s.RAMode), *s.Revision < 0,
		!s.CIDR.IsValid(), s.CIDR != s.CIDR.Masked(),
		slices.ContainsFunc(*s.Pools, func(p neutron.Pool) bool { return !p.Start.IsValid() || !p.End.IsValid() }),
		slices.ContainsFunc(s.Nameservers, func(a netip.Addr) bool { return !a.IsValid() }),
		slices.ContainsFunc(s.HostRoutes, func(r neutron.HostRoute) bool {
			return !r.Destination.IsValid() || !r.NextHop.IsValid()
		}):
		return neutron.Subnet{}, false
	}
	return neutron.Subnet{
		ID: s.ID, NetworkID: s.NetworkID, Name: *s.Name, Description: description, CIDR: s.CIDR,
		SubnetPoolID: s.SubnetPool, Gateway: s.Gateway, Pools: *s.Pools, DHCP: *s.DHCP,
		Nameservers: s.Nameservers, HostRoutes: s.HostRoutes, AddressMode: s.AddressMode, RAMode: s.RAMode,
		CreatedAt: parseTime(s.CreatedAt), Revision: *s.Revision,
	}, true
}

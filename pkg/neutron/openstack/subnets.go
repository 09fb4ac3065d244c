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

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Subnets implements neutron.Reader.
func (c *client) Subnets(ctx context.Context, filter neutron.SubnetFilter) ([]neutron.Subnet, error) {
	query := url.Values{}
	if filter.NetworkID != "" {
		query.Set("network_id", filter.NetworkID)
	}
	if filter.Description != "" {
		query.Set("description", filter.Description)
	}
	found, err := list(ctx, c, "subnets", query, (*subnetJSON).value, func(s neutron.Subnet) string { return s.ID })
	if err != nil {
		return nil, c.failed(ctx, listSubnets, err)
	}
	// An old server may ignore an unknown filter.
	return slices.DeleteFunc(found, func(s neutron.Subnet) bool {
		return filter.NetworkID != "" && s.NetworkID != filter.NetworkID || filter.Description != "" && s.Description != filter.Description
	}), nil
}

// CreateSubnet implements neutron.Writer.
func (c *client) CreateSubnet(ctx context.Context, subnet neutron.NewSubnet) (neutron.Subnet, error) {
	const op = "create subnet"
	opts := subnetOpts{
		NetworkID:          subnet.NetworkID,
		Name:               subnet.Name,
		Description:        subnet.Description,
		AddressMode:        subnet.AddressMode,
		RAMode:             subnet.RAMode,
		subnetSettingsJSON: subnetSettings(subnet.SubnetSettings),
	}
	switch pool := subnet.FromPool; {
	case pool != nil:
		opts.SubnetPoolID, opts.Prefixlen, opts.IPVersion = pool.SubnetPoolID, pool.PrefixLength, pool.IPVersion
	case subnet.CIDR.IsValid():
		opts.CIDR, opts.IPVersion = subnet.CIDR.String(), ipVersion(subnet.CIDR)
	default:
		return neutron.Subnet{}, &neutron.Error{Op: op, Class: neutron.ErrRefused, Message: "the CIDR is not valid"}
	}
	return c.writeSubnet(ctx, op, http.MethodPost, c.service.ServiceURL("subnets"), nil, opts)
}

// UpdateSubnet implements neutron.Writer.
func (c *client) UpdateSubnet(ctx context.Context, id string, update neutron.SubnetUpdate) (neutron.Subnet, error) {
	const op = "update subnet"
	if err := checkID(op, id); err != nil {
		return neutron.Subnet{}, err
	}
	opts := subnetOpts{Name: update.Name, Description: update.Description, subnetSettingsJSON: subnetSettings(update.SubnetSettings)}
	return c.writeSubnet(ctx, op, http.MethodPut, c.service.ServiceURL("subnets", id), ifMatch(update.Revision), opts)
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
	Gateway     json.RawMessage          `json:"gateway_ip,omitempty"` // null for none
	Pools       []subnets.AllocationPool `json:"allocation_pools,omitempty"`
	DHCP        *bool                    `json:"enable_dhcp,omitempty"`
	Nameservers *[]string                `json:"dns_nameservers,omitempty"`
	HostRoutes  *[]subnets.HostRoute     `json:"host_routes,omitempty"`
}

func subnetSettings(s neutron.SubnetSettings) subnetSettingsJSON {
	return subnetSettingsJSON{
		Gateway:     gatewayJSON(s.Gateway),
		Pools:       poolsJSON(s.Pools),
		DHCP:        s.DHCP,
		Nameservers: nameserversJSON(s.Nameservers),
		HostRoutes:  routesJSON(s.HostRoutes),
	}
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

func nameserversJSON(servers *[]netip.Addr) *[]string {
	if servers == nil {
		return nil
	}
	all := []string{}
	for _, server := range *servers {
		all = append(all, server.String())
	}
	return &all
}

func routesJSON(routes *[]neutron.HostRoute) *[]subnets.HostRoute {
	if routes == nil {
		return nil
	}
	all := []subnets.HostRoute{}
	for _, route := range *routes {
		all = append(all, subnets.HostRoute{DestinationCIDR: route.Destination.String(), NextHop: route.NextHop.String()})
	}
	return &all
}

// DeleteSubnet implements neutron.Writer.
func (c *client) DeleteSubnet(ctx context.Context, id string, revision int) error {
	const op = "delete subnet"
	if err := checkID(op, id); err != nil {
		return err
	}
	err := c.failed(ctx, op, c.write(ctx, http.MethodDelete, c.service.ServiceURL("subnets", id), ifMatch(revision), nil, nil))
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
	query := url.Values{"fixed_ips": {"subnet_id=" + subnetID}, "fields": {"id", "device_owner"}, "limit": {strconv.Itoa(maxPorts + 1)}}
	var words []string
	_, err := c.readPage(ctx, "ports", query.Encode(), maxValue, func(raw json.RawMessage) error {
		var port struct {
			ID    string `json:"id"`
			Owner string `json:"device_owner"`
		}
		err := json.Unmarshal(raw, &port)
		if err != nil || !isID(port.ID) || len(words) > maxPorts {
			return err
		}
		if port.Owner != "" {
			port.ID += " (" + port.Owner + ")"
		}
		words = append(words, c.describe("").clean(port.ID))
		return nil
	})
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

// writeSubnet creates or updates a subnet.
func (c *client) writeSubnet(ctx context.Context, op, method, address string, headers map[string]string, opts subnetOpts) (neutron.Subnet, error) {
	var answer struct {
		Subnet *subnetJSON `json:"subnet"`
	}
	if err := c.write(ctx, method, address, headers, map[string]subnetOpts{"subnet": opts}, &answer); err != nil {
		return neutron.Subnet{}, c.failed(ctx, op, err)
	}
	subnet, err := answer.Subnet.value()
	return subnet, c.failed(ctx, op, err)
}

func ipVersion(cidr netip.Prefix) int {
	if cidr.Addr().Is4() {
		return 4
	}
	return 6
}

func poolsJSON(pools []neutron.Pool) []subnets.AllocationPool {
	var all []subnets.AllocationPool
	for _, pool := range pools {
		all = append(all, subnets.AllocationPool{Start: pool.Start.String(), End: pool.End.String()})
	}
	return all
}

// subnetJSON is a subnet in an answer. A nil pointer is a missing key, except for
// the gateway, which is null for a subnet without one.
type subnetJSON struct {
	ID          *string                   `json:"id"`
	NetworkID   *string                   `json:"network_id"`
	Name        *string                   `json:"name"`
	Description text                      `json:"description"`
	CIDR        *string                   `json:"cidr"`
	Gateway     *string                   `json:"gateway_ip"`
	SubnetPool  string                    `json:"subnetpool_id"`
	Pools       *[]subnets.AllocationPool `json:"allocation_pools"`
	DHCP        *bool                     `json:"enable_dhcp"`
	Nameservers []string                  `json:"dns_nameservers"`
	HostRoutes  []subnets.HostRoute       `json:"host_routes"`
	AddressMode string                    `json:"ipv6_address_mode"`
	RAMode      string                    `json:"ipv6_ra_mode"`
	CreatedAt   string                    `json:"created_at"`
	Revision    *int                      `json:"revision_number"`
}

func (s *subnetJSON) value() (neutron.Subnet, error) {
	if s == nil {
		return neutron.Subnet{}, unusable("it has no subnet")
	}
	if s.ID == nil || s.NetworkID == nil || s.Name == nil || !s.Description.found ||
		s.CIDR == nil || s.Pools == nil || s.DHCP == nil || s.Revision == nil {
		return neutron.Subnet{}, unusable("it has a subnet without id, network_id, name, description, cidr, allocation_pools, enable_dhcp or revision_number")
	}
	err := checkFields("subnet",
		field{"id", *s.ID, isID}, field{"network_id", *s.NetworkID, isID}, field{"name", *s.Name, isText}, field{"description", s.Description.value, isText},
		field{"subnetpool_id", s.SubnetPool, isOptionalID}, field{"ipv6_address_mode", s.AddressMode, isOptionalID}, field{"ipv6_ra_mode", s.RAMode, isOptionalID})
	if err != nil {
		return neutron.Subnet{}, err
	}
	subnet := neutron.Subnet{
		ID:           *s.ID,
		NetworkID:    *s.NetworkID,
		Name:         *s.Name,
		Description:  s.Description.value,
		SubnetPoolID: s.SubnetPool,
		DHCP:         *s.DHCP,
		AddressMode:  s.AddressMode,
		RAMode:       s.RAMode,
		CreatedAt:    parseTime(s.CreatedAt),
		Revision:     *s.Revision,
	}
	if *s.Revision < 0 {
		return neutron.Subnet{}, unusable("it has a subnet whose revision_number is %d", *s.Revision)
	}
	if subnet.CIDR, err = netip.ParsePrefix(*s.CIDR); err != nil || subnet.CIDR != subnet.CIDR.Masked() {
		return neutron.Subnet{}, unusable("it has a subnet whose cidr is %s", quoted(*s.CIDR))
	}
	if s.Gateway != nil && *s.Gateway != "" {
		if subnet.Gateway, err = netip.ParseAddr(*s.Gateway); err != nil {
			return neutron.Subnet{}, unusable("it has a subnet whose gateway_ip is %s", quoted(*s.Gateway))
		}
	}
	for _, server := range s.Nameservers {
		address, err := netip.ParseAddr(server)
		if err != nil {
			return neutron.Subnet{}, unusable("it has a subnet with the name server %s", quoted(server))
		}
		subnet.Nameservers = append(subnet.Nameservers, address)
	}
	for _, route := range s.HostRoutes {
		destination, err := netip.ParsePrefix(route.DestinationCIDR)
		nextHop, hopErr := netip.ParseAddr(route.NextHop)
		if err != nil || hopErr != nil {
			return neutron.Subnet{}, unusable("it has a subnet with a host route to %s over %s", quoted(route.DestinationCIDR), quoted(route.NextHop))
		}
		subnet.HostRoutes = append(subnet.HostRoutes, neutron.HostRoute{Destination: destination, NextHop: nextHop})
	}
	subnet.Pools, err = parsePools(*s.Pools)
	return subnet, err
}

func parsePools(pools []subnets.AllocationPool) ([]neutron.Pool, error) {
	var all []neutron.Pool
	for _, pool := range pools {
		start, startErr := netip.ParseAddr(pool.Start)
		end, endErr := netip.ParseAddr(pool.End)
		if startErr != nil || endErr != nil {
			return nil, unusable("it has a subnet with an allocation pool from %s to %s", quoted(pool.Start), quoted(pool.End))
		}
		all = append(all, neutron.Pool{Start: start, End: end})
	}
	return all, nil
}

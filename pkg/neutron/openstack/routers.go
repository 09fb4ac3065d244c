package openstack

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// interfaceOwners are the values of device_owner of a port that attaches a subnet to
// a router: a plain router, a distributed one, and a highly available one.
var interfaceOwners = []string{"network:router_interface", "network:router_interface_distributed", "network:ha_router_replicated_interface"}

// Routers implements neutron.Routing. With a login, the session limits the list to
// the project.
func (c *client) Routers(ctx context.Context, filter neutron.RouterFilter) ([]neutron.Router, error) {
	query := url.Values{}
	if filter.ID != "" {
		query.Set("id", filter.ID)
	}
	if filter.Name != "" {
		query.Set("name", filter.Name)
	}
	found, err := list(ctx, c, "routers", query, (*routerJSON).value, func(r neutron.Router) string { return r.ID })
	if err != nil {
		return nil, c.failed(ctx, listRouters, err)
	}
	// An old server may ignore an unknown filter.
	return slices.DeleteFunc(found, func(r neutron.Router) bool {
		return filter.ID != "" && r.ID != filter.ID || filter.Name != "" && r.Name != filter.Name
	}), nil
}

// RouterInterfaces implements neutron.Routing. A list for all networks skips and
// counts the ports that are unusable.
func (c *client) RouterInterfaces(ctx context.Context, networkID string) ([]neutron.RouterInterface, error) {
	query := url.Values{"device_owner": interfaceOwners, "fields": {"id", "network_id", "device_id", "device_owner", "fixed_ips"}}
	if networkID != "" {
		query.Set("network_id", networkID)
	}
	ports, err := list(ctx, c, "ports", query, (*interfaceJSON).value, func(p port) string { return p.id })
	if err != nil {
		return nil, c.failed(ctx, listPorts, err)
	}
	var found []neutron.RouterInterface
	for _, port := range ports {
		found = append(found, port.interfaces...)
	}
	// An old server may ignore an unknown filter.
	return slices.DeleteFunc(found, func(i neutron.RouterInterface) bool { return networkID != "" && i.NetworkID != networkID }), nil
}

// routerOwners begins the device_owner of all ports of routers. autoDeleted are those
// of the ports that Neutron deletes with a network.
const routerOwners = "network:router_"

var autoDeleted = []string{"network:dhcp", "network:distributed", "network:floatingip_agent_gateway"}

// Ports implements neutron.Routing.
func (c *client) Ports(ctx context.Context, networkID string) ([]neutron.Port, error) {
	query := url.Values{"network_id": {networkID}, "fields": {"id", "network_id", "device_id", "device_owner", "fixed_ips"}}
	ports, err := list(ctx, c, "ports", query, (*interfaceJSON).value, func(p port) string { return p.id })
	if err != nil {
		return nil, c.failed(ctx, listPorts, err)
	}
	var found []neutron.Port
	for _, p := range ports {
		isRouters := strings.HasPrefix(p.owner, routerOwners) || slices.Contains(interfaceOwners, p.owner)
		if p.networkID == networkID && !isRouters && !slices.Contains(autoDeleted, p.owner) {
			found = append(found, neutron.Port{ID: p.id, DeviceOwner: c.describe("").clean(p.owner), SubnetIDs: p.subnetIDs})
		}
	}
	return found, nil
}

// AddRouterInterface implements neutron.Routing.
func (c *client) AddRouterInterface(ctx context.Context, requested neutron.RouterInterface) (neutron.RouterInterface, error) {
	const op = "add router interface"
	if err := cmp.Or(checkID(op, requested.RouterID), checkID(op, requested.SubnetID)); err != nil {
		return neutron.RouterInterface{}, err
	}
	added, err := routers.AddInterface(ctx, c.service, requested.RouterID, routers.AddInterfaceOpts{SubnetID: requested.SubnetID}).Extract()
	switch {
	case err != nil:
		return neutron.RouterInterface{}, c.interfaceFailed(ctx, op, err)
	case added.PortID == "":
		return neutron.RouterInterface{}, c.failed(ctx, op, unusable("it has a router interface without port_id"))
	}
	requested.PortID = added.PortID
	return requested, nil
}

// RemoveRouterInterface implements neutron.Routing.
func (c *client) RemoveRouterInterface(ctx context.Context, attached neutron.RouterInterface) error {
	const op = "remove router interface"
	if err := cmp.Or(checkID(op, attached.RouterID), checkID(op, attached.SubnetID)); err != nil {
		return err
	}
	_, err := routers.RemoveInterface(ctx, c.service, attached.RouterID, routers.RemoveInterfaceOpts{SubnetID: attached.SubnetID}).Extract()
	return c.interfaceFailed(ctx, op, err)
}

// interfaceFailed returns the failure of a request for a router interface. Neutron
// has one type for all invalid requests to a router: only its text distinguishes a
// subnet that is attached already. The contract checks that text.
func (c *client) interfaceFailed(ctx context.Context, op string, err error) error {
	err = c.failed(ctx, op, err)
	var failure *neutron.Error
	if errors.As(err, &failure) && failure.Status == http.StatusBadRequest && strings.Contains(failure.Message, "already has a port on subnet") {
		failure.Class = neutron.ErrConflict
	}
	return err
}

// routerJSON is a router in an answer. A nil pointer is a missing key.
type routerJSON struct {
	ID   *string `json:"id"`
	Name *string `json:"name"`
}

func (r *routerJSON) value() (neutron.Router, error) {
	if r == nil || r.ID == nil || !isID(*r.ID) || r.Name == nil {
		return neutron.Router{}, unusable("it has a router without id or name")
	}
	return neutron.Router{ID: *r.ID, Name: *r.Name}, nil
}

// port is a port. If it is one of a router, it has an interface for each address.
type port struct {
	id, owner, networkID string
	subnetIDs            []string
	interfaces           []neutron.RouterInterface
}

// interfaceJSON is a port in an answer. A nil pointer is a missing key.
type interfaceJSON struct {
	ID        *string `json:"id"`
	NetworkID *string `json:"network_id"`
	DeviceID  *string `json:"device_id"`
	Owner     string  `json:"device_owner"`
	FixedIPs  []struct {
		SubnetID string `json:"subnet_id"`
		Address  string `json:"ip_address"`
	} `json:"fixed_ips"`
}

func (p *interfaceJSON) value() (port, error) {
	if p == nil || p.ID == nil || !isID(*p.ID) || p.NetworkID == nil || p.DeviceID == nil {
		return port{}, unusable("it has a port without id, network_id or device_id")
	}
	found := port{id: *p.ID, owner: p.Owner, networkID: *p.NetworkID}
	for _, fixed := range p.FixedIPs {
		found.subnetIDs = append(found.subnetIDs, fixed.SubnetID)
		if !slices.Contains(interfaceOwners, p.Owner) {
			continue // an old server may ignore an unknown filter
		}
		address, err := netip.ParseAddr(fixed.Address)
		switch {
		case err != nil:
			return port{}, unusable("it has a port with the address %s", quoted(fixed.Address))
		case !isID(*p.DeviceID) || !isID(fixed.SubnetID):
			return port{}, unusable("it has a port of a router without the IDs of the router and of the subnet")
		}
		found.interfaces = append(found.interfaces, neutron.RouterInterface{
			RouterID: *p.DeviceID, NetworkID: *p.NetworkID, SubnetID: fixed.SubnetID, Address: address, PortID: *p.ID,
		})
	}
	return found, nil
}

package openstack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// interfaceOwners are the values of device_owner of a port that attaches a subnet to
// a router: a plain router, a distributed one, and a highly available one.
var interfaceOwners = []string{"network:router_interface", "network:router_interface_distributed",
	"network:ha_router_replicated_interface"}

var routerKind = kind[routerJSON, neutron.Router]{
	plural: "routers", value: (*routerJSON).value, required: "id or name",
}

func (c *client) Routers(ctx context.Context, filter neutron.RouterFilter) ([]neutron.Router, error) {
	return list(ctx, c, routerKind, selecting("id", filter.ID, "name", filter.Name))
}

var portKind = kind[portJSON, port]{
	plural: "ports", value: (*portJSON).value, required: "id, network_id or device_id",
}

// portFields are the keys to request of a port.
var portFields = []string{"id", "network_id", "device_id", "device_owner", "fixed_ips"}

// RouterInterfaces lists router interfaces. A list for all networks skips and counts the
// ports that are unusable.
func (c *client) RouterInterfaces(ctx context.Context, networkID string) (found []neutron.RouterInterface, _ error) {
	query := selecting("network_id", networkID)
	query["device_owner"], query["fields"] = interfaceOwners, portFields
	all, err := list(ctx, c, portKind, query)
	for _, port := range all {
		found = append(found, port.interfaces...)
	}
	return found, err
}

// routerOwners begins the device_owner of all ports of routers. autoDeleted are those
// of the ports that Neutron deletes with a network.
const routerOwners = "network:router_"

var autoDeleted = []string{"network:dhcp", "network:distributed", "network:floatingip_agent_gateway"}

func (c *client) Ports(ctx context.Context, networkID string) (found []neutron.Port, _ error) {
	all, err := list(ctx, c, portKind, url.Values{"network_id": {networkID}, "fields": portFields})
	for _, p := range all {
		isRouters := strings.HasPrefix(p.owner, routerOwners) || slices.Contains(interfaceOwners, p.owner)
		if !isRouters && !slices.Contains(autoDeleted, p.owner) {
			found = append(found, neutron.Port{ID: p.id, DeviceOwner: c.describe("").clean(p.owner), SubnetIDs: p.subnetIDs})
		}
	}
	return found, err
}

func (c *client) AddRouterInterface(
	ctx context.Context, requested neutron.RouterInterface,
) (neutron.RouterInterface, error) {
	port, err := c.writeInterface(ctx, "add router interface", "add_router_interface", requested)
	if err != nil {
		return neutron.RouterInterface{}, err
	}
	requested.PortID = port
	return requested, nil
}

func (c *client) RemoveRouterInterface(ctx context.Context, attached neutron.RouterInterface) error {
	_, err := c.writeInterface(ctx, "remove router interface", "remove_router_interface", attached)
	return err
}

// writeInterface attaches a subnet to a router, or detaches it, and returns the ID of the
// port. Neutron has one type for all invalid requests to a router: only its text
// distinguishes a subnet that is attached already. The contract checks that text.
func (c *client) writeInterface(
	ctx context.Context, op, action string, i neutron.RouterInterface,
) (port string, err error) {
	if !isID(i.SubnetID) {
		return "", &neutron.Error{Op: op, Class: neutron.ErrRefused, Message: fmt.Sprintf("%.80q is not an ID", i.SubnetID)}
	}
	var response struct {
		PortID string `json:"port_id"`
	}
	err = c.write(ctx, request{
		op: op, method: http.MethodPut, path: []string{"routers", i.RouterID, action},
		body: map[string]string{"subnet_id": i.SubnetID},
	}, &response)
	var failure *neutron.Error
	switch {
	case err == nil && response.PortID == "":
		err = c.failed(ctx, op, unusable("it has a router interface without port_id"))
	case errors.As(err, &failure) && failure.Status == http.StatusBadRequest &&
		strings.Contains(failure.Message, "already has a port on subnet"):
		failure.Class = neutron.ErrConflict
	}
	return response.PortID, err
}

// routerJSON is a router in a response.
type routerJSON struct {
	ID   string  `json:"id"`
	Name *string `json:"name"` // nil is a missing key
}

func (r *routerJSON) value() (neutron.Router, bool) {
	if !isID(r.ID) || r.Name == nil || isTooLong(*r.Name) {
		return neutron.Router{}, false
	}
	return neutron.Router{ID: r.ID, Name: *r.Name}, true
}

// port is a port. If it is one of a router, it has an interface for each address.
type port struct {
	id, owner  string
	subnetIDs  []string
	interfaces []neutron.RouterInterface
}

// portJSON is a port in a response. A nil pointer is a missing key.
type portJSON struct {
	ID        string  `json:"id"`
	NetworkID *string `json:"network_id"`
	DeviceID  *string `json:"device_id"`
	Owner     string  `json:"device_owner"`
	FixedIPs  []struct {
		SubnetID string     `json:"subnet_id"`
		Address  netip.Addr `json:"ip_address"`
	} `json:"fixed_ips"`
}

func (p *portJSON) value() (found port, ok bool) {
	if !isID(p.ID) || p.NetworkID == nil || p.DeviceID == nil {
		return found, false
	}
	found = port{id: p.ID, owner: p.Owner}
	for _, fixed := range p.FixedIPs {
		found.subnetIDs = append(found.subnetIDs, fixed.SubnetID)
		if !slices.Contains(interfaceOwners, p.Owner) {
			continue // an old server may ignore an unknown filter
		}
		if !fixed.Address.IsValid() || !isID(*p.DeviceID) || !isID(fixed.SubnetID) {
			return found, false
		}
		found.interfaces = append(found.interfaces, neutron.RouterInterface{
			RouterID: *p.DeviceID, NetworkID: *p.NetworkID, SubnetID: fixed.SubnetID, Address: fixed.Address, PortID: p.ID,
		})
	}
	return found, true
}

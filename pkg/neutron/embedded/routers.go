package embedded

import (
	"net/http"
	"net/netip"
	"slices"
)

// routerInterface is the device_owner of the ports that attach subnets to routers.
const routerInterface = "network:router_interface"

func (s *Server) newRouters() *collection {
	return newCollection(collection{
		name: "router", plural: "routers", typeName: "Router",
		firstRevision: 1,
		attributes: s.withCommon(
			attribute{name: "admin_state_up", post: true, put: true, initial: true, check: boolean, filter: by(boolean)},
			attribute{name: "status", initial: "ACTIVE", filter: byText},
			attribute{name: "external_gateway_info"},
		),
		release: s.releaseRouter,
	})
}

// handleRouters adds the paths that attach subnets to routers. (A real Neutron also
// accepts a port in place of a subnet.)
func (s *Server) handleRouters() {
	const one = "PUT /v2.0/routers/{id}"
	s.handle(one+"/add_router_interface", http.StatusOK, s.onRouter(s.checkAttachment, s.attach))
	s.handle(one+"/remove_router_interface", http.StatusOK, s.onRouter(s.checkDetachment, s.detach))
}

// onRouter returns a function that changes the port of a router on a subnet, after a check.
func (s *Server) onRouter(
	check func(router, subnet object) *apiError, change func(router, subnet object) (port object),
) func(*http.Request) (object, *apiError) {
	return func(r *http.Request) (object, *apiError) {
		router, subnet, failure := s.routerAndSubnet(r)
		if failure == nil {
			failure = check(router, subnet)
		}
		if failure == nil {
			failure = matchRevision(r, router)
		}
		if failure != nil {
			return nil, failure
		}
		port := change(router, subnet)
		touch(router)
		return object{
			"id": router["id"], "tenant_id": router["tenant_id"], "port_id": port["id"], "network_id": subnet["network_id"],
			"subnet_id": subnet["id"], "subnet_ids": []any{subnet["id"]},
		}, nil
	}
}

// routerAndSubnet returns the router in a path and the subnet in the body.
func (s *Server) routerAndSubnet(r *http.Request) (router, subnet object, failure *apiError) {
	body, failure := readObject(r)
	if failure != nil {
		return nil, nil, failure
	}
	if router, failure = s.routers.find(r); failure != nil {
		return nil, nil, failure
	}
	id, set := body["subnet_id"]
	if !set {
		return nil, nil, badResource("router", "Either subnet_id or port_id must be specified.")
	}
	if _, failure := uuid("subnet_id", id); failure != nil {
		return nil, nil, badResource("router", "'%s' is not a valid UUID.", text(id))
	}
	subnet, ok := s.subnets.objects[id.(string)]
	if !ok {
		return nil, nil, s.subnets.missing(id.(string))
	}
	return router, subnet, nil
}

// checkAttachment checks whether a subnet can be attached to a router.
func (s *Server) checkAttachment(router, subnet object) *apiError {
	gateway, ok := gatewayOf(subnet)
	if !ok {
		return badResource("router", "Subnet for router interface must have a gateway IP.")
	}
	cidr := cidrOf(subnet)
	for _, port := range s.interfacesOf(router) {
		for _, fixed := range port["fixed_ips"].([]any) {
			other := s.subnets.objects[fixed.(object)["subnet_id"].(string)]
			switch {
			case other["id"] == subnet["id"]:
				return badResource("router", "Router already has a port on subnet %s.", subnet["id"])
			case cidrOf(other).Overlaps(cidr):
				return badResource("router", "Cidr %s of subnet %s overlaps with cidr %s of subnet %s.", cidr, subnet["id"],
					cidrOf(other), other["id"])
			}
		}
	}
	switch {
	case !cidr.Contains(gateway):
		return invalid("InvalidIpForSubnet", "IP address %s is not a valid IP for the specified subnet.", gateway)
	case s.portAt(subnet, gateway) != nil:
		return conflict("IpAddressAlreadyAllocated", "IP address %s already allocated in subnet %s", gateway, subnet["id"])
	}
	return nil
}

// attach gives a router the gateway address of a subnet. All IPv6 subnets of a
// network share one port, and each IPv4 subnet has its own.
func (s *Server) attach(router, subnet object) (port object) {
	fixed := object{"subnet_id": subnet["id"], "ip_address": subnet["gateway_ip"]}
	if cidrOf(subnet).Addr().Is6() {
		for _, port := range s.interfacesOf(router) {
			first := port["fixed_ips"].([]any)[0].(object)["ip_address"].(string)
			if port["network_id"] == subnet["network_id"] && netip.MustParseAddr(first).Is6() {
				port["fixed_ips"] = append(port["fixed_ips"].([]any), fixed)
				touch(port)
				return port
			}
		}
	}
	port, _ = s.ports.complete(object{"network_id": subnet["network_id"]}) // it is valid
	port["fixed_ips"] = []any{fixed}
	port["device_owner"], port["device_id"] = routerInterface, router["id"]
	if s.has("port-security") {
		port["port_security_enabled"] = false
	}
	s.ports.add(port)
	touch(port)
	return port
}

// checkDetachment checks whether a subnet can be detached from a router.
func (s *Server) checkDetachment(router, subnet object) *apiError {
	if s.interfaceOn(router, subnet) == nil {
		return notFound("RouterInterfaceNotFoundForSubnet", "Router %s has no interface on subnet %s", router["id"],
			subnet["id"])
	}
	return nil
}

// detach removes an address from the port of a router, and the port with its last
// address.
func (s *Server) detach(router, subnet object) (port object) {
	port = s.interfaceOn(router, subnet)
	rest := slices.DeleteFunc(slices.Clone(port["fixed_ips"].([]any)),
		func(fixed any) bool { return fixed.(object)["subnet_id"] == subnet["id"] })
	if len(rest) == 0 {
		s.ports.drop(port)
		return port
	}
	port["fixed_ips"] = rest
	touch(port)
	return port
}

// interfacesOf returns the ports of a router, the oldest first.
func (s *Server) interfacesOf(router object) []object {
	var found []object
	for _, id := range s.ports.order {
		if port := s.ports.objects[id]; port["device_owner"] == routerInterface && port["device_id"] == router["id"] {
			found = append(found, port)
		}
	}
	return found
}

// interfaceOn returns the port of a router on a subnet, or nil.
func (s *Server) interfaceOn(router, subnet object) object {
	return portWith(s.interfacesOf(router), func(fixed object) bool { return fixed["subnet_id"] == subnet["id"] })
}

// portAt returns the port with an address of a subnet, or nil.
func (s *Server) portAt(subnet object, address netip.Addr) object {
	return portWith(s.portsOf(object{"id": subnet["network_id"]}), func(fixed object) bool {
		return fixed["subnet_id"] == subnet["id"] && fixed["ip_address"] == address.String()
	})
}

// portWith returns the first port with an address that matches, or nil.
func portWith(ports []object, matches func(fixed object) bool) object {
	for _, port := range ports {
		if slices.ContainsFunc(port["fixed_ips"].([]any), func(fixed any) bool { return matches(fixed.(object)) }) {
			return port
		}
	}
	return nil
}

// releaseRouter rejects the deletion of a router with attached subnets.
func (s *Server) releaseRouter(o object) *apiError {
	if ports := s.interfacesOf(o); ports != nil {
		return conflict("RouterInUse", "Router %s has ports still attached: %s", o["id"], idsOf(ports))
	}
	return nil
}

// releasePort rejects the deletion of a port of a router.
func releasePort(o object) *apiError {
	if o["device_owner"] != routerInterface {
		return nil
	}
	return conflict("ServicePortInUse", "Port %s cannot be deleted directly via the port API: has device owner %s.",
		o["id"], routerInterface)
}

// checkGatewayFree rejects another gateway while a router has the current one. (No
// gateway is accepted.)
func (s *Server) checkGatewayFree(before, given object) *apiError {
	current, has := gatewayOf(before)
	wanted, set := given["gateway_ip"].(string)
	if !has || !set || netip.MustParseAddr(wanted) == current {
		return nil
	}
	port := s.portAt(before, current)
	if port == nil || port["device_owner"] != routerInterface {
		return nil
	}
	return conflict("GatewayIpInUse", "Current gateway ip %s already in use by port %s. Unable to update.", current,
		port["id"])
}

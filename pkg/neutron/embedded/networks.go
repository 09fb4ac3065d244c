package embedded

import (
	"slices"
	"strings"
)

// maxMTU is what is left of 1500 bytes inside a VXLAN tunnel.
const maxMTU = 1450

func (s *Server) newNetworks(quota int) *collection {
	segments, writable := 0, s.has("net-mtu-writable")
	return &collection{
		name: "network", plural: "networks", typeName: "Network",
		firstRevision: 1,
		quota:         quotaOf(quota),
		attributes: s.withCommon(
			attribute{name: "admin_state_up", post: true, put: true, initial: true, check: boolean, filter: by(boolean)},
			attribute{name: "status", initial: "ACTIVE", filter: byText},
			attribute{name: "subnets"},
			attribute{name: "shared", post: true, put: true, initial: false, check: boolean, filter: by(boolean)},
			attribute{name: "availability_zone_hints", post: true, initial: []any{}, check: availabilityZones},
			attribute{name: "availability_zones", initial: []any{}},
			attribute{name: "ipv4_address_scope"},
			attribute{name: "ipv6_address_scope"},
			attribute{name: "router:external", post: true, put: true, initial: false, check: boolean, filter: by(boolean)},
			attribute{name: "mtu", post: writable, put: writable, initial: maxMTU, check: mtu, filter: by(number), extension: "net-mtu"},
			attribute{name: "port_security_enabled", post: true, put: true, initial: true, check: boolean, extension: "port-security"},
			attribute{name: "dns_domain", post: true, put: true, initial: "", check: dnsDomain, extension: dnsIntegration},
			attribute{name: "provider:network_type", initial: "vxlan", filter: byText},
			attribute{name: "provider:physical_network", filter: byText},
			attribute{name: "provider:segmentation_id", filter: by(number)},
		),
		validate: func(object, object, object) *apiError { return nil },
		place: func(o, _ object) *apiError {
			segments++
			o["provider:segmentation_id"] = segments
			o["subnets"] = []string{}
			return nil
		},
		release: s.releaseNetwork,
		added:   nothing, dropped: s.networkDropped, touched: nothings,
		objects: map[string]object{},
	}
}

// mtu takes 0 for the largest there can be.
func mtu(name string, value any) (any, *apiError) {
	n, failure := count(name, value)
	if failure != nil {
		return nil, failure
	}
	switch bytes := n.(int); {
	case bytes == 0:
		return maxMTU, nil
	case bytes > maxMTU:
		return nil, invalidInput("Requested MTU is too big, maximum is %d.", maxMTU)
	}
	return n, nil
}

// availabilityZones takes none: there is no agent that could be in one.
func availabilityZones(name string, value any) (any, *apiError) {
	items, failure := listOf(name, value)
	if failure != nil {
		return nil, failure
	}
	if zones := items.([]any); len(zones) > 0 {
		return nil, notFound("AvailabilityZoneNotFound", "AvailabilityZone %s could not be found.", text(zones[0]))
	}
	return items, nil
}

// releaseNetwork refuses to delete a network while a port is on it. Otherwise
// its subnets go with it, and the ports that belong to Neutron itself.
func (s *Server) releaseNetwork(o object) *apiError {
	var held []string
	ports := s.portsOf(o)
	for _, port := range ports {
		if !goesByItself(port) {
			held = append(held, port["id"].(string))
		}
	}
	if held != nil {
		return conflict("NetworkInUse",
			"Unable to complete operation on network %s. There are one or more ports still in use on the network, id for these ports is: %s.",
			o["id"], strings.Join(held, ","))
	}
	return nil
}

// networkDropped takes away what was on a network.
func (s *Server) networkDropped(o object) {
	for _, port := range s.portsOf(o) {
		s.ports.drop(port)
	}
	for _, subnet := range s.subnetsOf(o) {
		s.subnets.drop(subnet)
	}
}

// subnetsOf returns the subnets of a network, the oldest first.
func (s *Server) subnetsOf(network object) []object {
	var found []object
	for _, id := range network["subnets"].([]string) {
		found = append(found, s.subnets.objects[id])
	}
	return found
}

func (s *Server) portsOf(network object) []object {
	var found []object
	for _, id := range s.ports.order {
		if s.ports.objects[id]["network_id"] == network["id"] {
			found = append(found, s.ports.objects[id])
		}
	}
	return found
}

// The network of a subnet names it, and gets another revision with each
// request that creates, changes or deletes subnets on it.

func (s *Server) subnetAdded(subnet object) {
	network := s.networks.objects[subnet["network_id"].(string)]
	network["subnets"] = append(network["subnets"].([]string), subnet["id"].(string))
}

func (s *Server) subnetDropped(subnet object) {
	if network, ok := s.networks.objects[subnet["network_id"].(string)]; ok {
		network["subnets"] = slices.DeleteFunc(network["subnets"].([]string), func(id string) bool { return id == subnet["id"] })
	}
	for _, port := range s.ports.objects { // those of Neutron itself give their addresses back
		port["fixed_ips"] = slices.DeleteFunc(port["fixed_ips"].([]any), func(fixed any) bool {
			return fixed.(object)["subnet_id"] == subnet["id"]
		})
	}
}

func (s *Server) subnetsTouched(subnets []object) {
	networks := map[any]bool{}
	for _, subnet := range subnets {
		id := subnet["network_id"].(string)
		if network, ok := s.networks.objects[id]; ok && !networks[id] {
			networks[id] = true
			touch(network)
		}
	}
}

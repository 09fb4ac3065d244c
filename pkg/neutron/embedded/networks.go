package embedded

import (
	"slices"
	"strings"
)

// maxMTU is the rest of 1500 bytes in a VXLAN tunnel. minMTU is what Neutron 26 requires
// once there is a subnet.
const maxMTU, minMTU = 1450, 500

func (s *Server) newNetworks() *collection {
	segments, writable := 0, s.has("net-mtu-writable")
	return newCollection(collection{
		name: "network", plural: "networks", typeName: "Network",
		firstRevision: 1,
		attributes: s.withCommon(
			attribute{name: "admin_state_up", post: true, put: true, initial: true, check: boolean, filter: by(boolean)},
			attribute{name: "status", initial: "ACTIVE", filter: byText},
			attribute{name: "subnets"},
			attribute{name: "shared", post: true, put: true, initial: false, check: boolean, filter: by(boolean)},
			attribute{name: "router:external", post: true, put: true, initial: false, check: boolean, filter: by(boolean)},
			attribute{name: "mtu", post: writable, put: writable, initial: maxMTU, check: mtu, filter: by(number),
				extension: "net-mtu"},
			attribute{name: "port_security_enabled", post: true, put: true, initial: true, check: boolean,
				extension: "port-security"},
			attribute{name: "dns_domain", post: true, put: true, initial: "", check: domain, extension: dnsIntegration},
			attribute{name: "provider:network_type", initial: "vxlan", filter: byText},
			attribute{name: "provider:physical_network", filter: byText},
			attribute{name: "provider:segmentation_id", filter: by(number)},
		),
		validate: validateNetwork,
		place: func(o, _ object) *apiError {
			segments++
			o["provider:segmentation_id"] = segments
			o["subnets"] = []string{}
			return nil
		},
		release: s.releaseNetwork,
		dropped: s.networkDropped,
	})
}

func mtu(name string, value any) (any, *apiError) {
	n, failure := count(name, value)
	switch {
	case failure != nil:
		return nil, failure
	case n.(int) > maxMTU:
		return nil, invalidInput("Requested MTU is too big, maximum is %d.", maxMTU)
	}
	return n, nil
}

// validateNetwork makes 0 the largest MTU. As in Neutron 26, that is too small for a network
// with a subnet; Neutron 21 accepts it.
func validateNetwork(o, _, before object) *apiError {
	if n, ok := o["mtu"].(int); ok && n < minMTU && before != nil && len(before["subnets"].([]string)) > 0 {
		return conflict("NetworkMTUSubnetConflict",
			"MTU of %s is not valid, subnet requires a minimum of %d", o["id"], minMTU)
	}
	if o["mtu"] == 0 {
		o["mtu"] = maxMTU
	}
	return nil
}

// releaseNetwork rejects the deletion of a network with ports. Its subnets are
// deleted with it.
func (s *Server) releaseNetwork(o object) *apiError {
	ports := s.portsOf(o)
	if ports == nil {
		return nil
	}
	return conflict("NetworkInUse",
		"Unable to complete operation on network %s. "+
			"There are one or more ports still in use on the network, id for these ports is: %s.",
		o["id"], idsOf(ports))
}

// idsOf returns the IDs of objects, with commas.
func idsOf(objects []object) string {
	var ids []string
	for _, o := range objects {
		ids = append(ids, o["id"].(string))
	}
	return strings.Join(ids, ",")
}

func (s *Server) networkDropped(o object) {
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

// portsOf returns the ports of a network, the oldest first.
func (s *Server) portsOf(network object) []object {
	var found []object
	for _, id := range s.ports.order {
		if port := s.ports.objects[id]; port["network_id"] == network["id"] {
			found = append(found, port)
		}
	}
	return found
}

// A network lists its subnets. Each request that creates, updates or deletes a subnet
// gives it another revision.

func (s *Server) subnetAdded(subnet object) {
	network := s.networks.objects[subnet["network_id"].(string)]
	network["subnets"] = append(network["subnets"].([]string), subnet["id"].(string))
	touch(network)
}

func (s *Server) subnetUpdated(subnet object) {
	touch(s.networks.objects[subnet["network_id"].(string)])
}

func (s *Server) subnetDropped(subnet object) {
	if network, ok := s.networks.objects[subnet["network_id"].(string)]; ok {
		network["subnets"] = slices.DeleteFunc(network["subnets"].([]string),
			func(id string) bool { return id == subnet["id"] })
		touch(network)
	}
}

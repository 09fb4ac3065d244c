package embedded

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

func newNetworks(quota int) *collection {
	return &collection{
		name: "network", plural: "networks", typeName: "Network",
		quota: quota, firstRevision: 1, objects: map[string]object{},
		attributes: common(map[string]attribute{
			"admin_state_up":          {post: true, put: true, fallback: true, check: boolean},
			"availability_zone_hints": {post: true, fallback: []any{}, check: list("availability_zone_hints")},
			"availability_zones":      {fallback: []any{}},
			"ipv4_address_scope":      {},
			"ipv6_address_scope":      {},
			"mtu":                     {post: true, put: true, fallback: 1450, check: wholeNumber("mtu")},
			"port_security_enabled":   {post: true, put: true, fallback: true, check: boolean},
			"router:external":         {post: true, put: true, fallback: false, check: boolean},
			"shared":                  {post: true, put: true, fallback: false, check: boolean},
			"subnets":                 {fallback: []string{}},
		}),
		prepare: prepareNetwork,
		remove:  removeNetwork,
	}
}

func prepareNetwork(_ *Server, o, _, before object) *apiError {
	if mtu := o["mtu"].(int); mtu > 1450 {
		return invalidInput("Requested MTU is too big, maximum is 1450.")
	}
	if before == nil {
		o["subnets"] = []string{}
	}
	return nil
}

// removeNetwork takes the subnets away with a network that no port is on.
func removeNetwork(s *Server, o object) *apiError {
	id := o["id"].(string)
	var ports []string
	for _, port := range s.collections["ports"].order {
		if s.collections["ports"].objects[port]["network_id"] == id {
			ports = append(ports, port)
		}
	}
	if len(ports) > 0 {
		return &apiError{http.StatusConflict, "NetworkInUse", fmt.Sprintf(
			"Unable to complete operation on network %s. There are one or more ports still in use on the network, id for these ports is: %s.",
			id, strings.Join(ports, ","))}
	}
	for _, subnet := range s.subnetsOf(id) {
		s.drop(s.collections["subnets"], subnet)
	}
	return nil
}

// subnetsChanged brings a network up to date after a subnet was created on it
// or deleted. It gets another revision.
func (s *Server) subnetsChanged(networkID string) {
	networks := s.collections["networks"]
	before, ok := networks.objects[networkID]
	if !ok {
		return
	}
	ids := []string{}
	for _, subnet := range s.subnetsOf(networkID) {
		ids = append(ids, subnet["id"].(string))
	}
	grown := len(ids) > len(before["subnets"].([]string))
	before["subnets"] = slices.Clip(ids)
	if grown {
		touch(before)
	}
}

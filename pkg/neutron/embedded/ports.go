package embedded

import (
	"net/netip"
	"slices"
	"strings"
)

func (s *Server) newPorts() *collection {
	return newCollection(collection{
		name: "port", plural: "ports", typeName: "Port",
		firstRevision: 1,
		attributes: s.withCommon(
			attribute{name: "network_id", post: true, required: true, check: uuid, filter: byText},
			attribute{name: "admin_state_up", post: true, put: true, initial: true, check: boolean, filter: by(boolean)},
			attribute{name: "fixed_ips", filter: byFixedIP},
			attribute{name: "device_id", post: true, put: true, initial: "", check: shortText, filter: byText},
			attribute{name: "device_owner", post: true, put: true, initial: "", check: shortText, filter: byText},
			attribute{name: "status", initial: "DOWN", filter: byText},
			attribute{name: "port_security_enabled", post: true, put: true, check: boolean, extension: "port-security"},
		),
		place:   s.placePort,
		release: releasePort,
	})
}

// byFixedIP filters by ip_address=… or subnet_id=….
func byFixedIP(value string) (func(any) bool, *apiError) {
	key, wanted, ok := strings.Cut(value, "=")
	if !ok {
		return nil, invalidInput("'%s' is not of the form <key>=[value].", value)
	}
	return func(kept any) bool {
		return slices.ContainsFunc(kept.([]any), func(fixed any) bool { return fixed.(object)[key] == wanted })
	}, nil
}

// placePort gives a new port the first free address of each IP version. (A real
// Neutron lets a request choose fixed_ips.)
func (s *Server) placePort(o, given object) *apiError {
	network, ok := s.networks.objects[o["network_id"].(string)]
	if !ok {
		return s.networks.missing(o["network_id"].(string))
	}
	fixed, versions := []any{}, map[any]bool{}
	for _, subnet := range s.subnetsOf(network) {
		if versions[subnet["ip_version"]] {
			continue
		}
		versions[subnet["ip_version"]] = true
		address, ok := s.freeAddress(subnet)
		if !ok {
			return conflict("IpAddressGenerationFailure", "No more IP addresses available on network %s.", network["id"])
		}
		fixed = append(fixed, object{"subnet_id": subnet["id"], "ip_address": address.String()})
	}
	o["fixed_ips"] = fixed
	if _, set := given["port_security_enabled"]; !set && s.has("port-security") {
		o["port_security_enabled"] = network["port_security_enabled"]
	}
	return nil
}

// freeAddress returns the first address in the allocation pools of a subnet that no
// port has.
func (s *Server) freeAddress(subnet object) (netip.Addr, bool) {
	used := map[string]bool{}
	for _, port := range s.portsOf(object{"id": subnet["network_id"]}) {
		for _, fixed := range port["fixed_ips"].([]any) {
			used[fixed.(object)["ip_address"].(string)] = true
		}
	}
	for _, p := range poolsOf(subnet) {
		for address := p.start; address.IsValid() && p.has(address); address = address.Next() {
			if !used[address.String()] {
				return address, true
			}
		}
	}
	return netip.Addr{}, false
}

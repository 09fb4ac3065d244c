package embedded

import (
	"crypto/rand"
	"fmt"
	"net/http"
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
			attribute{name: "mac_address", filter: byText},
			attribute{name: "fixed_ips", post: true, check: listOf(fixedIP), filter: byFixedIP},
			attribute{name: "device_id", post: true, put: true, initial: "", check: shortText, filter: byText},
			attribute{name: "device_owner", post: true, put: true, initial: "", check: shortText, filter: byText},
			attribute{name: "status", initial: "DOWN", filter: byText},
			attribute{name: "port_security_enabled", post: true, put: true, check: boolean, extension: "port-security"},
		),
		place: s.placePort,
	})
}

// fixedIP accepts {"subnet_id": …}, {"ip_address": …} or both.
func fixedIP(name string, value any) (any, *apiError) {
	wanted, _ := value.(object)
	if len(wanted) == 0 {
		return nil, wrong(name, "Invalid data format for fixed IP: '%s'.", text(value))
	}
	for key, value := range wanted {
		var failure *apiError
		switch key {
		case "subnet_id":
			_, failure = uuid(name, value)
		case "ip_address":
			_, failure = parseAddress(name, value)
		default:
			failure = wrong(name, "Invalid data format for fixed IP: '%s'.", text(value))
		}
		if failure != nil {
			return nil, failure
		}
	}
	return wanted, nil
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

// placePort gives a new port the addresses that the request wants, or by default
// one of each IP version.
func (s *Server) placePort(o, given object) *apiError {
	network, ok := s.networks.objects[o["network_id"].(string)]
	if !ok {
		return s.networks.missing(o["network_id"].(string))
	}
	wanted, ok := given["fixed_ips"].([]any)
	if !ok {
		wanted = s.oneOfEachVersion(network)
	}
	fixed := []any{}
	for _, item := range wanted {
		one, failure := s.allocateAddress(network, item.(object), fixed)
		if failure != nil {
			return failure
		}
		fixed = append(fixed, one)
	}
	o["fixed_ips"] = fixed
	if _, set := given["port_security_enabled"]; !set && s.has("port-security") {
		o["port_security_enabled"] = network["port_security_enabled"]
	}
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails
	o["mac_address"] = fmt.Sprintf("fa:16:3e:%02x:%02x:%02x", b[0], b[1], b[2])
	return nil
}

func (s *Server) oneOfEachVersion(network object) []any {
	var wanted []any
	seen := map[any]bool{}
	for _, subnet := range s.subnetsOf(network) {
		if !seen[subnet["ip_version"]] {
			seen[subnet["ip_version"]] = true
			wanted = append(wanted, object{"subnet_id": subnet["id"]})
		}
	}
	return wanted
}

// allocateAddress returns the address that a request wants, or the first free one
// of a subnet. more are addresses that no port has yet.
func (s *Server) allocateAddress(network, wanted object, more []any) (object, *apiError) {
	address, _ := wanted["ip_address"].(string)
	for _, subnet := range s.subnetsOf(network) {
		if id, ok := wanted["subnet_id"]; ok && id != subnet["id"] {
			continue
		}
		ranges := poolsOf(subnet)
		if address != "" {
			ip := netip.MustParseAddr(address)
			if !hostsOf(cidrOf(subnet)).has(ip) {
				continue
			}
			ranges = []pool{{ip, ip}}
		}
		used := s.addressesOf(network, more)
		for _, p := range ranges {
			for ip := p.start; ip.IsValid() && p.has(ip); ip = ip.Next() {
				if !used[ip.String()] {
					return object{"subnet_id": subnet["id"], "ip_address": ip.String()}, nil
				}
			}
		}
		if address != "" {
			return nil, conflict("IpAddressAlreadyAllocated", "IP address %s already allocated in subnet %s", address, subnet["id"])
		}
		return nil, conflict("IpAddressGenerationFailure", "No more IP addresses available on network %s.", network["id"])
	}
	return nil, &apiError{http.StatusBadRequest, "InvalidIpForNetwork",
		text(wanted) + " is not valid for any of the subnets on the specified network."}
}

// addressesOf returns the addresses of the ports on a network, and more.
func (s *Server) addressesOf(network object, more []any) map[string]bool {
	used := map[string]bool{}
	for _, port := range append(s.portsOf(network), object{"fixed_ips": more}) {
		for _, fixed := range port["fixed_ips"].([]any) {
			used[fixed.(object)["ip_address"].(string)] = true
		}
	}
	return used
}

package embedded

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// maxFixedIPs is how many addresses a port can have. A real Neutron has no
// such limit; but here every address is compared with every other.
const maxFixedIPs = 1000

func (s *Server) newPorts(quota int) *collection {
	return &collection{
		name: "port", plural: "ports", typeName: "Port",
		firstRevision: 1,
		quota:         quotaOf(quota),
		attributes: s.withCommon(
			attribute{name: "network_id", post: true, required: true, check: uuid, filter: byText},
			attribute{name: "admin_state_up", post: true, put: true, initial: true, check: boolean, filter: by(boolean)},
			attribute{name: "mac_address", post: true, check: macAddress, filter: byText},
			attribute{name: "fixed_ips", post: true, check: fixedIPs, filter: byFixedIP},
			attribute{name: "device_id", post: true, put: true, initial: "", check: shortText, filter: byText},
			attribute{name: "device_owner", post: true, put: true, initial: "", check: shortText, filter: byText},
			attribute{name: "status", initial: "DOWN", filter: byText},
			attribute{name: "port_security_enabled", post: true, put: true, check: boolean, extension: "port-security"},
			attribute{name: "security_groups", post: true, put: true, initial: []any{}, check: listOf},
			attribute{name: "allowed_address_pairs", post: true, put: true, initial: []any{}, check: listOf},
			attribute{name: "extra_dhcp_opts", post: true, put: true, initial: []any{}, check: listOf},
			attribute{name: "binding:host_id", post: true, put: true, initial: "", check: shortText, filter: byText},
			attribute{name: "binding:vnic_type", post: true, put: true, initial: "normal", check: shortText},
			attribute{name: "binding:profile", post: true, put: true, initial: object{}, check: anything},
			attribute{name: "binding:vif_type", initial: "unbound"},
			attribute{name: "binding:vif_details", initial: object{}},
		),
		validate: func(object, object, object) *apiError { return nil },
		place:    s.placePort,
		release:  func(object) *apiError { return nil },
		added:    nothing, dropped: nothing, touched: nothings,
		objects: map[string]object{},
	}
}

// goesByItself reports whether a port belongs to Neutron's own DHCP service,
// which gives it up when somebody deletes the network.
func goesByItself(port object) bool { return port["device_owner"] == "network:dhcp" }

func hasAddressOf(port object, subnetID any) bool {
	return slices.ContainsFunc(port["fixed_ips"].([]any), func(fixed any) bool {
		return fixed.(object)["subnet_id"] == subnetID
	})
}

func macAddress(name string, value any) (any, *apiError) {
	mac, err := net.ParseMAC(text(value))
	if err != nil || len(mac) != 6 {
		return nil, wrong(name, "'%s' is not a valid MAC address.", text(value))
	}
	return mac.String(), nil
}

// fixedIPs takes a list of {"subnet_id": …, "ip_address": …}, each with one of
// the two at least.
func fixedIPs(name string, value any) (any, *apiError) {
	items, failure := listOf(name, value)
	if failure != nil {
		return nil, failure
	}
	if len(items.([]any)) > maxFixedIPs {
		return nil, invalidInput("Exceeded maximum amount of fixed ips per port.")
	}
	for _, item := range items.([]any) {
		asked, ok := item.(object)
		if !ok {
			return nil, wrong(name, "Invalid data format for fixed IP: '%s'.", text(item))
		}
		if asked["ip_address"] != nil {
			if _, failure := parseAddress(name, asked["ip_address"]); failure != nil {
				return nil, failure
			}
		}
		if asked["subnet_id"] != nil {
			if _, failure := uuid(name, asked["subnet_id"]); failure != nil {
				return nil, failure
			}
		}
	}
	return items, nil
}

// byFixedIP takes ip_address=… or subnet_id=….
func byFixedIP(value string) (func(any) bool, *apiError) {
	key, want, ok := strings.Cut(value, "=")
	if !ok {
		return nil, invalidInput("'%s' is not of the form <key>=[value].", value)
	}
	return func(kept any) bool {
		return slices.ContainsFunc(kept.([]any), func(fixed any) bool { return fixed.(object)[key] == want })
	}, nil
}

// placePort gives a new port its addresses: those it asks for, or one of the
// first subnet of each IP version.
func (s *Server) placePort(o, given object) *apiError {
	network, ok := s.networks.objects[o["network_id"].(string)]
	if !ok {
		return s.networks.missing(o["network_id"].(string))
	}
	wanted, said := given["fixed_ips"].([]any)
	if !said {
		wanted = s.oneOfEachVersion(network)
	}
	o["fixed_ips"] = []any{}
	for _, item := range wanted {
		fixed, failure := s.fixedIP(network, item.(object), o)
		if failure != nil {
			return failure
		}
		o["fixed_ips"] = append(o["fixed_ips"].([]any), fixed)
	}
	if _, said := given["port_security_enabled"]; !said && s.has("port-security") {
		o["port_security_enabled"] = network["port_security_enabled"]
	}
	if o["mac_address"] == nil {
		var b [3]byte
		_, _ = rand.Read(b[:]) // never fails
		o["mac_address"] = fmt.Sprintf("fa:16:3e:%02x:%02x:%02x", b[0], b[1], b[2])
	}
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

// fixedIP returns the address that a port asks for, or the first free one of
// the subnet that it names.
func (s *Server) fixedIP(network, asked, port object) (object, *apiError) {
	subnetID, hasSubnet := asked["subnet_id"].(string)
	wanted, hasAddress := asked["ip_address"].(string)
	if !hasSubnet && !hasAddress {
		return nil, invalidInput("IP allocation requires subnet_id or ip_address.")
	}
	if len(network["subnets"].([]string)) == 0 {
		return nil, invalidInput("IP allocation requires subnets for network.")
	}
	if _, exists := s.subnets.objects[subnetID]; hasSubnet && !exists {
		return nil, s.subnets.missing(subnetID)
	}
	for _, subnet := range s.subnetsOf(network) {
		if hasSubnet && subnet["id"] != subnetID {
			continue
		}
		if !hasAddress {
			return s.freeAddress(network, subnet, port)
		}
		address := netip.MustParseAddr(wanted)
		if !hostsOf(cidrOf(subnet)).has(address) {
			continue
		}
		if s.taken(address, subnet["id"], port) {
			return nil, conflict("IpAddressAlreadyAllocated", "IP address %s already allocated in subnet %s", address, subnet["id"])
		}
		return object{"subnet_id": subnet["id"], "ip_address": address.String()}, nil
	}
	if !hasSubnet {
		return nil, &apiError{http.StatusBadRequest, "InvalidIpForNetwork",
			"IP address " + wanted + " is not a valid IP for any of the subnets on the specified network."}
	}
	if hasAddress {
		return nil, &apiError{http.StatusBadRequest, "InvalidIpForSubnet",
			"IP address " + wanted + " is not a valid IP for the specified subnet."}
	}
	return nil, invalidInput("Failed to create port on network %s, because fixed_ips included invalid subnet %s.", network["id"], subnetID)
}

// freeAddress returns the first address in the pools of a subnet that no port
// has.
func (s *Server) freeAddress(network, subnet, port object) (object, *apiError) {
	for _, p := range poolsOf(subnet) {
		for address := p.start; address.IsValid() && p.has(address); address = address.Next() {
			if !s.taken(address, subnet["id"], port) {
				return object{"subnet_id": subnet["id"], "ip_address": address.String()}, nil
			}
		}
	}
	return nil, conflict("IpAddressGenerationFailure", "No more IP addresses available on network %s.", network["id"])
}

// taken reports whether a port has an address, the one that is being made
// included.
func (s *Server) taken(address netip.Addr, subnetID any, port object) bool {
	for _, other := range append(s.portsOf(object{"id": port["network_id"]}), port) {
		for _, fixed := range other["fixed_ips"].([]any) {
			if fixed.(object)["subnet_id"] == subnetID && fixed.(object)["ip_address"] == address.String() {
				return true
			}
		}
	}
	return false
}

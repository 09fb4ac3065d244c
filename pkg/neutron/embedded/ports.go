package embedded

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/netip"
)

func newPorts(quota int) *collection {
	return &collection{
		name: "port", plural: "ports", typeName: "Port",
		quota: quota, firstRevision: 1, objects: map[string]object{},
		attributes: common(map[string]attribute{
			"network_id":            {post: true, required: true, check: uuid("network_id")},
			"fixed_ips":             {post: true, check: list("fixed_ips")},
			"mac_address":           {post: true, check: text("mac_address")},
			"admin_state_up":        {post: true, put: true, fallback: true, check: boolean},
			"status":                {fallback: "DOWN"},
			"device_id":             {post: true, put: true, fallback: "", check: text("device_id")},
			"device_owner":          {post: true, put: true, fallback: "", check: text("device_owner")},
			"port_security_enabled": {post: true, put: true, fallback: true, check: boolean},
			"security_groups":       {post: true, put: true, fallback: []any{}, check: list("security_groups")},
			"allowed_address_pairs": {post: true, put: true, fallback: []any{}, check: list("allowed_address_pairs")},
		}),
		prepare: preparePort,
		remove:  func(*Server, object) *apiError { return nil },
	}
}

// preparePort gives a new port its addresses: those it asks for, or one of the
// first subnet of each IP version.
func preparePort(s *Server, o, given, before object) *apiError {
	if before != nil {
		return nil
	}
	network := o["network_id"].(string)
	if _, ok := s.collections["networks"].objects[network]; !ok {
		return s.collections["networks"].missing(network)
	}
	wanted, _ := o["fixed_ips"].([]any)
	if given["fixed_ips"] == nil {
		wanted = s.oneOfEachVersion(network)
	}
	fixed := []any{}
	for _, item := range wanted {
		asked, _ := item.(object)
		address, failure := s.fixedIP(network, asked, fixed)
		if failure != nil {
			return failure
		}
		fixed = append(fixed, address)
	}
	o["fixed_ips"] = fixed
	if o["mac_address"] == nil {
		var b [3]byte
		_, _ = rand.Read(b[:]) // never fails
		o["mac_address"] = fmt.Sprintf("fa:16:3e:%02x:%02x:%02x", b[0], b[1], b[2])
	}
	return nil
}

func (s *Server) oneOfEachVersion(network string) []any {
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
func (s *Server) fixedIP(network string, asked object, own []any) (object, *apiError) {
	for _, subnet := range s.subnetsOf(network) {
		cidr := netip.MustParsePrefix(subnet["cidr"].(string))
		text, _ := asked["ip_address"].(string)
		address, err := netip.ParseAddr(text)
		switch {
		case asked["subnet_id"] != nil && asked["subnet_id"] != subnet["id"]:
			continue
		case text == "":
			if address = s.freeAddress(subnet, own); !address.IsValid() {
				return nil, &apiError{http.StatusConflict, "IpAddressGenerationFailure",
					fmt.Sprintf("No more IP addresses available on network %s.", network)}
			}
		case err != nil || !cidr.Contains(address):
			continue
		case s.taken(address, subnet["id"], own):
			return nil, &apiError{http.StatusConflict, "IpAddressAlreadyAllocated",
				fmt.Sprintf("IP address %s already allocated in subnet %s", address, subnet["id"])}
		}
		return object{"subnet_id": subnet["id"], "ip_address": address.String()}, nil
	}
	return nil, invalidInput("Failed to create port on network %s, because fixed_ips included invalid subnet %v.", network, asked["subnet_id"])
}

// freeAddress returns the first address in the pools that no port has.
func (s *Server) freeAddress(subnet object, own []any) netip.Addr {
	for _, p := range poolsOf(subnet) {
		for address := p.start; address.IsValid() && p.has(address); address = address.Next() {
			if !s.taken(address, subnet["id"], own) {
				return address
			}
		}
	}
	return netip.Addr{}
}

func (s *Server) taken(address netip.Addr, subnetID any, own []any) bool {
	has := func(fixedIPs []any) bool {
		for _, fixed := range fixedIPs {
			if fixed.(object)["subnet_id"] == subnetID && fixed.(object)["ip_address"] == address.String() {
				return true
			}
		}
		return false
	}
	for _, port := range s.collections["ports"].objects {
		if has(port["fixed_ips"].([]any)) {
			return true
		}
	}
	return has(own)
}

package openstack

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
)

// Addresses are those that settings from somebody else may lead to: the URLs that an
// administrator allows, and what the catalog of a Keystone there names. Whatever a name
// resolves to, no connection goes to this machine, to its link, or to a service for the
// metadata of machines, unless the list has that very IP address and port.
type Addresses struct{ allowed []*url.URL }

// ParseAddresses returns the Addresses for a list of URLs. Its errors do not repeat a URL,
// which may hold a password.
func ParseAddresses(list []string) (*Addresses, error) {
	a := &Addresses{}
	for i, text := range list {
		u, err := parseURL(text, "v3")
		if err != nil {
			return nil, fmt.Errorf("URL %d %w", i+1, err)
		}
		a.allowed = append(a.allowed, u)
	}
	return a, nil
}

// allows reports whether a URL is one of the list, or below one.
func (a *Addresses) allows(u *url.URL) bool {
	return slices.ContainsFunc(a.allowed, func(allowed *url.URL) bool {
		isBelow := strings.HasPrefix("/"+strings.TrimLeft(u.Path, "/")+"/", allowed.Path+"/")
		return u.Scheme == allowed.Scheme && strings.EqualFold(hostPort(u), hostPort(allowed)) &&
			isBelow && !strings.Contains(u.Path, "..")
	})
}

// errForbiddenAddress does not repeat the address: it would tell who wrote the settings
// what a name resolves to inside of the cluster.
var errForbiddenAddress = errors.New("the address is one of this machine, of its link, or of metadata, " +
	"to which no Secret may lead")

// control is a Control function of a net.Dialer: it is called with each IP address, after
// names have been resolved.
func (a *Addresses) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return errForbiddenAddress
	}
	isListed := func(u *url.URL) bool {
		listed, err := netip.ParseAddrPort(hostPort(u))
		return err == nil && listed.Port() == to.Port() && listed.Addr().Unmap() == to.Addr().Unmap()
	}
	if isForbidden(to.Addr()) && !slices.ContainsFunc(a.allowed, isListed) {
		return errForbiddenAddress
	}
	return nil
}

var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96") // an IPv4 address follows
	translated = []netip.Prefix{                       // others with an IPv4 address in them
		netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"),
	}
	thisHost  = netip.MustParsePrefix("0.0.0.0/8")
	broadcast = netip.MustParseAddr("255.255.255.255")
	// metadataServices are those of clouds that are not link-local.
	metadataServices = []netip.Addr{
		netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"), // Amazon, Google
		netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16"), // Alibaba, Azure
		netip.MustParseAddr("192.0.0.192"), // Oracle
	}
)

func isForbidden(address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	if nat64.Contains(address) {
		bytes := address.As16()
		address = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return !address.IsValid() || address.IsLoopback() || address.IsUnspecified() || address.IsLinkLocalUnicast() ||
		slices.ContainsFunc(translated, func(p netip.Prefix) bool { return p.Contains(address) }) ||
		address.IsMulticast() || thisHost.Contains(address) || address == broadcast ||
		slices.Contains(metadataServices, address)
}

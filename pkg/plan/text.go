package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// allocationText describes a range from a subnet pool. The prefix length is 0 for
// the default of the subnet pool.
func allocationText(pool string, prefixLength int) string {
	if prefixLength == 0 {
		return "a range from subnet pool " + pool
	}
	return fmt.Sprintf("a /%d from subnet pool %s", prefixLength, pool)
}

func modesText(addressMode, raMode string) string {
	switch {
	case addressMode+raMode == "":
		return ""
	case raMode == "":
		return " with address mode " + addressMode
	case addressMode == "":
		return " with RA mode " + raMode
	}
	return fmt.Sprintf(" with address mode %s and RA mode %s", addressMode, raMode)
}

func poolText(pool neutron.Pool) string { return pool.Start.String() + "-" + pool.End.String() }

func routeText(route neutron.HostRoute) string {
	return route.Destination.String() + " via " + route.NextHop.String()
}

func addrText(address netip.Addr) string {
	if !address.IsValid() {
		return "none"
	}
	return address.String()
}

func routerText(i neutron.RouterInterface) string {
	return fmt.Sprintf("subnet %s to router %s", i.SubnetID, i.RouterID)
}

func changesText(changes []Change) string {
	return strings.Join(textsOf(changes, Change.String), ", ")
}

func listText[T any](values []T, text func(T) string) string {
	if len(values) == 0 {
		return "none"
	}
	return strings.Join(textsOf(values, text), " and ")
}

func textsOf[T any](values []T, text func(T) string) (texts []string) {
	for _, value := range values {
		texts = append(texts, text(value))
	}
	return texts
}

// filter returns the values for which keep is true, and leaves the list unchanged. The
// result is nil only if the list is.
func filter[T any](values []T, keep func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(values), func(value T) bool { return !keep(value) })
}

// maxNamed limits how many objects a message names.
const maxNamed = 10

func firstOf(texts []string) string {
	if len(texts) > maxNamed {
		texts = append(slices.Clone(texts[:maxNamed]), fmt.Sprintf("and %d more", len(texts)-maxNamed))
	}
	return strings.Join(texts, ", ")
}

func networkIDs(networks []neutron.Network) []string {
	return sortedIDs(networks, func(n neutron.Network) string { return n.ID })
}

func subnetIDs(subnets []neutron.Subnet) []string {
	return sortedIDs(subnets, func(s neutron.Subnet) string { return s.ID })
}

func sortedIDs[T any](objects []T, id func(T) string) []string {
	return slices.Sorted(slices.Values(textsOf(objects, id)))
}

package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/samplecrd/network-controller/example/portrule/v1"
)

// access is a PortRule in values that can be compared: who may connect to a port.
type access struct {
	rule      string // the name of the PortRule
	port      port
	sources   *netipx.IPSet // nil is any address
	permanent bool
}

// port is what is restricted. An invalid host is every address of the node.
type port struct {
	protocol string
	number   uint16
	host     netip.Addr
}

// accessOf returns an error if the PortRule has a value that the CRD rejects: the CRD that
// is installed may be another one.
func accessOf(rule *v1.PortRule) (access, error) {
	a := access{rule: rule.Name, permanent: rule.Spec.IsPermanent}
	a.port = port{protocol: cmp.Or(rule.Spec.Protocol, "tcp"), number: uint16(rule.Spec.Port)}
	if protocols[a.port.protocol] == 0 || int32(a.port.number) != rule.Spec.Port || rule.Spec.Port == 0 {
		return a, fmt.Errorf("spec: %s port %d does not exist", rule.Spec.Protocol, rule.Spec.Port)
	}
	var err error
	if rule.Spec.Host != "" {
		if a.port.host, err = netip.ParseAddr(rule.Spec.Host); err != nil {
			return a, fmt.Errorf("spec.host: %w", err)
		}
	}
	if len(rule.Spec.Sources) == 0 {
		return a, nil
	}
	var sources netipx.IPSetBuilder // it merges what overlaps, which nftables rejects
	for _, source := range rule.Spec.Sources {
		prefix, err := netip.ParsePrefix(source)
		if err != nil {
			return a, fmt.Errorf("spec.sources: %w", err)
		}
		sources.AddPrefix(prefix)
	}
	a.sources, err = sources.IPSet()
	return a, err
}

// concerns reports whether a PortRule is meant for a node with these labels.
func concerns(rule *v1.PortRule, node map[string]string) bool {
	return rule.DeletionTimestamp.IsZero() && labels.SelectorFromSet(rule.Spec.NodeSelector).Matches(labels.Set(node))
}

// portsOf returns each port once, in a stable order.
func portsOf(all []access) []port {
	var ports []port
	for _, a := range all {
		ports = append(ports, a.port)
	}
	slices.SortFunc(ports, func(a, b port) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.protocol, b.protocol), a.host.Compare(b.host))
	})
	return slices.Compact(ports)
}

// version returns the IP version of the port's host: 4, 6, or 0 for both.
func (p port) version() int {
	return map[int]int{32: 4, 128: 6}[p.host.BitLen()]
}

// families returns the IP versions of the sources that may connect to the port. Version 0
// is both.
func (a access) families() []int {
	if a.sources == nil {
		return []int{a.port.version()}
	}
	return slices.DeleteFunc([]int{4, 6}, func(version int) bool {
		return len(a.ranges(version)) == 0 || a.port.host.IsValid() && a.port.version() != version
	})
}

// ranges returns the sources of an IP version, or nil if every address is one.
func (a access) ranges(version int) []netipx.IPRange {
	if a.sources == nil {
		return nil
	}
	return slices.DeleteFunc(a.sources.Ranges(), func(r netipx.IPRange) bool { return r.From().Is4() != (version == 4) })
}

package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/samplecrd/network-controller/example/portrule/apis/firewalld/v1"
)

// access is a PortRule in values that can be compared: who may connect to a port.
type access struct {
	rule      string // the name of the PortRule
	port      port
	sources   []netip.Prefix // an invalid one is any address
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
	spec := rule.Spec
	a := access{rule: rule.Name, permanent: spec.IsPermanent}
	a.port = port{protocol: cmp.Or(spec.Protocol, "tcp"), number: uint16(spec.Port)} //nolint:gosec // checked below
	if protocols[a.port.protocol] == 0 || int32(a.port.number) != spec.Port || spec.Port == 0 {
		return a, fmt.Errorf("spec: %s port %d does not exist", spec.Protocol, spec.Port)
	}
	if spec.Host != "" {
		var err error
		if a.port.host, err = netip.ParseAddr(spec.Host); err != nil {
			return a, fmt.Errorf("spec.host: %w", err)
		}
	}
	if len(spec.Sources) == 0 {
		a.sources = []netip.Prefix{{}}
	}
	for _, text := range spec.Sources {
		source, err := netip.ParsePrefix(text)
		if err != nil {
			return a, fmt.Errorf("spec.sources: %w", err)
		}
		if !a.port.host.IsValid() || source.Addr().Is4() == a.port.host.Is4() { // others cannot reach the host
			a.sources = append(a.sources, source.Masked())
		}
	}
	return a, nil
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

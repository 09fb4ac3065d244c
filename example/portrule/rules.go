package main

import (
	"cmp"
	"fmt"
	"net/netip"

	v1 "github.com/samplecrd/network-controller/example/portrule/apis/firewalld/v1"
)

// access is who may connect to a port, in values that can be compared. A PortRule has one for
// each source.
type access struct {
	rule      string // the name of the PortRule
	port      port
	source    netip.Prefix // an invalid one is any address
	permanent bool
}

// port is what is restricted. An invalid host is every address of the node.
type port struct {
	protocol string
	number   uint16
	host     netip.Addr
}

// accessesOf returns an error if the PortRule has a value that the CRD rejects: the CRD that
// is installed may be another one.
func accessesOf(rule *v1.PortRule) (all []access, err error) {
	spec := rule.Spec
	a := access{rule: rule.Name, permanent: spec.IsPermanent}
	a.port = port{protocol: cmp.Or(spec.Protocol, "tcp"), number: uint16(spec.Port)} //nolint:gosec // checked below
	if protocols[a.port.protocol] == 0 || int32(a.port.number) != spec.Port || spec.Port == 0 {
		return nil, fmt.Errorf("spec: %s port %d does not exist", spec.Protocol, spec.Port)
	}
	if spec.Host != "" {
		if a.port.host, err = netip.ParseAddr(spec.Host); err != nil {
			return nil, fmt.Errorf("spec.host: %w", err)
		}
	}
	if len(spec.Sources) == 0 {
		return []access{a}, nil
	}
	for _, text := range spec.Sources {
		source, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("spec.sources: %w", err)
		}
		a.source = source.Masked()
		all = append(all, a)
	}
	return all, nil
}

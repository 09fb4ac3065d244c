package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// peer is a program to measure.
type peer struct {
	Name    string // for flags and files
	Title   string // for tables
	group   string // the API group of its Networks
	program string
	flags   []string
	isBare  bool // it sends no Events, and checks nothing
}

const (
	group           = "samplecrd.k8s.io"
	schemalessGroup = "bench.example.com"

	nameSchemaless        = "roofline-schemaless"
	nameRoofline          = "roofline"
	nameOurs              = "controller"
	nameControllerRuntime = "controller-runtime"
)

// allPeers returns the programs that make bench has built.
func allPeers(root string) []peer {
	roofline := filepath.Join(root, "build", "bin", "bench-roofline")
	return []peer{
		{
			Name: nameSchemaless, Title: "bare client, CRD without a schema", group: schemalessGroup,
			program: roofline, flags: []string{"-group=" + schemalessGroup}, isBare: true,
		},
		{Name: nameRoofline, Title: "bare client, our CRD", group: group, program: roofline, isBare: true},
		{Name: nameOurs, Title: "this controller", group: group, program: filepath.Join(root, "samplecrd-controller")},
		{
			Name: nameControllerRuntime, Title: "on controller-runtime", group: group,
			program: filepath.Join(root, "build", "bin", "bench-controller-runtime"),
		},
	}
}

// selectPeers returns the peers that -only names; all if it is empty.
func selectPeers(all []peer, only string) ([]peer, error) {
	if only == "" {
		return all, nil
	}
	names, known := strings.Split(only, ","), []string{}
	selected := slices.DeleteFunc(slices.Clone(all), func(p peer) bool {
		known = append(known, p.Name)
		return !slices.Contains(names, p.Name)
	})
	if len(selected) < len(names) {
		return nil, fmt.Errorf("-only is %q: the names are %s", only, strings.Join(known, ", "))
	}
	return selected, nil
}

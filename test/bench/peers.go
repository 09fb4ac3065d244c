package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// peer is a program to measure.
type peer struct {
	Name  string // for flags and files
	Title string // for tables
	group string // the API group of its Networks

	program string
	flags   []string
	// noEvents: it sends no Events, so nothing has to wait for them.
	noEvents bool
	// lists: it detects changes in Neutron by lists of all objects, and not one by one.
	lists bool
}

const (
	group           = "samplecrd.k8s.io"
	schemalessGroup = "bench.example.com"

	nameSchemaless        = "roofline-schemaless"
	nameRoofline          = "roofline"
	nameOurs              = "controller"
	nameCourse            = "course"
	nameControllerRuntime = "controller-runtime"
)

// allPeers returns the programs that make bench has built.
func allPeers(root string) []peer {
	built := func(name string) string { return filepath.Join(root, "build", "bin", "bench-"+name) }
	return []peer{
		{Name: nameSchemaless, Title: "bare client, CRD without a schema", group: schemalessGroup, program: built("roofline"), flags: []string{"-group=" + schemalessGroup}, noEvents: true},
		{Name: nameRoofline, Title: "bare client, our CRD", group: group, program: built("roofline"), noEvents: true},
		{Name: nameOurs, Title: "this controller", group: group, program: filepath.Join(root, "samplecrd-controller"), lists: true},
		{Name: nameControllerRuntime, Title: "on controller-runtime", group: group, program: built("controller-runtime")},
		{Name: nameCourse, Title: "as in the course", group: group, program: built("course")},
	}
}

// selectPeers returns the peers that -only names; all if it is empty.
func selectPeers(all []peer, only string) ([]peer, error) {
	if only == "" {
		return all, nil
	}
	names := strings.Split(only, ",")
	selected := slices.DeleteFunc(slices.Clone(all), func(p peer) bool { return !slices.Contains(names, p.Name) })
	if len(selected) < len(names) {
		var known []string
		for _, p := range all {
			known = append(known, p.Name)
		}
		return nil, fmt.Errorf("-only is %q: the names are %s", only, strings.Join(known, ", "))
	}
	return selected, nil
}

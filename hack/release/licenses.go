package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/anchore/syft/syft/pkg"
	"github.com/anchore/syft/syft/sbom"
)

// allowed are the licences that what we ship may have: they ask for no more
// than to be passed on.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// module is one that the binary is made of, by its path. It has several licences
// where parts of it are others' work, and texts that must be passed on: of the
// licences, and notices.
type module struct {
	path     string
	licenses []string
	texts    []string
}

// licenses returns all modules but our own, in the order of their paths. It
// errs where it knows no licence of one, or where one may not be shipped.
func licenses(found *sbom.SBOM) ([]module, error) {
	var modules []module
	var errs []error
	for _, p := range found.Artifacts.Packages.Sorted() {
		if p.Name == product {
			continue
		}
		m := module{path: p.Name}
		for _, l := range p.Licenses.ToSlice() {
			if onlyIn(l, notShipped) {
				continue
			}
			if l.Contents != "" { // Go's own does not lie in the module cache
				m.texts = append(m.texts, l.Contents)
			}
			switch {
			case onlyIn(l, notice):
				continue
			case l.SPDXExpression == "":
				errs = append(errs, fmt.Errorf("%s: a licence is none that is known: %s", p.Name, strings.Join(l.URLs, ", ")))
			case !slices.Contains(allowed, l.SPDXExpression):
				errs = append(errs, fmt.Errorf("%s: its licence %s is not allowed (%s are)", p.Name, l.SPDXExpression, strings.Join(allowed, ", ")))
			}
			m.licenses = append(m.licenses, l.SPDXExpression)
		}
		if len(m.licenses) == 0 {
			errs = append(errs, fmt.Errorf("%s: no licence is found in the module cache", p.Name))
		}
		slices.Sort(m.licenses)
		m.licenses = slices.Compact(m.licenses)
		modules = append(modules, m)
	}
	if len(modules) == 0 {
		errs = append(errs, errors.New("the binary does not say which modules it is made of"))
	}
	return modules, errors.Join(errs...)
}

// onlyIn reports whether what was taken for a licence lies only in such files.
func onlyIn(l pkg.License, such func(string) bool) bool {
	return len(l.URLs) > 0 && !slices.ContainsFunc(l.URLs, func(url string) bool { return !such(url) })
}

// notShipped are files whose names begin as those of licences do, and which are
// about licences, or for tests, which Go does not build.
func notShipped(url string) bool {
	return path.Ext(url) == ".go" || strings.Contains(url, "/testdata/")
}

func notice(url string) bool {
	return strings.HasPrefix(path.Base(url), "NOTICE")
}

// writeTexts writes what the licences want to be passed on with a binary.
func writeTexts(file string, modules []module) error {
	var out strings.Builder
	for _, m := range modules {
		slices.Sort(m.texts)
		for _, text := range slices.Compact(m.texts) {
			fmt.Fprintf(&out, "=== %s\n\n%s\n\n", m.path, strings.TrimSpace(text))
		}
	}
	return os.WriteFile(file, []byte(out.String()), 0o644)
}

// writeTable writes the modules without their versions: go.mod has them, and
// they would change this file each time.
func writeTable(file string, modules []module) error {
	var out strings.Builder
	out.WriteString(`<!-- Made by make licenses. Do not edit. -->
# What the controller is made of

The modules that are in the binary, and the licences that lie in them; several, where parts of a module are others' work. The versions are in [go.mod](../go.mod).
` + "`make licenses` makes this list of the binary, and fails when a licence is another than " + strings.Join(allowed, ", ") + `.

| module | licence |
|---|---|
`)
	for _, m := range modules {
		fmt.Fprintf(&out, "| %s | %s |\n", m.path, strings.Join(m.licenses, ", "))
	}
	return os.WriteFile(file, []byte(out.String()), 0o644)
}

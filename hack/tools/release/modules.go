package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
	"golang.org/x/mod/module"
)

// allowed are the licences that may be shipped: they require only that their
// text is passed on.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// minCoverage is how many percent of a file must be the text of known licences.
const minCoverage = 75

// dependency is a module in the binary. It has several licences if parts of the
// module have other authors.
type dependency struct {
	module.Version
	sum      string
	licenses []string // SPDX identifiers
	texts    []string // licences and notices that must be passed on
}

// dependencies returns the modules that Go recorded in a binary, in the order of
// their paths, and Go's standard library first.
func dependencies(ctx context.Context, binary string) ([]dependency, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	if len(info.Deps) == 0 {
		return nil, errors.New("the binary does not name its modules")
	}
	output, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("finding the module cache: %w", err)
	}
	folders := strings.Fields(string(output))
	goLicense := goLicenseOnly{os.DirFS(folders[1])}

	all := []dependency{{Version: module.Version{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}}}
	errs := []error{all[0].readLicenses(goLicense)}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		d := dependency{Version: module.Version{Path: m.Path, Version: m.Version}, sum: m.Sum}
		folder, err := cached(d.Version)
		if err == nil {
			err = d.readLicenses(os.DirFS(filepath.Join(folders[0], folder)))
		}
		errs = append(errs, err)
		all = append(all, d)
	}
	return all, errors.Join(errs...)
}

// cached returns the folder of a module, relative to the module cache.
func cached(v module.Version) (string, error) {
	name, err := module.EscapePath(v.Path)
	if err != nil {
		return "", err
	}
	version, err := module.EscapeVersion(v.Version)
	if err != nil {
		return "", err
	}
	return filepath.FromSlash(name) + "@" + version, nil
}

// goLicenseOnly hides the folders of GOROOT, which are tests and vendored modules.
type goLicenseOnly struct{ fs.FS }

func (g goLicenseOnly) ReadDir(string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(g.FS, ".")
	return slices.DeleteFunc(entries, fs.DirEntry.IsDir), err
}

// legalFile are the names of licences and notices.
var legalFile = regexp.MustCompile(`(?i)^((mit[-_])?(un)?licen[cs]es?|copying|notice)\b`)

// readLicenses reads the licences and notices in a module's folder. It returns an
// error if there is no licence, or one that may not be shipped.
func (d *dependency) readLicenses(folder fs.FS) error {
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "testdata": // not in the binary
			return fs.SkipDir
		case entry.IsDir(), path.Ext(name) == ".go", !legalFile.MatchString(entry.Name()):
			return nil
		}
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return err
		}
		d.texts = append(d.texts, strings.TrimSpace(string(text)))
		if strings.HasPrefix(strings.ToUpper(entry.Name()), "NOTICE") {
			return nil
		}
		return d.addLicense(name, text)
	})
	if err == nil && len(d.licenses) == 0 {
		err = errors.New("no licence found")
	}
	if err != nil {
		return fmt.Errorf("reading the licences of %s: %w", d.Path, err)
	}
	slices.Sort(d.licenses)
	d.licenses = slices.Compact(d.licenses)
	slices.Sort(d.texts)
	d.texts = slices.Compact(d.texts)
	return nil
}

func (d *dependency) addLicense(name string, text []byte) error {
	coverage := licensecheck.Scan(text)
	if coverage.Percent < minCoverage {
		return fmt.Errorf("%s is not a known licence", name)
	}
	for _, match := range coverage.Match {
		if !slices.Contains(allowed, match.ID) {
			return fmt.Errorf("%s: licence %s is not allowed (allowed: %s)", name, match.ID, strings.Join(allowed, ", "))
		}
		d.licenses = append(d.licenses, match.ID)
	}
	return nil
}

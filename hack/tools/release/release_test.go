package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func TestLicenses(t *testing.T) {
	const (
		allowed = "Licensed under the Apache License, Version 2.0 (the \"License\"); you may not use this file except in compliance with the License."
		gpl     = "This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as published by the Free Software Foundation, version 3."
		unknown = "You may look at this on Sundays."
	)
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"allowed":                   {fstest.MapFS{"LICENSE": {Data: []byte(allowed)}, "LICENSE.go": {Data: []byte(gpl)}}, ""},
		"allowed, with a notice":    {fstest.MapFS{"License.txt": {Data: []byte(allowed)}, "NOTICE.md": {Data: []byte(unknown)}}, ""},
		"not allowed":               {fstest.MapFS{"LICENSE": {Data: []byte(gpl)}}, "is not allowed"},
		"not allowed, in a folder":  {fstest.MapFS{"LICENSE": {Data: []byte(allowed)}, "third_party/COPYING": {Data: []byte(gpl)}}, "third_party/COPYING: licence GPL"},
		"two, of which one is not":  {fstest.MapFS{"LICENSE": {Data: []byte(allowed + "\n" + gpl)}}, "is not allowed"},
		"unknown":                   {fstest.MapFS{"LICENSE": {Data: []byte(unknown)}}, "LICENSE is not a known licence"},
		"only a notice":             {fstest.MapFS{"NOTICE": {Data: []byte(allowed)}}, "no licence found"},
		"only test data":            {fstest.MapFS{"a/testdata/LICENSE": {Data: []byte(allowed)}}, "no licence found"},
		"a file with another name":  {fstest.MapFS{"licensed.md": {Data: []byte(allowed)}}, "no licence found"},
		"test data is not examined": {fstest.MapFS{"MIT-LICENSE": {Data: []byte(allowed)}, "testdata/LICENSE": {Data: []byte(gpl)}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var d dependency
			err := d.readLicenses(c.files)
			if c.want == "" && err != nil {
				t.Errorf("error %v, want none", err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestBinaryWithoutModules(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "go")
	if err := os.WriteFile(binary, []byte("not a Go binary"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dependencies(t.Context(), binary); err == nil {
		t.Error("no error for a file that is no Go binary")
	}
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	// gofmt has no modules except Go's own.
	if _, err := dependencies(t.Context(), filepath.Join(strings.TrimSpace(string(root)), "bin", "gofmt")); err == nil {
		t.Error("no error for a binary without modules")
	}
}

// The SBOM does not depend on the folder or the time of the build.
func TestSBOM(t *testing.T) {
	var sboms [][]byte
	for _, folder := range []string{t.TempDir(), t.TempDir()} {
		binary := filepath.Join(folder, "controller")
		build := exec.CommandContext(t.Context(), "../image/build.sh", "linux", "amd64", binary)
		build.Env = append(os.Environ(), "VERSION=v0.0.0-test")
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building: %v\n%s", err, output)
		}
		sbom := filepath.Join(folder, "sbom.json")
		if err := run(t.Context(), []string{"-sbom", sbom, "-version", "v0.0.0-test", binary}); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(sbom)
		if err != nil {
			t.Fatal(err)
		}
		sboms = append(sboms, content)
	}
	if !bytes.Equal(sboms[0], sboms[1]) {
		t.Error("the SBOMs of two folders differ")
	}
	for _, want := range []string{`"CycloneDX"`, `"pkg:golang/k8s.io/client-go@v`, `"pkg:golang/stdlib@1.`, `"Apache-2.0"`, `"h1:`} {
		if !bytes.Contains(sboms[0], []byte(want)) {
			t.Errorf("the SBOM does not have %s", want)
		}
	}
}

// The check fails if the database has a vulnerability in a function that the
// controller calls, and, unless the caller allows it, if there is no database.
func TestVulncheck(t *testing.T) {
	if testing.Short() {
		t.Skip("takes two minutes")
	}
	empty, hit := t.TempDir(), t.TempDir()
	for name, content := range map[string]string{
		"index/db.json":      `{"modified":"2026-01-01T00:00:00Z"}`,
		"index/modules.json": `[{"path":"k8s.io/client-go","vulns":[{"id":"GO-0000-0001","modified":"2026-01-01T00:00:00Z"}]}]`,
		"index/vulns.json":   `[{"id":"GO-0000-0001","modified":"2026-01-01T00:00:00Z"}]`,
		"ID/GO-0000-0001.json": `{"schema_version":"1.3.1","id":"GO-0000-0001","modified":"2026-01-01T00:00:00Z","published":"2026-01-01T00:00:00Z",
			"summary":"invented for a test","details":"invented for a test","affected":[{"package":{"name":"k8s.io/client-go","ecosystem":"Go"},
			"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}],
			"ecosystem_specific":{"imports":[{"path":"k8s.io/client-go/tools/cache","symbols":["NewSharedIndexInformerWithOptions"]}]}}]}`,
	} {
		path := filepath.Join(hit, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		database string
		allow    string
		want     string
		fails    bool
	}{
		"a finding":                     {hit, "", "GO-0000-0001", true},
		"a finding is never allowed":    {hit, "yes", "GO-0000-0001", true},
		"no database":                   {empty, "", "NOTHING WAS CHECKED", true},
		"no database, which is allowed": {empty, "yes", "NOTHING WAS CHECKED", false},
	} {
		t.Run(name, func(t *testing.T) {
			check := exec.CommandContext(t.Context(), "./vulncheck.sh")
			check.Env = append(os.Environ(), "GOVULNDB=file://"+c.database, "VULNCHECK_ALLOW_NO_DATABASE="+c.allow)
			output, err := check.CombinedOutput()
			if (err != nil) != c.fails || !strings.Contains(string(output), c.want) {
				t.Errorf("error %v, output:\n%s", err, output)
			}
		})
	}
}

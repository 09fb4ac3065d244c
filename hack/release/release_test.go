package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anchore/syft/syft/pkg"
	"github.com/anchore/syft/syft/sbom"
)

func TestLicensesThatMayNotBeShipped(t *testing.T) {
	for name, c := range map[string]struct {
		license pkg.License
		want    string
	}{
		"allowed":        {pkg.License{SPDXExpression: "MIT", URLs: []string{"a/LICENSE"}}, ""},
		"not allowed":    {pkg.License{SPDXExpression: "GPL-3.0-only", URLs: []string{"a/LICENSE"}}, "GPL-3.0-only is not allowed"},
		"unknown":        {pkg.License{Value: "sha256:0", URLs: []string{"a/LICENSE"}}, "is none that is known"},
		"only a notice":  {pkg.License{Value: "sha256:0", URLs: []string{"a/NOTICE.md"}}, "no licence is found"},
		"only test data": {pkg.License{Value: "MIT", URLs: []string{"a/testdata/LICENSE"}}, "no licence is found"},
		"of the tests, and of the rest": {
			pkg.License{SPDXExpression: "GPL-3.0-only", URLs: []string{"a/testdata/LICENSE", "a/LICENSE"}}, "GPL-3.0-only is not allowed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := &sbom.SBOM{Artifacts: sbom.Artifacts{Packages: pkg.NewCollection(pkg.Package{
				Name: "example.org/module", Version: "v1.0.0", Type: pkg.GoModulePkg, Licenses: pkg.NewLicenseSet(c.license),
			})}}
			_, err := licenses(found)
			if c.want == "" && err != nil {
				t.Errorf("it is refused: %v", err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestBinaryWithoutModules(t *testing.T) {
	if _, err := licenses(&sbom.SBOM{Artifacts: sbom.Artifacts{Packages: pkg.NewCollection()}}); err == nil {
		t.Error("a binary of which nothing is known passes")
	}
}

// Neither the folder nor the time of day shows in an SBOM.
func TestBillIsReproducible(t *testing.T) {
	var bills [][]byte
	for _, folder := range []string{t.TempDir(), t.TempDir()} {
		binary := filepath.Join(folder, "controller")
		build := exec.CommandContext(t.Context(), "../image/build.sh", "linux", "amd64", binary)
		build.Env = append(os.Environ(), "VERSION=v0.0.0-test")
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building: %v\n%s", err, output)
		}
		bill := filepath.Join(folder, "bill.json")
		if err := run(t.Context(), []string{"-sbom", bill, "-version", "v0.0.0-test", binary}); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(bill)
		if err != nil {
			t.Fatal(err)
		}
		bills = append(bills, content)
	}
	if !bytes.Equal(bills[0], bills[1]) {
		t.Error("two folders give two SBOMs")
	}
	for _, want := range []string{`"CycloneDX"`, `"pkg:golang/k8s.io/client-go@v`, `"Apache-2.0"`} {
		if !bytes.Contains(bills[0], []byte(want)) {
			t.Errorf("the SBOM does not have %s", want)
		}
	}
}

// A database with one vulnerability, in a function that the controller calls,
// makes the check fail; a folder without one does, too, unless the caller says
// otherwise.
func TestVulncheck(t *testing.T) {
	empty, hit := t.TempDir(), t.TempDir()
	for name, content := range map[string]string{
		"index/db.json":      `{"modified":"2026-01-01T00:00:00Z"}`,
		"index/modules.json": `[{"path":"k8s.io/client-go","vulns":[{"id":"GO-0000-0001","modified":"2026-01-01T00:00:00Z"}]}]`,
		"index/vulns.json":   `[{"id":"GO-0000-0001","modified":"2026-01-01T00:00:00Z"}]`,
		"ID/GO-0000-0001.json": `{"schema_version":"1.3.1","id":"GO-0000-0001","modified":"2026-01-01T00:00:00Z","published":"2026-01-01T00:00:00Z",
			"summary":"made up for a test","details":"made up for a test","affected":[{"package":{"name":"k8s.io/client-go","ecosystem":"Go"},
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
		"a finding":                         {hit, "", "GO-0000-0001", true},
		"a finding is never allowed":        {hit, "yes", "GO-0000-0001", true},
		"no database":                       {empty, "", "NOTHING WAS CHECKED", true},
		"no database, and that is expected": {empty, "yes", "NOTHING WAS CHECKED", false},
	} {
		t.Run(name, func(t *testing.T) {
			check := exec.CommandContext(t.Context(), "./vulncheck.sh")
			check.Env = append(os.Environ(), "GOVULNDB=file://"+c.database, "VULNCHECK_ALLOW_NO_DATABASE="+c.allow)
			output, err := check.CombinedOutput()
			if (err != nil) != c.fails || !strings.Contains(string(output), c.want) {
				t.Errorf("it ends with %v and says:\n%s", err, output)
			}
		})
	}
}

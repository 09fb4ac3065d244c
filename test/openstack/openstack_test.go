package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samplecrd/network-controller/test/internal/require"
)

// Each cloud is in both files. Secrets are only in secure.yaml.
func TestClouds(t *testing.T) {
	c := &cloud{
		dir:       t.TempDir(),
		passwords: passwords{Admin: "SECRET-1", Neutron: "SECRET-2", Ours: "SECRET-3", OtherTenant: "SECRET-4"},
		// Without quotes, this would be read as a number.
		credential: credential{ID: "00000000000000000000000000001e10", Secret: "SECRET-5"},
	}
	if err := c.writeClouds(); err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, name := range []string{"clouds.yaml", "secure.yaml"} {
		path := filepath.Join(c.dir, name)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(content)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want only its owner to read it", name, info.Mode(), err)
		}
		for cloud := range strings.FieldsSeq(cloudNames) {
			if !strings.Contains(texts[name], "\n  "+cloud+":\n") {
				t.Errorf("%s has no cloud %s", name, cloud)
			}
		}
	}
	if strings.Contains(texts["clouds.yaml"], "SECRET") {
		t.Errorf("%s has a secret:\n%s", "clouds.yaml", texts["clouds.yaml"])
	}
	if want := `"` + c.credential.ID + `"`; !strings.Contains(texts["clouds.yaml"], want) {
		t.Errorf("%s has no %s", "clouds.yaml", want)
	}
	for _, secret := range []string{c.passwords.Admin, c.passwords.Ours, c.passwords.OtherTenant, c.credential.Secret} {
		if !strings.Contains(texts["secure.yaml"], `"`+secret+`"`) {
			t.Errorf("%s has no %s", "secure.yaml", secret)
		}
	}
}

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{{"restart"}, {"exec"}, {"exec", "--"}} {
		if got, err := run(args); got != require.ExitUsage || err != nil {
			t.Errorf("%v: exit code is %d (%v), want %d", args, got, err, require.ExitUsage)
		}
	}
	if _, err := run([]string{"exec", "--", "/no/such/command"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v, want that the command does not exist", err)
	}
}

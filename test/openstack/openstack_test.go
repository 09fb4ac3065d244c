package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
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
	for _, name := range []string{cloudsName, secureName} {
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
	if strings.Contains(texts[cloudsName], "SECRET") {
		t.Errorf("%s has a secret:\n%s", cloudsName, texts[cloudsName])
	}
	if want := `"` + c.credential.ID + `"`; !strings.Contains(texts[cloudsName], want) {
		t.Errorf("%s has no %s", cloudsName, want)
	}
	for _, secret := range []string{c.passwords.Admin, c.passwords.Ours, c.passwords.OtherTenant, c.credential.Secret} {
		if !strings.Contains(texts[secureName], `"`+secret+`"`) {
			t.Errorf("%s has no %s", secureName, secret)
		}
	}
}

func TestEnvironment(t *testing.T) {
	env := environment{"OS_CLOUD=ours", "OPENSTACK_CLOUDS=ours it's $HOME"}
	dir := t.TempDir()
	if err := env.write(dir); err != nil {
		t.Fatal(err)
	}
	read, err := readEnvironment(dir)
	if err != nil || !slices.Equal(read, env) {
		t.Errorf("read %q, %v; want %q", read, err, env)
	}
	if got, want := env.exports(), "export OS_CLOUD='ours'\nexport OPENSTACK_CLOUDS='ours it'\\''s $HOME'\n"; got != want {
		t.Errorf("exports are\n%s\nwant\n%s", got, want)
	}
	if got, want := env.addTo([]string{"PATH=/bin", "OS_PASSWORD=x"}), append([]string{"PATH=/bin"}, env...); !slices.Equal(got, want) {
		t.Errorf("added: %q, want %q", got, want)
	}
}

func TestRunExitCodes(t *testing.T) {
	tests := map[string]struct {
		args []string
		want int
	}{
		"no such command":      {args: []string{"restart"}, want: require.ExitUsage},
		"no such flag":         {args: []string{"down", "-lifetime=1s"}, want: require.ExitUsage},
		"an argument too many": {args: []string{"up", "now"}, want: require.ExitUsage},
		"nothing to run":       {args: []string{"exec", "--"}, want: require.ExitUsage},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := run(test.args[0], test.args[1:]); got != test.want || err != nil {
				t.Errorf("exit code is %d (%v), want %d", got, err, test.want)
			}
		})
	}
	if _, err := run("exec", []string{"--", "/no/such/command"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v, want that the command does not exist", err)
	}
}

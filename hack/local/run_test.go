package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// The exit code is that of the controller, whose own flags come last. Wrong arguments
// are reported before anything starts.
func TestRun(t *testing.T) {
	folder := t.TempDir()
	controller, kubeconfig, flags := filepath.Join(folder, "controller"), filepath.Join(folder, "config"), filepath.Join(folder, "flags")
	script := "#!/bin/sh\necho \"$@\" >'" + flags + "'\nexit 3\n"
	if err := os.WriteFile(controller, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kubeconfig, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args  []string
		code  int
		flags string // a pattern
	}{
		"a controller that fails": {
			args: []string{"-kubeconfig", kubeconfig, "--", controller, "-v=4"}, code: 3,
			flags: `^-kubeconfig=` + kubeconfig + ` -debug-bind-address=127\.0\.0\.1:\d+ -v=4\n$`,
		},
		"a controller with another page": {
			args: []string{"-kubeconfig", kubeconfig, "--", controller, "--debug-bind-address", ":0"}, code: 3,
			flags: `^-kubeconfig=` + kubeconfig + ` --debug-bind-address :0\n$`,
		},
		"no controller":             {args: []string{"-kubeconfig", kubeconfig}, code: 2},
		"a controller not there":    {args: []string{"--", "/no/such/controller"}, code: 1},
		"a kubeconfig not there":    {args: []string{"-kubeconfig", "/no/such/file", "--", controller}, code: 1},
		"a kubeconfig not readable": {args: []string{"-kubeconfig", folder, "--", controller}, code: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(flags)
			code, err := run(t.Context(), nil, test.args)
			if code != test.code || (err == nil) != (test.flags != "") {
				t.Errorf("exit code is %d, error %v; want %d", code, err, test.code)
			}
			got, _ := os.ReadFile(flags)
			if !regexp.MustCompile(test.flags).Match(got) || (len(got) > 0) != (test.flags != "") {
				t.Errorf("flags of the controller are %q, want %q", got, test.flags)
			}
		})
	}
}

func TestQuote(t *testing.T) {
	for _, text := range []string{"", "plain", "/a/b-c_d.e", "a b", "it's", `$HOME "x" \`, "a;b", "a\nb", "~"} {
		output, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+quote(text)).Output()
		if err != nil || string(output) != text {
			t.Errorf("a shell reads %s as %q (error %v), want %q", quote(text), output, err, text)
		}
	}
}

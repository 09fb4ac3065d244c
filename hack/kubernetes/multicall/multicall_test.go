package multicall

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var programs = map[string]func() int{
	"kubectl": func() int {
		fmt.Println(os.Args[1:])
		return 3
	},
	"etcd": func() int { return 0 },
}

// TestMain makes the test binary the program under test.
func TestMain(m *testing.M) {
	if os.Getenv("MULTICALL") != "" {
		Main(programs)
	}
	os.Exit(m.Run())
}

func command(t *testing.T, path string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	var output bytes.Buffer
	command := exec.CommandContext(t.Context(), path, args...)
	command.Env = append(os.Environ(), "MULTICALL=1")
	command.Stdout, command.Stderr = &output, &output
	return command, &output
}

func TestSelection(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "kubectl")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		command  []string
		output   string
		exitCode int
	}{
		"by the first argument": {[]string{self, "kubectl", "get", "etcd"}, "[get etcd]\n", 3},
		"by a link":             {[]string{link, "get", "etcd"}, "[get etcd]\n", 3},
		"unknown":               {[]string{self, "kubelet"}, usage(programs), 2},
		"none":                  {[]string{self}, usage(programs), 2},
	} {
		t.Run(name, func(t *testing.T) {
			command, output := command(t, c.command[0], c.command[1:]...)
			_ = command.Run() // the exit code is in its state
			if output.String() != c.output || command.ProcessState.ExitCode() != c.exitCode {
				t.Errorf("exit code %d, output %q; want %d, %q", command.ProcessState.ExitCode(), output, c.exitCode, c.output)
			}
		})
	}
}

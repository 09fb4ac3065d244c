package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/test/internal/process"
)

// Names in deploy/.
const (
	system     = "samplecrd-system"
	controller = "samplecrd-controller" // Deployment, Lease and ServiceAccount
	home       = "e2e"                  // the namespace of the Networks of this test
	upgrade    = "ghcr.io/samplecrd/network-controller:e2e-upgrade"
)

// node is the node of `node exec`. This process is in its namespaces, and sees only
// its processes.
type node struct {
	folder   string // NAME.pid for each component
	auditLog string
	address  string // that pods can reach
}

func newNode() *node {
	return &node{folder: os.Getenv("NODE_RUN_FOLDER"), auditLog: os.Getenv("NODE_AUDIT_LOG"), address: os.Getenv("NODE_ADDRESS")}
}

// tryKubectl runs kubectl with an input, and returns its standard output and error.
func tryKubectl(ctx context.Context, input string, args ...string) (output, complaints string, err error) {
	command := exec.CommandContext(ctx, "kubectl", args...)
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(input), &stdout, &stderr
	if err = command.Run(); err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), stderr.String(), err
}

// kubectl runs kubectl, which must succeed. kubectl apply must print no warning either,
// such as one of Pod Security.
func (n *node) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return n.kubectlReads(t, "", args...)
}

func (n *node) kubectlReads(t *testing.T, input string, args ...string) string {
	t.Helper()
	output, complaints, err := tryKubectl(t.Context(), input, args...)
	if err != nil {
		t.Fatal(err)
	}
	if complaints != "" && args[0] == "apply" {
		t.Errorf("kubectl %s printed a warning: %s", strings.Join(args, " "), complaints)
	}
	return output
}

// until waits until a check returns nil.
func until(t *testing.T, limit time.Duration, want string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var last error
	if err := process.Poll(ctx, 250*time.Millisecond, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	}); err != nil {
		t.Fatalf("%s: not within %v: %v", want, limit, last)
	}
}

// prints waits until kubectl prints a text.
func (n *node) prints(t *testing.T, want string, args ...string) {
	t.Helper()
	until(t, 2*time.Minute, "kubectl "+strings.Join(args, " "), func(ctx context.Context) error {
		output, _, err := tryKubectl(ctx, "", args...)
		if err == nil && output != want {
			err = fmt.Errorf("it prints %q, want %q", output, want)
		}
		return err
	})
}

// showOnFailure logs pods, objects and the controller's log if the test fails.
func (n *node) showOnFailure(t *testing.T) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, args := range [][]string{
			{"describe", "pods", "-n", system},
			{"get", "networks,deployments,leases,events", "-A"},
			{"logs", "-n", system, "-l", "app.kubernetes.io/name=" + controller, "--prefix", "--tail=100"},
		} {
			output, _, err := tryKubectl(context.Background(), "", args...)
			t.Logf("kubectl %v: %v\n%s", args, err, output)
		}
	})
}

// pidOf returns the process ID of a component.
func (n *node) pidOf(component string) (int, error) {
	text, err := os.ReadFile(filepath.Join(n.folder, component+".pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// kill kills a component with -9. `node exec` starts it again.
func (n *node) kill(t *testing.T, component string) (back func(context.Context) error) {
	t.Helper()
	pid, err := n.pidOf(component)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatalf("killing %s (%d): %v", component, pid, err)
	}
	return func(context.Context) error {
		now, err := n.pidOf(component)
		if err == nil && now == pid {
			err = fmt.Errorf("%s has not been started again", component)
		}
		return err
	}
}

// nodeProcess is a process on the node.
type nodeProcess struct {
	pid           int
	name, cgroups string
	command       string
}

// processes returns the processes for which a function returns true.
func (n *node) processes(pick func(nodeProcess) bool) (picked []nodeProcess) {
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		pid, _ := strconv.Atoi(filepath.Base(path))
		read := func(name string) string { // empty if the process has just ended
			text, _ := os.ReadFile(filepath.Join(path, name))
			return string(bytes.TrimSpace(bytes.ReplaceAll(text, []byte{0}, []byte{' '})))
		}
		if p := (nodeProcess{pid: pid, name: read("comm"), cgroups: read("cgroup"), command: read("cmdline")}); pick(p) {
			picked = append(picked, p)
		}
	}
	return picked
}

// killContainers kills all containers and their shims.
func (n *node) killContainers(t *testing.T) (count int) {
	t.Helper()
	victims := n.processes(func(p nodeProcess) bool {
		return strings.HasPrefix(p.name, "containerd-shim") || p.command != "" && strings.Contains(p.cgroups, "/pod")
	})
	for _, p := range victims {
		if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatalf("killing %s (%d): %v", p.command, p.pid, err)
		}
	}
	return len(victims)
}

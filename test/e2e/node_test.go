package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// node is the node of `node exec`. This process is in its namespaces, and sees only
// its processes.
type node struct {
	folder   string // NAME.pid for each component
	auditLog string
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
	if err != nil {
		t.Fatalf("finding %s: %v", component, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("killing %s (%d): %v", component, pid, err)
	}
	return func(context.Context) error {
		switch now, err := n.pidOf(component); {
		case err != nil:
			return err
		case now == pid:
			return fmt.Errorf("%s has not been started again", component)
		}
		return nil
	}
}

// process is a process on the node.
type process struct {
	pid           int
	name, cgroups string
	command       string
}

// processes returns the processes for which a function returns true.
func (n *node) processes(pick func(process) bool) (picked []process) {
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			continue
		}
		read := func(name string) string { // empty if the process has just ended
			text, _ := os.ReadFile(filepath.Join(path, name))
			return string(bytes.TrimSpace(bytes.ReplaceAll(text, []byte{0}, []byte{' '})))
		}
		if p := (process{pid: pid, name: read("comm"), cgroups: read("cgroup"), command: read("cmdline")}); pick(p) {
			picked = append(picked, p)
		}
	}
	return picked
}

// controllers returns the controller's processes in a pod, or in all pods.
func (n *node) controllers(podUID string) []process {
	return n.processes(func(p process) bool {
		return strings.HasPrefix(p.command, "/"+controller) && strings.Contains(p.cgroups, podUID)
	})
}

// killContainers kills all containers and their shims.
func (n *node) killContainers(t *testing.T) (count int) {
	t.Helper()
	victims := n.processes(func(p process) bool {
		return strings.HasPrefix(p.name, "containerd-shim") || p.command != "" && strings.Contains(p.cgroups, "/pod")
	})
	for _, p := range victims {
		if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatalf("killing %s (%d): %v", p.command, p.pid, err)
		}
	}
	return len(victims)
}

// needsNode skips a part of the test that cannot run on an existing cluster.
func (c *cluster) needsNode(t *testing.T, what string) {
	t.Helper()
	if c.node == nil {
		c.cannot(t, what+", which needs a node of `make e2e` without KUBECONFIG")
	}
}

// killController kills the controller's process in a pod with -9.
func (n *node) killController(t *testing.T, podUID string) time.Time {
	t.Helper()
	found := n.controllers(podUID)
	if len(found) != 1 {
		t.Fatalf("the pod %s has %d processes of the controller, want one: %v", podUID, len(found), found)
	}
	killed := time.Now()
	if err := syscall.Kill(found[0].pid, syscall.SIGKILL); err != nil {
		t.Fatalf("killing %d: %v", found[0].pid, err)
	}
	return killed
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/test/internal/debian"
	"github.com/samplecrd/network-controller/test/internal/process"
	"github.com/samplecrd/network-controller/test/internal/require"
	"github.com/samplecrd/network-controller/test/internal/runfolder"
)

// bin makes a folder with this program and the programs that it runs. It skips the test if
// no node can be started.
func bin(t *testing.T) string {
	t.Helper()
	if err := debian.Check(); err != nil {
		require.Skip(t, "%v", err)
	}
	dir := filepath.Join(t.TempDir(), "bin")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range neededPrograms {
		path, err := filepath.Abs(filepath.Join("../../build/bin", name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err != nil {
			require.Skip(t, "%v: `make node` builds it", err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "node"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, output)
	}
	return dir
}

// waits prints the PID namespace and the run folder, and waits.
const waits = `echo $(readlink /proc/self/ns/pid) $NODE_RUN_FOLDER; sleep 600`

// nodeExec returns the command `node exec` with a shell.
func nodeExec(t *testing.T, dir, script string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(dir, "node"), "exec", "--", "sh", "-c", script)
	command.Stderr = os.Stderr
	// A test that fails ends the node gracefully.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	return command
}

// machine returns what a node could leave behind on a machine, or change.
func machine(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		found["mount "+line] = true
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range interfaces {
		addresses, _ := one.Addrs()
		found[fmt.Sprint("interface ", one.Name, addresses)] = true
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			found["cgroup "+path] = true
		}
		return nil // a cgroup may have just been removed
	})
	for _, folder := range []string{"/var/lib", "/var/log", "/run", "/opt", "/etc/cni"} {
		entries, _ := os.ReadDir(folder)
		for _, entry := range entries {
			found["file "+filepath.Join(folder, entry.Name())] = true
		}
	}
	for _, name := range []string{"vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward"} {
		value, _ := os.ReadFile(filepath.Join("/proc/sys", name))
		found["setting "+name+" "+string(value)] = true
	}
	return found
}

// checkNothingLeft compares the machine with its state before the test. Other nodes
// may have run meanwhile; runFolder is that of this test.
func checkNothingLeft(t *testing.T, before map[string]bool, runFolder string) {
	t.Helper()
	for left := range machine(t) {
		if ofOther := strings.Contains(left, "samplecrd-node-") && !strings.Contains(left, filepath.Base(runFolder)); !before[left] && !ofOther {
			t.Errorf("left behind: %s", left)
		}
	}
	folders, err := filepath.Glob(filepath.Join(filepath.Dir(runFolder), folderPattern))
	if err != nil || len(folders) > 0 {
		t.Errorf("run folders are left: %q, %v", folders, err)
	}
}

// TestExec: the command has an input, a node and an exit code. test/e2e uses the node.
func TestExec(t *testing.T) {
	dir := bin(t)
	before := machine(t)
	command := nodeExec(t, dir, `echo $NODE_RUN_FOLDER; cat; kubectl get nodes -o name; exit 42`)
	command.Stdin = strings.NewReader("input\n")
	output, err := command.Output()
	lines := strings.Split(string(output), "\n")
	if command.ProcessState.ExitCode() != 42 || len(lines) != 4 || lines[1] != "input" || lines[2] != "node/node" {
		t.Fatalf("it ended with %v and printed %q", err, output)
	}
	checkNothingLeft(t, before, lines[0])
}

// TestKilled: after kill -9, no process is left. The next node removes the rest.
func TestKilled(t *testing.T) {
	dir := bin(t)
	before := machine(t)
	command := nodeExec(t, dir, waits)
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	fields := strings.Fields(line)
	if err != nil || len(fields) != 2 || len(processesIn(fields[0])) == 0 {
		t.Fatalf("output is %q (%v), want a PID namespace with processes, and a run folder", line, err)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // it was killed
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err = process.Poll(ctx, pollPeriod, func(context.Context) (bool, error) { return len(processesIn(fields[0])) == 0, nil })
	if err != nil {
		t.Errorf("processes %d are left: %v", processesIn(fields[0]), err)
	}
	if _, err := os.Stat(fields[1]); err != nil {
		t.Fatalf("the run folder is gone: this test shows nothing about the next node: %v", err)
	}
	folder, err := runfolder.New(t.Context(), filepath.Dir(fields[1]), folderPattern, tidyUp)
	if err := errors.Join(err, folder.Remove()); err != nil {
		t.Fatal(err)
	}
	checkNothingLeft(t, before, fields[1])
}

// A node can be stopped while it starts.
func TestEndOfStart(t *testing.T) {
	dir := bin(t)
	before := machine(t)
	command := nodeExec(t, dir, waits)
	command.Stderr = nil
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var logs []string
	err := process.Poll(t.Context(), pollPeriod, func(context.Context) (bool, error) {
		var err error
		logs, err = filepath.Glob(filepath.Join(dir, "..", "run", folderPattern, "kube-apiserver.log"))
		return len(logs) == 1, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _ = command.Wait(); command.ProcessState.ExitCode() != require.ExitFailed {
		t.Errorf("it ended with %s, want exit status %d", command.ProcessState, require.ExitFailed)
	}
	checkNothingLeft(t, before, filepath.Dir(logs[0]))
}

// processesIn returns the processes in a PID namespace. Zombies have none.
func processesIn(namespace string) []int {
	var pids []int
	paths, _ := filepath.Glob("/proc/[0-9]*/ns/pid")
	for _, path := range paths {
		if link, err := os.Readlink(path); err == nil && link == namespace {
			pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

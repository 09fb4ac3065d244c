package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/samplecrd/network-controller/test/internal/programs"
)

const (
	modulePath = "github.com/samplecrd/network-controller"
	// ownerName is the file in a run folder that has the process ID of its
	// supervisor, who holds a lock on it. The kernel releases that when the
	// supervisor ends, however it ends. So a folder without it is left over.
	ownerName = "supervisor.pid"
	// lockName is the file that is locked while folders are made and removed.
	lockName = "lock"
)

// folders are the folders of this program.
type folders struct {
	runs  string // where run folders are
	cache string // what can be used again
}

// findFolders finds them below the root of this module.
func findFolders(ctx context.Context) (folders, error) {
	output, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", modulePath).Output()
	root := strings.TrimSpace(string(output))
	if err != nil || root == "" {
		return folders{}, fmt.Errorf("the working directory is not in the module %s: run this inside of it", modulePath)
	}
	build := filepath.Join(root, "build")
	f := folders{runs: filepath.Join(build, "run"), cache: filepath.Join(build, "openstack-cache")}
	for _, dir := range []string{f.runs, f.cache} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return folders{}, err
		}
	}
	return f, nil
}

// up is the run folder of what `up` starts. Only its owner may look into a run
// folder: it holds passwords.
func (f folders) up() string {
	return filepath.Join(f.runs, "openstack-up")
}

// forExec makes a run folder for what `exec` starts.
func (f folders) forExec() (string, error) {
	return os.MkdirTemp(f.runs, "openstack-exec-*")
}

// lock waits until nobody else starts an OpenStack or takes one down.
func (f folders) lock(ctx context.Context) (unlock func(), err error) {
	path := filepath.Join(f.cache, lockName)
	file, err := programs.Lock(path, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		tell("Waiting for another run of this program that starts or stops something.")
		err = programs.Poll(ctx, 200*time.Millisecond, func(context.Context) (bool, error) {
			file, err = programs.Lock(path, syscall.LOCK_EX|syscall.LOCK_NB)
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return false, nil
			}
			return err == nil, err
		})
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}

// sweep removes the run folders that have no owner. One that cannot be removed
// now may go next time.
func (f folders) sweep() {
	paths, _ := filepath.Glob(filepath.Join(f.runs, "openstack-*"))
	for _, path := range paths {
		if ownerOf(path) == 0 {
			_ = os.RemoveAll(path)
		}
	}
}

// own makes this process the owner of a run folder.
func own(path string) (release func(), err error) {
	file, err := programs.Lock(filepath.Join(path, ownerName), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		return nil, err
	}
	if _, err := file.WriteString(strconv.Itoa(os.Getpid())); err != nil {
		_ = file.Close()
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}

// ownerOf returns the process ID of the owner of a run folder, or 0 when there is
// none.
func ownerOf(path string) int {
	name := filepath.Join(path, ownerName)
	if _, err := os.Stat(name); err != nil {
		return 0
	}
	if file, err := programs.Lock(name, syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		_ = file.Close()
		return 0
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(string(content))
	return pid
}

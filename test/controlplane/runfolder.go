package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/samplecrd/network-controller/test/internal/programs"
)

const (
	// modulePath is the module whose root ModuleRoot finds.
	modulePath = "github.com/samplecrd/network-controller"
	// folderPattern are the names of run folders.
	folderPattern = "cluster-*"
	// lockName is the file in a run folder that its owner holds a lock on. The
	// same name above the run folders is the lock for making and sweeping them.
	lockName = ".lock"
)

// ModuleRoot returns the folder of this module's go.mod. It is the working
// directory or one above it.
func ModuleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && declares(string(content), modulePath) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no folder from %s upwards has the go.mod of the module %s: run this inside of it", start, modulePath)
		}
	}
}

// declares says whether the text of a go.mod declares the module.
func declares(goMod, module string) bool {
	for line := range strings.Lines(goMod) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "module" {
			return strings.Trim(fields[1], `"`) == module
		}
	}
	return false
}

// runFolder is the folder of one cluster. Its owner has a lock on a file in it,
// which the kernel releases when the owner ends, however it ends. So a folder
// without a lock is one that nobody will remove.
type runFolder struct {
	path string
	lock *os.File
}

// newRunFolder makes a run folder in a folder, and removes those there whose
// owners have ended.
func newRunFolder(dir string) (*runFolder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	// Between making a run folder and locking it, nobody else may sweep.
	making, err := programs.Lock(filepath.Join(dir, lockName), syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer func() { _ = making.Close() }()
	sweep(dir)

	path, err := os.MkdirTemp(dir, folderPattern) // only its owner may look into it: it holds keys
	if err != nil {
		return nil, err
	}
	lock, err := programs.Lock(filepath.Join(path, lockName), syscall.LOCK_EX)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return &runFolder{path: path, lock: lock}, nil
}

// sweep removes run folders that have no owner. One that cannot be removed now
// may go next time.
func sweep(dir string) {
	paths, _ := filepath.Glob(filepath.Join(dir, folderPattern))
	for _, path := range paths {
		if os.Remove(path) == nil { // it was empty: its owner ended before it made the lock
			continue
		}
		if _, err := os.Stat(filepath.Join(path, lockName)); err != nil {
			continue // not one of ours
		}
		if lock, err := programs.Lock(filepath.Join(path, lockName), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			_ = (&runFolder{path: path, lock: lock}).remove()
		}
	}
}

// remove removes the folder and releases its lock.
func (f *runFolder) remove() error {
	defer func() { _ = f.lock.Close() }()
	return os.RemoveAll(f.path)
}

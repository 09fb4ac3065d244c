// Package runfolder gives each run of a server a folder of its own, and removes
// the folders of runs that were killed.
//
// The owner of a folder has a lock on a file in it. The kernel releases the lock
// when the owner ends, even after kill -9. So a folder without a lock is left
// over.
package runfolder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/samplecrd/network-controller/test/internal/process"
)

const (
	modulePath = "github.com/samplecrd/network-controller"
	// lockName is the file in a run folder that its owner has locked. In the
	// folder above, it is locked while run folders are made and removed.
	lockName = ".lock"
)

// ModuleRoot returns the folder of this module's go.mod, which is the working
// directory or one above it.
func ModuleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(content, []byte("module "+modulePath+"\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in the module %s: change into a clone of it", start, modulePath)
		}
	}
}

// Folder is a run folder that this process owns.
type Folder struct {
	Path string
	lock *os.File
	// remove removes the folder, and what else has its name.
	remove func(path string) error
}

// New makes a run folder in a folder. Its name matches a pattern of
// os.MkdirTemp, and only its owner may read it, because it holds keys. Before
// that, New removes the folders of that pattern that have no owner.
func New(ctx context.Context, dir, pattern string, remove func(path string) error) (*Folder, error) {
	unlock, err := sweep(ctx, dir, pattern, remove)
	if err != nil {
		return nil, err
	}
	defer unlock()
	path, err := os.MkdirTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	lock, err := TryLock(filepath.Join(path, lockName))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return &Folder{Path: path, lock: lock, remove: remove}, nil
}

// Remove removes the folder. If that fails, the folder has no owner any more, so
// that a later New removes it.
func (f *Folder) Remove() error {
	return errors.Join(f.remove(f.Path), f.lock.Close())
}

// sweep removes the run folders that have no owner, and returns with the lock on dir:
// between making a run folder and locking it, no other process may sweep. A folder that
// cannot be removed stays for the next sweep.
func sweep(ctx context.Context, dir, pattern string, remove func(path string) error) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := Lock(ctx, filepath.Join(dir, lockName))
	if err != nil {
		return nil, err
	}
	paths, _ := filepath.Glob(filepath.Join(dir, pattern))
	for _, path := range paths {
		if os.Remove(path) == nil { // an empty folder: its owner ended before it made the lock
			continue
		}
		if _, err := os.Stat(filepath.Join(path, lockName)); err != nil {
			continue // no run folder
		}
		if lock, err := TryLock(filepath.Join(path, lockName)); err == nil {
			_ = (&Folder{Path: path, lock: lock, remove: remove}).Remove()
		}
	}
	return func() { _ = lock.Close() }, nil
}

// ErrLocked is the error for a file that another process has locked.
var ErrLocked = errors.New("locked by another process")

// TryLock opens a file, which it creates if needed, and locks it. Closing the
// file releases the lock. The programs that this process starts don't inherit it.
func TryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return file, nil
}

// Lock is TryLock, but waits for a process that has the lock.
func Lock(ctx context.Context, path string) (file *os.File, err error) {
	err = process.Poll(ctx, 20*time.Millisecond, func(context.Context) (bool, error) {
		file, err = TryLock(path)
		if errors.Is(err, ErrLocked) {
			return false, nil
		}
		return err == nil, err
	})
	return file, err
}

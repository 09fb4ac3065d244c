package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/samplecrd/network-controller/test/internal/programs"
)

// lockName is the file in a run folder that its owners, a process and its keeper,
// have a lock on. The kernel releases it when both have ended, however they end.
// The same name above the run folders is the lock for making and sweeping them.
const lockName = ".node-lock"

// folderPattern are the names of run folders. The cgroups have them too.
const folderPattern = "samplecrd-node-*"

// runFolder is the folder of one node.
type runFolder struct {
	path string
	lock *os.File
}

// newRunFolder makes a run folder in a folder, and removes what is left over of
// those whose owners were killed.
func newRunFolder(ctx context.Context, dir string) (*runFolder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	// Between making a run folder and locking it, nobody else may sweep.
	var making *os.File
	err = programs.Poll(ctx, pollPeriod, func(context.Context) (bool, error) {
		making, err = programs.Lock(filepath.Join(dir, lockName), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = making.Close() }()
	sweep(dir)
	path, err := os.MkdirTemp(dir, folderPattern) // only its owner may look into it: it holds keys
	if err != nil {
		return nil, err
	}
	lock, err := programs.Lock(filepath.Join(path, lockName), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return &runFolder{path: path, lock: lock}, nil
}

// sweep tidies up after nodes that have no owner.
func sweep(dir string) {
	paths, _ := filepath.Glob(filepath.Join(dir, folderPattern))
	for _, path := range paths {
		lock, err := programs.Lock(filepath.Join(path, lockName), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != nil {
			continue
		}
		if err := tidyUp(path); err != nil {
			tell("Something is left over: %v", err)
		}
		_ = lock.Close()
	}
}

// pollPeriod is how often is looked for what is waited for.
const pollPeriod = 20 * time.Millisecond

// tidyUp removes the cgroups and the run folder of a node whose processes have
// ended, or end now. Those that were just killed may take a moment.
func tidyUp(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var last error
	err := programs.Poll(ctx, pollPeriod, func(context.Context) (bool, error) {
		last = errors.Join(removeCgroups(path), os.RemoveAll(path))
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("tidying up: %w", last)
	}
	return nil
}

// isMissing says whether an error is about a file that is not there.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist)
}

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/samplecrd/network-controller/test/internal/process"
)

// keepCommand is the command that makes this program the keeper of an OpenStack.
// Users do not type it.
const keepCommand = "keep"

// keep starts the servers in a run folder and removes both when the command ends.
// Without a command, the servers run until their lifetime is over or a signal
// arrives. They also end when the parent of this process does, unless it has
// released this process. If this process is killed, the kernel kills them.
func keep(path string, lifetime time.Duration, command []string) (exitCode int, err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(path)) }()
	received := process.Signals()
	alive, orphaned := context.WithCancel(context.Background())
	defer orphaned()
	process.AfterParent(1, orphaned)
	// Before the command runs, a signal ends the start; after that, the command gets
	// it.
	ctx, stopped := signal.NotifyContext(alive, process.StopSignals...)
	defer stopped()

	runs := filepath.Dir(path)
	c := &cloud{dir: path, cache: filepath.Join(filepath.Dir(runs), cacheName), root: rootFolder(runs)}
	defer c.stop()
	if err := c.start(ctx); err != nil {
		return 0, err
	}
	env := c.environment()
	if len(command) > 0 {
		program := exec.Command(command[0], command[1:]...) //nolint:noctx // it gets signals
		program.Env = env.addTo(os.Environ())
		return process.Run(program, received, alive.Done())
	}
	if err := env.write(path); err != nil {
		return 0, err
	}
	select {
	case <-ctx.Done():
	case <-time.After(lifetime):
	}
	return 0, nil
}

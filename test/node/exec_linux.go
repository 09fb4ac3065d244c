package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/samplecrd/network-controller/test/internal/debian"
	"github.com/samplecrd/network-controller/test/internal/process"
	"github.com/samplecrd/network-controller/test/internal/runfolder"
)

// neededPrograms must be in the folder of this one.
var neededPrograms = []string{"kubernetes", "kubectl", "node-components"}

// packages must be installed; others come with them. Other versions of containerd
// and runc may need another configuration.
var packages = []string{"containerd", "runc", "containernetworking-plugins", "iproute2"}

// folderPattern are the names of run folders. The cgroups have them, too.
const folderPattern = "samplecrd-node-*"

// execute runs a command with a node, and returns its exit code, as a shell does.
func execute(o options, args []string) (exitCode int, err error) {
	received := process.Signals()
	// The command is looked up with this PATH, too.
	if err := os.Setenv("PATH", binFolder()+":"+os.Getenv("PATH")); err != nil {
		return 0, fmt.Errorf("extending PATH: %w", err)
	}
	ctx, installed := signal.NotifyContext(context.Background(), process.StopSignals...)
	defer installed()
	if err := prepare(ctx, o); err != nil {
		return 0, err
	}
	folder, err := runfolder.New(ctx, filepath.Join(filepath.Dir(binFolder()), "run"), folderPattern, tidyUp)
	if err != nil {
		return 0, fmt.Errorf("making a run folder: %w", err)
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	if err := makeCgroups(folder.Path); err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("finding this program: %w", err)
	}
	args = append([]string{manageCommand, folder.Path}, args...)
	manager := exec.Command(self, args...) //nolint:noctx // it gets signals
	manager.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	return process.Run(manager, received)
}

// namespaces are those that the node does not share with the machine.
const namespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET |
	syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// pollPeriod is the time between two checks of a condition.
const pollPeriod = 20 * time.Millisecond

// tidyUp removes the cgroups and the run folder of a node whose processes have
// ended. Processes that were just killed may take a moment.
func tidyUp(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := process.WaitUntil(ctx, func(context.Context) error {
		return errors.Join(removeCgroups(path), os.RemoveAll(path))
	})
	if err != nil {
		return fmt.Errorf("tidying up: %w", err)
	}
	return nil
}

// prepare checks whether a node can be started on this machine, and installs the
// packages.
func prepare(ctx context.Context, o options) error {
	if err := debian.Check(); err != nil {
		return err
	}
	if _, err := exec.LookPath(o.command[0]); err != nil {
		return fmt.Errorf("finding the command: %w", err)
	}
	for _, name := range neededPrograms {
		if _, err := os.Stat(filepath.Join(binFolder(), name)); err != nil {
			return fmt.Errorf("finding the programs of the node: %w; `make node` builds them", err)
		}
	}
	for _, image := range o.images {
		if _, err := os.Stat(image); err != nil {
			return fmt.Errorf("finding the images: %w", err)
		}
	}
	return debian.Install(ctx, packages...)
}

// binFolder returns the folder of this program.
func binFolder() string {
	path, err := os.Executable()
	if err != nil {
		return "." // without /proc, a node cannot be started anyway
	}
	return filepath.Dir(path)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/samplecrd/network-controller/test/internal/process"
	"github.com/samplecrd/network-controller/test/internal/require"
)

// namespaces are those that the node does not share with the machine.
const namespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET |
	syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// keep starts process 1 of the namespaces, ends it when the process that the node
// is for has ended, waits for it, and removes what is outside of the namespaces.
func keep(path string, args []string) (exitCode int, err error) {
	// The kernel kills process 1 when the thread that started it ends.
	runtime.LockOSThread()
	defer func() { err = errors.Join(err, tidyUp(path)) }()
	received, ended := process.Signals(), make(chan struct{})
	process.AfterParent(1, func() { close(ended) })
	if err := makeCgroups(path); err != nil {
		return 0, err
	}
	first, err := process.Self(append([]string{initCommand}, args...)...)
	if err != nil {
		return 0, err
	}
	first.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL}
	lifeline, err := process.StartTied(first)
	if err != nil {
		return 0, fmt.Errorf("making namespaces: %w", err)
	}
	defer lifeline.Cut()
	go func() {
		<-ended
		_ = first.Process.Kill() // and the kernel kills all in its PID namespace
	}()
	go process.Forward(received, first.Process)
	// When process 1 has ended, all processes in the namespaces have ended.
	return process.ExitResult(first, first.Wait())
}

// beInit is process 1 of the namespaces. It only does what a process 1 must do:
// it waits for processes whose parents have ended. Its child, the manager, starts
// everything else, so that beInit takes no process from a Wait of the manager. When
// beInit ends, the kernel kills all the other processes.
func beInit(args []string) (exitCode int, err error) {
	process.AfterParent(0, func() { os.Exit(require.ExitFailed) })
	received := process.Signals()
	manager, err := process.Self(append([]string{manageCommand}, args...)...)
	if err != nil {
		return 0, err
	}
	if err := manager.Start(); err != nil {
		return 0, fmt.Errorf("starting the manager: %w", err)
	}
	go process.Forward(received, manager.Process)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("waiting for the manager: %w", err)
		case pid == manager.Process.Pid:
			return process.ExitCode(status), nil
		}
	}
}

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

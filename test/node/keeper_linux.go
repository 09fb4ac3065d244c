package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"

	"github.com/samplecrd/network-controller/test/internal/programs"
)

// namespaces are what the node has of its own.
const namespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// lifelineFD is the file descriptor of a pipe whose other end the parent has, so
// that it ends with the parent, however that ends. lockFD is that of the lock on
// the run folder, which the keeper has in common with its parent.
const (
	lifelineFD = 3
	lockFD     = 4
)

// keep starts process 1 of the namespaces, waits for its end, or ends it when
// nobody is left whom the node is for, and removes what is outside of them.
func keep(path string, args []string) (exitCode int, err error) {
	// The kernel kills process 1 when the thread ends that started it.
	runtime.LockOSThread()
	syscall.CloseOnExec(lifelineFD)
	syscall.CloseOnExec(lockFD)
	asked := listen()
	if err := makeCgroups(path); err != nil {
		return exitFailed, errors.Join(err, tidyUp(path))
	}
	reader, lifeline, err := os.Pipe()
	if err != nil {
		return exitFailed, errors.Join(fmt.Errorf("making a pipe: %w", err), tidyUp(path))
	}
	first := self(append([]string{initCommand}, args...)...)
	first.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL}
	first.ExtraFiles = []*os.File{reader}
	err = first.Start()
	_ = reader.Close()
	if err != nil {
		return exitFailed, errors.Join(fmt.Errorf("making namespaces: %w", err), tidyUp(path))
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(lifelineFD, "lifeline"))
		_ = first.Process.Kill() // and the kernel kills all in its PID namespace
	}()
	go func() {
		for received := range asked {
			_ = first.Process.Signal(received)
		}
	}()
	// All processes in the namespaces have ended when their first one has.
	err = first.Wait()
	_ = lifeline.Close()
	return programs.ExitCode(first.ProcessState), errors.Join(programs.NotAnExit(err), tidyUp(path))
}

// beInit is process 1 of the namespaces. All that it does is what a process 1 has
// to: it waits for processes whose parents have ended. What is started here
// otherwise is started by its one child, so that nobody takes from that the
// processes that it waits for. When it ends, the kernel kills all the others.
func beInit(args []string) (exitCode int, err error) {
	syscall.CloseOnExec(lifelineFD)
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(lifelineFD, "lifeline"))
		os.Exit(exitFailed)
	}()
	asked := listen()
	manager := self(append([]string{manageCommand}, args...)...)
	if err := manager.Start(); err != nil {
		return exitFailed, fmt.Errorf("starting the manager: %w", err)
	}
	go func() {
		for received := range asked {
			_ = manager.Process.Signal(received)
		}
	}()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return exitFailed, fmt.Errorf("waiting for the manager: %w", err)
		case pid == manager.Process.Pid:
			return programs.StatusCode(status), nil
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// stopper forwards signals to the controller if it runs, and otherwise cancels
// what happens before.
//
// The controller has its own process group. So a Ctrl-C, which a terminal sends
// to the whole foreground group, and a SIGTERM, which only this process receives,
// both reach the controller once. A second signal would end it without waiting
// for the requests in flight.
type stopper struct {
	context context.Context // ends at the first signal
	cancel  context.CancelFunc

	mu         sync.Mutex
	controller *os.Process
}

// listen starts to receive signals.
func listen() *stopper {
	s := &stopper{}
	s.context, s.cancel = context.WithCancel(context.Background())
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	go func() {
		parent := os.Getppid()
		orphaned := time.NewTicker(time.Second)
		for {
			select {
			case received := <-signals:
				s.stop(received)
			case <-orphaned.C:
				// `go run` waits for this process after a Ctrl-C. After any other
				// signal it ends without forwarding it.
				if os.Getppid() != parent {
					orphaned.Stop()
					s.stop(syscall.SIGTERM)
				}
			}
		}
	}()
	return s
}

// stop forwards a signal.
func (s *stopper) stop(received os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel()
	if received == syscall.SIGHUP { // the terminal was closed
		received = syscall.SIGTERM
	}
	if s.controller != nil {
		_ = s.controller.Signal(received) // it fails if the controller has ended
	}
}

// runForeground runs the controller, with the standard output and error of this
// process, until it ends. It returns the exit code, as a shell would.
func (s *stopper) runForeground(command *exec.Cmd) (exitCode int, err error) {
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}

	s.mu.Lock()
	if s.context.Err() != nil {
		s.mu.Unlock()
		return 130, nil //nolint:nilerr // a signal is no error
	}
	err = command.Start()
	if err == nil {
		s.controller = command.Process
	}
	s.mu.Unlock()
	if err != nil {
		return 1, fmt.Errorf("starting the controller: %w", err)
	}
	release, err := startGuard(command.Process.Pid)
	if err != nil {
		s.stop(syscall.SIGTERM)
	}
	err = errors.Join(err, wait(command))
	if release != nil {
		release()
	}
	status, ok := command.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal()), err
	}
	return command.ProcessState.ExitCode(), err
}

// wait waits for a command to end. An exit code is no error.
func wait(command *exec.Cmd) error {
	var exit *exec.ExitError
	if err := command.Wait(); err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("waiting for the controller: %w", err)
	}
	return nil
}

// guardedVariable is the environment variable that makes this program the guard
// of a process, whose ID is its value.
const guardedVariable = "RUN_GUARDED_PROCESS"

// startGuard starts a process that stops the controller if this process is killed.
// The guard ends when release is called.
func startGuard(pid int) (release func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("starting the guard of the controller: %w", err)
	}
	command := exec.Command(self) //nolint:noctx // it ends when it is released
	command.Env = append(os.Environ(), guardedVariable+"="+strconv.Itoa(pid))
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the guard of the controller: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the guard of the controller: %w", err)
	}
	return func() {
		_, _ = stdin.Write([]byte{'\n'})
		_ = command.Wait()
	}, nil
}

// guard reads from the standard input. If it receives a byte, the controller has
// ended. If the input ends without one, the parent was killed, and guard stops
// the controller.
func guard(pid string) {
	number, err := strconv.Atoi(pid)
	if err != nil || number <= 1 {
		fmt.Fprintf(os.Stderr, "run: %s is %q, want a process ID\n", guardedVariable, pid)
		os.Exit(2)
	}
	if _, err := io.ReadFull(os.Stdin, make([]byte, 1)); err != nil {
		_ = syscall.Kill(number, syscall.SIGTERM)
	}
}

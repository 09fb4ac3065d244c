package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// StopSignals are the signals that request this process to stop.
var StopSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// Signals returns a channel that receives the StopSignals.
func Signals() chan os.Signal {
	received := make(chan os.Signal, 16)
	signal.Notify(received, StopSignals...)
	return received
}

// Run runs a command with the standard streams of this process, and returns its
// exit code. It passes signals on to the command's process group: the first as it
// is, the second as SIGKILL.
func Run(command *exec.Cmd, received <-chan os.Signal) (exitCode int, err error) {
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	// A process group in the background stops when it reads from a terminal.
	if info, err := os.Stdin.Stat(); err != nil || info.Mode()&os.ModeCharDevice != 0 {
		command.Stdin = nil
	}
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Setpgid = true
	if err := StartMortal(command); err != nil {
		return 0, fmt.Errorf("starting the command: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for stopping := false; ; stopping = true {
		number := syscall.SIGKILL
		select {
		case one := <-received:
			if requested, ok := one.(syscall.Signal); ok && !stopping {
				number = requested
			}
		case err := <-ended:
			var exit *exec.ExitError
			if errors.As(err, &exit) { // it only reports the exit code
				err = nil
			}
			status, _ := command.ProcessState.Sys().(syscall.WaitStatus)
			return ExitCode(status), err
		}
		_ = syscall.Kill(-command.Process.Pid, number) // it fails if that group has ended
	}
}

// ExitCode returns an exit code as a shell does.
func ExitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

package process

import (
	"errors"
	"fmt"
	"io"
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

// Forward passes signals on to another process. It never returns.
func Forward(received <-chan os.Signal, to *os.Process) {
	for one := range received {
		_ = to.Signal(one) // it fails if that process has ended
	}
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
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
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
			return ExitResult(command, err)
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

// ExitResult returns the exit code of a command that has ended, and the error of
// Wait unless that only reports the exit code.
func ExitResult(command *exec.Cmd, waiting error) (exitCode int, err error) {
	var exit *exec.ExitError
	if !errors.As(waiting, &exit) {
		err = waiting
	}
	status, _ := command.ProcessState.Sys().(syscall.WaitStatus)
	return ExitCode(status), err
}

// Self returns a command that runs this program with other arguments and with the
// standard streams of this process.
func Self(args ...string) (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	command := exec.Command(path, args...) //nolint:noctx // it gets signals
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return command, nil
}

// lifelineFD is the file descriptor of the lifeline in a child.
const lifelineFD = 3

// Lifeline is a pipe from this process to a child. It closes when this process
// ends, and the child notices that: see AfterParent.
type Lifeline struct{ writer *os.File }

// StartTied starts a command with a lifeline. The command inherits the files, too.
func StartTied(command *exec.Cmd, files ...*os.File) (*Lifeline, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a lifeline: %w", err)
	}
	defer func() { _ = reader.Close() }()
	command.ExtraFiles = append([]*os.File{reader}, files...)
	if err := command.Start(); err != nil {
		_ = writer.Close()
		return nil, err
	}
	return &Lifeline{writer}, nil
}

// Cut makes the child run what it passed to AfterParent.
func (l *Lifeline) Cut() { _ = l.writer.Close() }

// AfterParent calls a function when the process that started this one with
// StartTied has ended. The programs that this process starts
// don't inherit the lifeline, nor the number of files that were passed with it.
func AfterParent(files int, ended func()) {
	for fd := lifelineFD; fd <= lifelineFD+files; fd++ {
		syscall.CloseOnExec(fd)
	}
	go func() {
		_, _ = io.ReadAll(os.NewFile(lifelineFD, "lifeline")) // until it closes
		ended()
	}()
}

// RunKeeper runs this program with other arguments, as the keeper of what the
// arguments describe. The keeper is in a session of its own, so that a terminal
// sends its signals only to this process, which passes them on. It has a lifeline
// and inherits the lock of its run folder. RunKeeper returns its exit code.
func RunKeeper(lock *os.File, received <-chan os.Signal, args ...string) (exitCode int, err error) {
	keeper, err := Self(args...)
	if err != nil {
		return 0, err
	}
	keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	lifeline, err := StartTied(keeper, lock)
	if err != nil {
		return 0, fmt.Errorf("starting the keeper: %w", err)
	}
	defer lifeline.Cut()
	go Forward(received, keeper.Process)
	return ExitResult(keeper, keeper.Wait())
}

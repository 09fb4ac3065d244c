package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/samplecrd/network-controller/test/internal/programs"
)

// execute runs a command with an OpenStack of its own, and returns its exit
// code, as a shell would.
func execute(args []string) (exitCode int, err error) {
	program, err := exec.LookPath(args[0])
	if err != nil {
		return exitFailed, fmt.Errorf("finding the command: %w", err)
	}
	asked := listen()
	// Until there is a command, what asks to stop ends the start; after that it
	// is for the command.
	ctx, started := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	s, err := startFor(ctx)
	started()
	if err != nil {
		return exitFailed, err
	}
	exitCode = exitFailed
	env, err := readEnvironment(s.path)
	if err == nil {
		command := exec.Command(program, args[1:]...) //nolint:noctx // it is asked to stop, not killed
		command.Args[0] = args[0]
		command.Env = env.addTo(os.Environ())
		exitCode, err = s.runCommand(command, asked)
	}
	return exitCode, errors.Join(err, s.end())
}

// startFor starts an OpenStack that ends with this process.
func startFor(ctx context.Context) (*supervisor, error) {
	folders, unlock, err := prepare(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	folders.sweep()
	path, err := folders.forExec()
	if err != nil {
		return nil, err
	}
	return startSupervisor(ctx, path, 0)
}

// listen begins to listen for what asks this process to stop.
func listen() chan os.Signal {
	asked := make(chan os.Signal, 16)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	parent := os.Getppid()
	go func() {
		// `go run` waits for this process after a Ctrl-C, but passes no other
		// signal on: it just ends.
		for range time.Tick(time.Second) {
			if os.Getppid() != parent {
				asked <- syscall.SIGTERM
				return
			}
		}
	}()
	return asked
}

// runCommand runs the command in a process group of its own, to which it passes
// signals on: once as they are, and then to kill it. If this process is killed,
// the supervisor kills that group.
func (s *supervisor) runCommand(command *exec.Cmd, asked <-chan os.Signal) (exitCode int, err error) {
	command.Stdin, command.Stdout, command.Stderr = standardInput(), os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return exitFailed, fmt.Errorf("starting the command: %w", err)
	}
	if err := s.commandIs(command.Process.Pid); err != nil {
		tell("Nothing will end the command if this process is killed: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	supervised, told := s.done, false
	for {
		select {
		case received := <-asked:
			if number, ok := received.(syscall.Signal); ok && !told {
				_ = syscall.Kill(-command.Process.Pid, number)
			} else {
				_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
			}
			told = true
		case <-supervised:
			tell("OpenStack is gone while the command runs: its supervisor ended (%s).", s.command.ProcessState)
			supervised = nil
		case err := <-ended:
			_ = s.commandIs(0) // it has ended, too, if that cannot be told
			return programs.ExitCode(command.ProcessState), programs.NotAnExit(err)
		}
	}
}

// standardInput is what the command reads: what this process does, but not from
// a terminal, which stops a process group in the background that reads.
func standardInput() io.Reader {
	info, err := os.Stdin.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice != 0 {
		return nil
	}
	return os.Stdin
}

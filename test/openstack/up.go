package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/samplecrd/network-controller/test/internal/programs"
)

// up starts an OpenStack that stays when this process ends.
func up(lifetime time.Duration) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	folders, unlock, err := prepare(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	path := folders.up()
	if pid := ownerOf(path); pid != 0 {
		env, err := readEnvironment(path)
		if err == nil {
			tell("It is already up. Its logs are in %s.", path)
			fmt.Print(env.exports())
			return nil
		}
		tell("Waiting for one that is just ending.")
		if err := waitUntilGone(ctx, path, pid); err != nil {
			return err
		}
	}
	folders.sweep()
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	s, err := startSupervisor(ctx, path, lifetime)
	if err != nil {
		return err
	}
	if err := s.say("alone"); err != nil {
		return errors.Join(fmt.Errorf("leaving the supervisor alone: %w", err), s.end())
	}
	env, err := readEnvironment(path)
	if err != nil {
		return err
	}
	tell("It ends after %s, or with: make openstack-down\nIts logs are in %s.", lifetime, path)
	fmt.Print(env.exports())
	return nil
}

// down takes down what up started, and removes all that runs of this program
// have left.
func down() error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	folders, err := findFolders(ctx)
	if err != nil {
		return err
	}
	unlock, err := folders.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	defer folders.sweep()
	pid := ownerOf(folders.up())
	if pid == 0 {
		tell("It is not up.")
		return nil
	}
	if err := waitUntilGone(ctx, folders.up(), pid); err != nil {
		return err
	}
	tell("It is down.")
	return nil
}

// prepare gets ready to start an OpenStack. Until unlock is called, nobody else
// starts one.
func prepare(ctx context.Context) (folders folders, unlock func(), err error) {
	if err := checkHost(); err != nil {
		return folders, nil, err
	}
	if folders, err = findFolders(ctx); err != nil {
		return folders, nil, err
	}
	if unlock, err = folders.lock(ctx); err != nil {
		return folders, nil, err
	}
	if err := installPackages(ctx); err != nil {
		unlock()
		return folders, nil, err
	}
	return folders, unlock, nil
}

// waitUntilGone asks a supervisor to end, and waits until it has. One that takes
// too long is killed, and all that it started with it.
func waitUntilGone(ctx context.Context, path string, pid int) error {
	gone := func(context.Context) (bool, error) { return ownerOf(path) == 0, nil }
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("ending the supervisor, process %d: %w", pid, err)
		}
		waiting, cancel := context.WithTimeout(ctx, 20*time.Second)
		err := programs.Poll(waiting, 50*time.Millisecond, gone)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("the supervisor, process %d, does not end", pid)
}

// supervisor is the process that looks after an OpenStack, as the process sees
// it that started it.
type supervisor struct {
	path     string // the run folder
	command  *exec.Cmd
	lifeline *os.File      // its standard input: when that ends, so does it
	done     chan struct{} // closed when it has ended
}

// errNotUp is the end of an attempt about which the supervisor has told more.
var errNotUp = errors.New("OpenStack did not come up")

// startSupervisor starts a supervisor and waits until its OpenStack is ready.
// The run folder is the supervisor's from then on.
func startSupervisor(ctx context.Context, path string, lifetime time.Duration) (*supervisor, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	defer func() { _ = reader.Close() }()
	command := exec.Command(self, superviseCommand, "-lifetime", lifetime.String(), path) //nolint:noctx // it outlives this process, or ends with its lifeline
	command.Stdin, command.Stderr = reader, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no signal of a terminal reaches it
	if err := command.Start(); err != nil {
		_ = writer.Close()
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	s := &supervisor{path: path, command: command, lifeline: writer, done: make(chan struct{})}
	go func() {
		_ = command.Wait() // it tells itself what was wrong
		close(s.done)
	}()
	err = programs.Poll(ctx, 20*time.Millisecond, func(context.Context) (bool, error) {
		select {
		case <-s.done:
			return false, errNotUp
		default:
			_, err := os.Stat(filepath.Join(path, environmentName))
			return err == nil, nil
		}
	})
	if err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

// say tells the supervisor something; see lifeline.
func (s *supervisor) say(words string) error {
	_, err := s.lifeline.WriteString(words + "\n")
	return err
}

// end takes the OpenStack down, waits for that, and removes what is left.
func (s *supervisor) end() error {
	_ = s.lifeline.Close()
	select {
	case <-s.done:
	case <-time.After(20 * time.Second):
		_ = s.command.Process.Kill() // what it started ends with it
		<-s.done
	}
	return os.RemoveAll(s.path)
}

// commandIs tells the supervisor of the command that its OpenStack is for, the
// leader of a process group; 0 is none.
func (s *supervisor) commandIs(pid int) error {
	return s.say("command " + strconv.Itoa(pid))
}

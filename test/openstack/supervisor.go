package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// superviseCommand is the command that makes this program a supervisor. Nobody
// types it.
const superviseCommand = "supervise"

// supervise starts the servers in a run folder, which it owns from here on, and
// takes them down when it is time: when it is asked to, when their lifetime is
// over (0 is for ever), or when whoever they are for is gone. If it is killed,
// the kernel kills them.
func supervise(path string, lifetime time.Duration) error {
	release, err := own(path)
	if err != nil {
		return fmt.Errorf("taking the run folder: %w", err)
	}
	defer release()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if lifetime > 0 {
		ctx, cancel = context.WithTimeout(ctx, lifetime)
		defer cancel()
	}
	life := &lifeline{cut: cancel}
	go life.follow()

	c := &cloud{dir: path, cache: filepath.Join(filepath.Dir(filepath.Dir(path)), "openstack-cache"), launcher: newLauncher()}
	err = c.start(ctx)
	if err == nil {
		err = stayInBackground(path)
	}
	if err == nil {
		err = c.environment().write(path) // this says that all is ready
	}
	if err == nil {
		<-ctx.Done()
	}
	if ctx.Err() != nil { // to be asked to stop is no error
		err = nil
	}
	life.killCommand()
	c.stop()
	return errors.Join(err, os.RemoveAll(path))
}

// stayInBackground lets go of the terminal, and of whoever reads what this
// program writes.
func stayInBackground(path string) error {
	log, err := os.OpenFile(filepath.Join(path, "supervisor.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	return redirectOutput(log)
}

// lifeline is the standard input of the supervisor. Its other end is held by the
// process that the servers are for, which may say on it, a line each:
//
//	alone          stay when that process is gone
//	command PID    it runs a command, the leader of a process group; 0: no more
type lifeline struct {
	cut func() // called when that process is gone

	mu      sync.Mutex
	command int
}

// follow reads what is said until there is nobody to say more.
func (l *lifeline) follow() {
	alone := false
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "alone":
			alone = true
		case "command":
			l.mu.Lock()
			l.command, _ = strconv.Atoi(rest)
			l.mu.Unlock()
		}
	}
	if !alone {
		l.cut()
	}
}

// killCommand kills the command that nobody is left to wait for.
func (l *lifeline) killCommand() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.command > 1 {
		_ = syscall.Kill(-l.command, syscall.SIGKILL) // it fails when that has ended
	}
}

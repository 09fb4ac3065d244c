package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/samplecrd/network-controller/test/internal/programs"
)

// restartPause is how long a program is down at least, as with systemd.
const restartPause = 100 * time.Millisecond

// errEnded says that a program has ended, which none of them should.
var errEnded = errors.New("it ended")

// supervisor keeps programs running.
type supervisor struct {
	dir string // where they run, and their logs and process IDs go
	// ended is told how a program has ended.
	ended func(error)
}

// keepRunning starts a program, and starts it again whenever it ends.
func (s *supervisor) keepRunning(name, path string, args ...string) {
	go func() {
		for {
			err := s.runOnce(name, path, args...)
			s.ended(fmt.Errorf("running %s: %w\n%s", name, err, s.lastWords(name)))
			<-time.After(restartPause)
		}
	}()
}

// runOnce runs a program until it ends, and returns how it did.
func (s *supervisor) runOnce(name, path string, args ...string) error {
	log, err := os.OpenFile(filepath.Join(s.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	command := exec.Command(path, args...) //nolint:noctx // it is to run as long as the namespaces
	command.Dir = s.dir
	// Nothing in its environment configures it.
	command.Env = []string{"HOME=" + s.dir, "PATH=" + os.Getenv("PATH")}
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return err
	}
	// Whoever reads the file finds all of it or nothing.
	file := filepath.Join(s.dir, name+".pid")
	err = os.WriteFile(file+".new", []byte(strconv.Itoa(command.Process.Pid)), 0o600)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		_ = command.Process.Kill()
	}
	_ = command.Wait() // what it returns is in the state too
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(log, "%s --- it ended: %s\n", time.Now().Format(time.TimeOnly), command.ProcessState)
	return fmt.Errorf("%w: %s", errEnded, command.ProcessState)
}

// lastWords returns the last lines of a program's log.
func (s *supervisor) lastWords(name string) string {
	log, err := os.ReadFile(filepath.Join(s.dir, name+".log"))
	if err != nil {
		return "  " + err.Error()
	}
	return fmt.Sprintf("The last lines of %s.log:\n%s", name, programs.LastLines(log))
}

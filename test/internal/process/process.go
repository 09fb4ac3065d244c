// Package process starts the servers and commands that the tests run against.
// They end with the process that started them, on Linux even after kill -9. Each writes
// its log into a file, whose last lines become part of errors.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Program describes a program to start.
type Program struct {
	Name string   // of its log file, without the extension, and in errors
	Args []string // the first one is its path
	// Env is added to HOME, PATH and TMPDIR. A program inherits nothing else, so
	// that the environment of the tests does not configure it.
	Env []string
}

// Process is a program that was started.
type Process struct {
	name    string
	command *exec.Cmd
	logFile string
	done    chan struct{} // closed when the program has ended
}

// Start starts a program in a folder, which is its working directory and its home, and
// holds its log. The program ends with this process: see StartMortal.
func Start(dir string, program Program) (*Process, error) {
	p := &Process{name: program.Name, logFile: filepath.Join(dir, program.Name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	defer func() { _ = log.Close() }()
	p.command = exec.Command(program.Args[0], program.Args[1:]...) //nolint:noctx // it runs until it is stopped
	p.command.Dir = dir
	p.command.Env = append(Environment(dir), program.Env...)
	p.command.Stdout, p.command.Stderr = log, log
	// In a process group of its own, the program gets no Ctrl-C from a terminal.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := StartMortal(p.command); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	go func() {
		_ = p.command.Wait() // its result is in command.ProcessState, too
		// Children that it left behind. This fails if there are none.
		_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL)
		close(p.done)
	}()
	return p, nil
}

// Environment returns the variables that every program gets whose home is a folder.
func Environment(dir string) []string {
	env := []string{"HOME=" + dir}
	for _, name := range []string{"PATH", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// PID returns the process ID.
func (p *Process) PID() int { return p.command.Process.Pid }

// Done returns a channel that is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether the program has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// ErrEnded is the error for a program that ended although nothing stopped it.
var ErrEnded = errors.New("ended unexpectedly")

// Check returns an error with the end of the log if the program has ended.
func (p *Process) Check() error {
	if !p.Ended() {
		return nil
	}
	return fmt.Errorf("%s %w (%s)%s", p.name, ErrEnded, p.command.ProcessState, p.LastLines())
}

// Finish waits for a program that ends by itself. It kills the program when the
// context ends.
func (p *Process) Finish(ctx context.Context) error {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Kill()
		return context.Cause(ctx)
	}
	if !p.command.ProcessState.Success() {
		return fmt.Errorf("%s failed (%s)%s", p.name, p.command.ProcessState, p.LastLines())
	}
	return nil
}

// Stop requests the program to end, and kills it after a timeout. It returns
// when the program has ended. A nil process has ended.
func (p *Process) Stop(timeout time.Duration) {
	if p == nil {
		return
	}
	_ = p.command.Process.Signal(syscall.SIGTERM) // it fails if the program has ended
	select {
	case <-p.done:
	case <-time.After(timeout):
		p.Kill()
	}
}

// Kill kills the program and its children, and returns when it has ended. A nil
// process has ended.
func (p *Process) Kill() {
	if p == nil {
		return
	}
	_ = p.command.Process.Kill() // it fails if the program has ended
	<-p.done
}

// Log returns the log.
func (p *Process) Log() string {
	log, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// LastLines returns the last lines of the log as the end of an error message.
func (p *Process) LastLines() string { return LastLinesOf(p.logFile) }

// LastLinesOf returns the last lines of a log file as the end of an error
// message.
func LastLinesOf(path string) string {
	log, err := os.ReadFile(path)
	if err != nil {
		return "\n" + err.Error()
	}
	return fmt.Sprintf("\nLast lines of %s:\n%s", filepath.Base(path), LastLines(log))
}

// LastLines returns the last lines of a text, indented. If a Go program wrote a
// stack trace, they are the lines before it, which have the reason.
func LastLines(text []byte) string {
	const lines, size = 20, 64 << 10
	text = text[max(0, len(text)-size):]
	text, _, _ = bytes.Cut(text, []byte("\n\ngoroutine "))
	all := strings.Split(string(bytes.TrimSpace(text)), "\n")
	return "  " + strings.Join(all[max(0, len(all)-lines):], "\n  ")
}

// Running reports whether a process runs. One that has ended may have an entry in
// the process table until its parent waits for it.
func Running(pid int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		_, state, _ := bytes.Cut(stat, []byte(") "))
		return !bytes.HasPrefix(state, []byte("Z")) && !bytes.HasPrefix(state, []byte("X"))
	}
	return syscall.Kill(pid, 0) == nil
}

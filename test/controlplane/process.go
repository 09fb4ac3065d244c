package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// process is a component that runs.
type process struct {
	name    string
	command *exec.Cmd
	logFile string
	stdin   *os.File      // closed when this process ends, and then the component ends too
	done    chan struct{} // closed when the component has ended
}

// environment are the environment variables of all components and of kubectl.
// There is nothing in it that would configure them (such as ETCD_NAME), and
// what they write into the home folder goes into the run folder.
func environment(dir string) []string {
	env := []string{"HOME=" + dir}
	for _, name := range []string{"PATH", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// startProcess starts a component. Its log goes into a file of its name.
func (c *Cluster) startProcess(name string, args []string) (*process, error) {
	logFile := filepath.Join(c.folder.path, name+".log")
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	defer func() { _ = log.Close() }()
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	defer func() { _ = reader.Close() }()

	command := exec.Command(c.program, append([]string{name}, args...)...) //nolint:noctx // it runs until it is stopped
	command.Dir = c.folder.path
	command.Env = append(environment(c.folder.path), "EXIT_WHEN_STDIN_CLOSES=1")
	command.Stdin, command.Stdout, command.Stderr = reader, log, log
	// A group of its own: Ctrl-C in a terminal is for this process, which then
	// stops the cluster when it no longer needs it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		_ = writer.Close()
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &process{name: name, command: command, logFile: logFile, stdin: writer, done: make(chan struct{})}
	go func() {
		_ = command.Wait() // what it returns is in command.ProcessState too
		close(p.done)
	}()
	return p, nil
}

// errDied says that a component has ended though nobody stopped it.
var errDied = errors.New("it ended by itself")

// died returns an error when the component has ended.
func (p *process) died() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s is gone: %w (%s)%s", p.name, errDied, p.command.ProcessState, p.lastWords())
	default:
		return nil
	}
}

// logTail returns the last lines of the component's log. When it panicked,
// these are the lines before the stack trace, which say why.
func (p *process) logTail() string {
	const lines, size = 15, 64 << 10
	log, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	log = log[max(0, len(log)-size):]
	log, _, _ = bytes.Cut(log, []byte("\n\ngoroutine "))
	all := strings.Split(strings.TrimSpace(string(log)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// lastWords returns the last lines of the component's log as the end of an
// error message.
func (p *process) lastWords() string {
	return fmt.Sprintf("\nThe last lines of %s:\n  %s", filepath.Base(p.logFile), strings.ReplaceAll(p.logTail(), "\n", "\n  "))
}

// stop asks the component to end, waits for that, and kills it when it takes
// too long. A component that is nil or has ended is stopped already.
func (p *process) stop(timeout time.Duration) error {
	if p == nil {
		return nil
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s: %w", p.name, err)
	}
	select {
	case <-p.done:
	case <-time.After(timeout):
	}
	return p.kill()
}

// kill ends the component at once, if it has not ended.
func (p *process) kill() error {
	if p == nil {
		return nil
	}
	defer func() { _ = p.stdin.Close() }()
	if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", p.name, err)
	}
	<-p.done
	return nil
}

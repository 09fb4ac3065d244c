package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/samplecrd/network-controller/test/internal/programs"
)

// launcher starts programs that the kernel kills when this process ends, however
// it ends. For the kernel that is the end of the thread that started a program;
// so all are started by one thread, which stays.
type launcher chan func()

func newLauncher() launcher {
	l := make(launcher)
	go func() {
		runtime.LockOSThread()
		for start := range l { // nobody closes it
			start()
		}
	}()
	return l
}

func (l launcher) start(command *exec.Cmd) error {
	result := make(chan error)
	l <- func() { result <- command.Start() }
	return <-result
}

// process is a program that runs.
type process struct {
	name    string
	command *exec.Cmd
	logFile string
	done    chan struct{} // closed when it has ended
}

// program is what a process is made of.
type program struct {
	name string // for people, such as Keystone
	log  string // the name of its log file
	args []string
	env  []string
}

// launch starts a program in a folder.
func (l launcher) launch(dir string, from program) (*process, error) {
	logFile := filepath.Join(dir, from.log)
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", from.name, err)
	}
	defer func() { _ = log.Close() }()
	command := exec.Command(from.args[0], from.args[1:]...) //nolint:noctx // it runs until it is killed
	command.Dir = dir
	// Nothing of the environment here configures it, and none of it is looked
	// for where another Python may be.
	command.Env = append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + dir, "LANG=C.UTF-8"}, from.env...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(command.SysProcAttr)
	if err := l.start(command); err != nil {
		return nil, fmt.Errorf("starting %s: %w", from.name, err)
	}
	p := &process{name: from.name, command: command, logFile: logFile, done: make(chan struct{})}
	go func() {
		_ = command.Wait() // what it returns is in command.ProcessState too
		close(p.done)
	}()
	return p, nil
}

// errDied says that a server has ended though nobody stopped it.
var errDied = errors.New("it ended by itself")

// waitUntil waits until a server answers as it should.
func (p *process) waitUntil(ctx context.Context, answers func(context.Context) bool) error {
	err := programs.Poll(ctx, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		select {
		case <-p.done:
			return false, fmt.Errorf("%w (%s)", errDied, p.command.ProcessState)
		default:
			return answers(ctx), nil
		}
	})
	switch {
	case errors.Is(err, errDied), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s does not come up: %w%s", p.name, err, p.lastWords())
	default:
		return err
	}
}

// finish waits for a program that ends by itself.
func (p *process) finish(ctx context.Context) error {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
		return context.Cause(ctx)
	}
	if !p.command.ProcessState.Success() {
		return fmt.Errorf("%s: %s%s", p.name, p.command.ProcessState, p.lastWords())
	}
	return nil
}

// kill ends the process and those that it started. There is nothing that they
// would have to keep for later.
func (p *process) kill() {
	_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL) // it fails when they have ended
	<-p.done
}

// lastWords returns the last lines of the log as the end of an error message.
func (p *process) lastWords() string {
	log, err := os.ReadFile(p.logFile)
	if err != nil {
		log = []byte(err.Error())
	}
	return "\nThe last lines of its log:\n" + programs.LastLines(log)
}

// together does things at the same time. The first error ends them all, and is
// returned.
func together(ctx context.Context, tasks ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	for _, task := range tasks {
		go func() {
			if err := task(ctx); err != nil {
				cancel(err)
			}
			done <- struct{}{}
		}()
	}
	for range tasks {
		<-done
	}
	return context.Cause(ctx)
}

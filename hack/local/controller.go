// Package local runs the built controller for the programs that show it: make demo,
// make run and make tour.
package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Timeout limits anything that should take a second.
const Timeout = time.Minute

// Controller is a running controller.
type Controller struct {
	command *exec.Cmd
	log     buffer
	ended   chan struct{} // closed when the controller has ended
}

// StartController starts ./samplecrd-controller with flags.
func StartController(flags ...string) (*Controller, error) {
	program, err := filepath.Abs("samplecrd-controller")
	if err != nil {
		return nil, err
	}
	c := &Controller{ended: make(chan struct{})}
	c.command = exec.Command(program, flags...) //nolint:noctx // it is stopped with a signal, not killed
	c.command.Stdout, c.command.Stderr = &c.log, &c.log
	c.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it gets no Ctrl-C from the terminal
	if err := c.command.Start(); err != nil {
		return nil, fmt.Errorf("starting the controller: %w", err)
	}
	go func() {
		_ = c.command.Wait() // its exit code is in ProcessState
		close(c.ended)
	}()
	return c, nil
}

// Context returns a context that ends with the controller: nothing else happens
// without it.
func (c *Controller) Context(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-c.ended:
		case <-ctx.Done():
		}
	}()
	return ctx
}

// Leads returns an error until the controller reconciles: a cluster may have another
// one, which would reconcile the same Networks.
func (c *Controller) Leads() error {
	log := c.log.String()
	switch {
	case strings.Contains(log, `"Starting workers"`):
		return nil
	case strings.Contains(log, `"Waiting: another controller holds the Lease`):
		return fmt.Errorf("the cluster has a controller already: stop it, or use another cluster; the log of this controller ends with\n%s", tail(log))
	}
	return fmt.Errorf("the controller has not started yet; its log ends with\n%s", tail(log))
}

// Stop stops the controller as the kubelet does.
func (c *Controller) Stop() error {
	_ = c.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.ended:
	case <-time.After(Timeout):
		_ = c.command.Process.Kill()
		<-c.ended
	}
	if code := c.command.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the controller exited with %d; its log ends with\n%s", code, tail(c.log.String()))
	}
	return nil
}

// Eventually waits until a check passes. On a timeout, it returns the last error.
func Eventually(ctx context.Context, check func() error) error {
	last := errors.New("no check has run")
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, Timeout, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w (%w)", last, err)
	}
	return nil
}

// FreeAddress returns the first of the addresses, such as 127.0.0.1:8080, at which
// nothing listens, and otherwise a free port of 127.0.0.1.
func FreeAddress(ctx context.Context, addresses ...string) (string, error) {
	var listener net.Listener
	var err error
	for _, address := range append(addresses, "127.0.0.1:0") {
		if listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address); err == nil {
			defer func() { _ = listener.Close() }()
			return listener.Addr().String(), nil
		}
	}
	return "", fmt.Errorf("looking for a free port: %w", err)
}

// buffer is a text that is read while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func tail(log string) string {
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

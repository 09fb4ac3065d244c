package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/samplecrd/network-controller/test/internal/process"
)

// Timeout limits anything that should take a second.
const Timeout = time.Minute

// Controller is a controller in the background. Its log is a file.
type Controller struct{ process *process.Process }

// StartProgram starts a controller: the path of a program, and its flags. Its log is in a
// folder.
func StartProgram(folder, name string, command ...string) (*Controller, error) {
	program, err := filepath.Abs(command[0])
	if err != nil {
		return nil, err
	}
	args := append([]string{program}, command[1:]...)
	p, err := process.Start(folder, process.Program{Name: name, Args: args, Env: environment()})
	if err != nil {
		return nil, err
	}
	return &Controller{p}, nil
}

// environment is that of this process, but outside of a pod: there, the embedded
// Neutron would not be the default.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "KUBERNETES_SERVICE_HOST=")
	})
}

// Eventually waits until a check passes. It returns the last error, with the end of the
// controller's log, after Timeout or if the controller ends.
func (c *Controller) Eventually(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Timeout, fmt.Errorf("not within %v", Timeout))
	defer cancel()
	return process.WaitUntil(ctx, check, c.process)
}

// Leads returns an error until the controller reconciles.
func (c *Controller) Leads(context.Context) error {
	if strings.Contains(c.process.Log(), `"Starting workers"`) {
		return nil
	}
	return errors.New("the controller has not started yet")
}

// Stop stops the controller as the kubelet does.
func (c *Controller) Stop() error {
	c.process.Stop(Timeout)
	return c.process.Finish(context.Background())
}

// Foreground runs a controller, with the standard output and error of this process,
// until it ends, and returns its exit code as a shell would. It passes the first of the
// signals on to the controller. The second one kills it.
func Foreground(signals <-chan os.Signal, program string, flags ...string) (exitCode int, err error) {
	command := exec.Command(program, flags...) //nolint:noctx // it gets signals
	command.Env = environment()
	return process.Run(command, signals)
}

// FreeAddress returns an address, such as 127.0.0.1:8123, if nothing listens there, and
// otherwise one with a free port of 127.0.0.1.
func FreeAddress(ctx context.Context, preferred string) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", preferred)
	if err != nil {
		listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String(), nil
}

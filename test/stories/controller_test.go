package stories

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/samplecrd/network-controller/test/internal/process"
	"github.com/samplecrd/network-controller/test/running"
)

// logName is the name of the log file, without the extension.
const logName = "controller"

// controller is the built program. Each start makes another process; the log file
// continues.
type controller struct {
	dir     string // the home, with the log
	env     []string
	flags   []string
	process *process.Process // nil if none runs
}

// newController returns a controller that is not started yet, with an empty home.
func newController(t testing.TB, env ...string) *controller {
	t.Helper()
	return &controller{dir: t.TempDir(), env: env}
}

func (c *controller) start(flags ...string) (err error) {
	if c.process != nil {
		return errors.New("the controller is running already")
	}
	args := append([]string{builtProgram}, flags...)
	c.process, err = process.Start(c.dir, process.Program{Name: logName, Args: args, Env: c.env})
	return err
}

// end sends a signal after which the process must end. It returns an error unless
// the exit code is 0.
func (c *controller) end(signal syscall.Signal) error {
	if err := c.signal(signal); err != nil {
		return err
	}
	late := fmt.Errorf("the controller did not end within %v after %v", patience, signal)
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, late)
	defer cancel()
	err := c.process.Finish(ctx)
	c.process = nil
	return err
}

func (c *controller) signal(signal syscall.Signal) error {
	if c.process == nil {
		return errors.New("the controller is not running")
	}
	if err := c.process.Check(); err != nil {
		return err
	}
	return syscall.Kill(c.process.PID(), signal)
}

// endedByItself returns an error if the process ended without a signal.
func (c *controller) endedByItself() error {
	if c.process == nil {
		return nil
	}
	return c.process.Check()
}

func (c *controller) log() string {
	text, _ := os.ReadFile(filepath.Join(c.dir, logName+".log"))
	return string(text)
}

// get returns the page /readyz or /metrics of the process. The log has the
// addresses; those of earlier processes come first.
func (c *controller) get(page string) (string, error) {
	urls := regexp.MustCompile(`url="(http://[^"]+/`+page+`)"`).FindAllStringSubmatch(c.log(), -1)
	if urls == nil {
		return "", fmt.Errorf("the controller does not serve /%s yet", page)
	}
	return running.Get(urls[len(urls)-1][1])
}

// control is the verb controller.
func (s *story) control(args []string) (string, error) {
	name := "first"
	if len(args) > 0 && args[0] == "second" {
		name, args = args[0], args[1:]
	}
	c := s.controllers[name]
	if c == nil {
		c = newController(s)
		s.controllers[name] = c
	}
	switch verb := strings.Join(args, " "); {
	case strings.HasPrefix(verb, "start"):
		return "", s.startController(c, args[1:]...)
	case verb == "stop":
		return "", c.end(syscall.SIGTERM) // as kubelet and systemd do
	case verb == "kill":
		_ = c.end(syscall.SIGKILL) // which is an error of the process
		return "", nil
	case verb == "freeze":
		return "", c.signal(syscall.SIGSTOP)
	case verb == "thaw":
		return "", c.signal(syscall.SIGCONT)
	case verb == "log":
		return c.log(), nil
	case verb == "metrics" || verb == "readyz":
		return c.get(verb)
	}
	return "", errors.New("usage: controller [second] start [-FLAG=VALUE…] | stop | kill | freeze | thaw | " +
		"log | metrics | readyz")
}

// plan [-FLAG=VALUE…] prints what samplecrd-controller plan prints, and its exit code.
func (s *story) plan(args []string) (string, error) {
	command := exec.CommandContext(s.Context(), builtProgram, append([]string{
		"plan", "-kubeconfig=" + s.cluster.Kubeconfig(), "-cluster-name=" + s.clusterName, "-neutron-endpoint=" + s.neutron.server.URL,
	}, args...)...)
	command.Env = process.Environment(s.TempDir())
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", err
	}
	times := regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`)
	text := times.ReplaceAllString(s.readable(string(output)), "(a time)")
	return fmt.Sprintf("%sexit code %d\n", text, command.ProcessState.ExitCode()), nil
}

// startController starts a process. Without flags, it has those of the last start.
func (s *story) startController(c *controller, flags ...string) error {
	if len(flags) > 0 {
		c.flags = flags
	}
	return c.start(append([]string{
		"-kubeconfig=" + s.cluster.Kubeconfig(),
		"-cluster-name=" + s.clusterName,
		"-neutron-endpoint=" + s.neutron.server.URL,
		"-health-probe-bind-address=127.0.0.1:0",
		"-metrics-bind-address=127.0.0.1:0",
		"-leader-elect=false", // a killed controller would leave its Lease, and some stories have two on purpose
		"-v=4",
	}, c.flags...)...)
}

package stories

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// controller is the built program. Each start makes another process; the log file
// continues.
type controller struct {
	logFile string
	env     []string
	flags   []string
	process *os.Process   // nil if none runs
	ended   chan struct{} // closed when the process has ended
	outcome error         // how it ended
}

// newController returns a controller that is not started yet, with an empty home.
func newController(t testing.TB, env ...string) *controller {
	t.Helper()
	dir := t.TempDir()
	return &controller{logFile: filepath.Join(dir, "log"), env: append(env, "HOME="+dir)}
}

func (c *controller) start(flags ...string) error {
	if c.process != nil {
		return errors.New("the controller is running already")
	}
	log, err := os.OpenFile(c.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	command := exec.Command(builtProgram, flags...)
	command.Env, command.Stdout, command.Stderr = c.env, log, log
	if err := command.Start(); err != nil {
		return err
	}
	c.process, c.ended = command.Process, make(chan struct{})
	go func(ended chan struct{}) {
		c.outcome = command.Wait()
		close(ended)
	}(c.ended)
	return nil
}

// end sends a signal after which the process must end, and returns how it did.
func (c *controller) end(signal os.Signal) error {
	if err := c.signal(signal); err != nil {
		return err
	}
	select {
	case <-c.ended:
		c.process = nil
		return c.outcome
	case <-time.After(patience):
		return fmt.Errorf("the controller did not end after %v", signal)
	}
}

func (c *controller) signal(signal os.Signal) error {
	if c.process == nil {
		return errors.New("the controller is not running")
	}
	return c.process.Signal(signal)
}

// endedByItself returns an error if the process ended without a signal.
func (c *controller) endedByItself() error {
	if c.process == nil {
		return nil
	}
	select {
	case <-c.ended:
		return errors.Join(errors.New("it ended by itself"), c.outcome)
	default:
		return nil
	}
}

func (c *controller) log() string {
	text, _ := os.ReadFile(c.logFile)
	return string(text)
}

// get returns what the process serves at /readyz or /metrics. The log has the
// addresses; those of earlier processes come first.
func (c *controller) get(page string) (string, error) {
	urls := regexp.MustCompile(`url="(http://[^"]+/`+page+`)"`).FindAllStringSubmatch(c.log(), -1)
	if urls == nil {
		return "", fmt.Errorf("the controller does not serve /%s yet", page)
	}
	response, err := http.Get(urls[len(urls)-1][1])
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return string(body), err
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
		"-v=4",
	}, c.flags...)...)
}

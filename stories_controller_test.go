package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"syscall"
	"time"
)

// storyController is a controller in a process of its own. When it is started
// again, it is another process, and the log goes on.
type storyController struct {
	args    []string
	current *program
	ended   chan struct{} // closed when the current process has ended
	outcome error         // how, once it has
	before  string        // the log of earlier processes
}

// controllerPhrases are what is said of a controller.
func controllerPhrases(who string) map[string]phrase {
	with := func(do func(s *story, c *storyController, args []string) error) func(*story, io.Writer, []string) error {
		return func(s *story, _ io.Writer, args []string) error {
			c := s.controllers[who]
			if c == nil {
				c = &storyController{}
				s.controllers[who] = c
			}
			return do(s, c, args)
		}
	}
	signal := func(signal os.Signal) func(*story, *storyController, []string) error {
		return func(_ *story, c *storyController, _ []string) error { return c.signal(signal) }
	}
	return map[string]phrase{
		who + " start":  {"[-flag=value…]", with((*story).startController)},
		who + " stop":   {"", with((*story).stopController)},
		who + " kill":   {"", with((*story).killController)},
		who + " freeze": {"", with(signal(syscall.SIGSTOP))},
		who + " thaw":   {"", with(signal(syscall.SIGCONT))},
		who + " says":   {"PATTERN", with((*story).controllerSays)},
		who + " said":   {"PATTERN", with((*story).controllerSaid)},
	}
}

// startController starts the controller with flags on top of those that say
// where everything is. Without any, it gets those that it had before.
func (s *story) startController(c *storyController, flags []string) error {
	if c.current != nil {
		return errors.New("it is running already")
	}
	if len(flags) > 0 {
		c.args = flags
	}
	args := append([]string{
		"-kubeconfig=" + s.cluster.Kubeconfig(),
		"-cluster-name=" + s.clusterName,
		"-neutron-endpoint=" + s.neutron.url(),
		"-v=4",
	}, c.args...)
	p, ended := newProgram(s.T, args...), make(chan struct{})
	if err := p.Start(); err != nil {
		return err
	}
	c.current, c.ended = p, ended
	go func() {
		c.outcome = p.Wait()
		close(ended)
	}()
	return nil
}

// stopController asks the controller to end, as kubelet and systemd do.
func (s *story) stopController(c *storyController, _ []string) error {
	if err := c.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.ended:
		c.over()
		return c.outcome
	case <-time.After(storyPatience):
		return errors.New("it did not end")
	}
}

// killController gives the controller no time to do anything.
func (s *story) killController(c *storyController, _ []string) error {
	if err := c.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-c.ended
	c.over()
	return nil
}

func (c *storyController) signal(signal os.Signal) error {
	if c.current == nil {
		return errors.New("it is not running")
	}
	return c.current.Process.Signal(signal)
}

// over notes that the current process has ended as it was meant to.
func (c *storyController) over() { c.before, c.current = c.log(), nil }

// died returns an error where the current process has ended by itself.
func (c *storyController) died() error {
	if c.current == nil {
		return nil
	}
	select {
	case <-c.ended:
		return errors.Join(errors.New("it has come to an end by itself"), c.outcome)
	default:
		return nil
	}
}

// end ends the controller in the end, in whatever state it is.
func (c *storyController) end() {
	if c.signal(syscall.SIGKILL) == nil {
		<-c.ended
	}
}

// log is all that the controller has said so far.
func (c *storyController) log() string {
	if c.current == nil {
		return c.before
	}
	return c.before + c.current.log.String()
}

// controllerSays waits until the log has a line that matches.
func (s *story) controllerSays(c *storyController, args []string) error {
	return s.eventually(func() error { return s.controllerSaid(c, args) })
}

func (s *story) controllerSaid(c *storyController, args []string) error {
	pattern, err := regexp.Compile("(?m)" + args[0])
	if err != nil {
		return err
	}
	if !pattern.MatchString(c.log()) {
		return fmt.Errorf("the log has nothing that matches %s", args[0])
	}
	return nil
}

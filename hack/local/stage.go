package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/launch"
)

const example = "example-network"

// stage is a local Kubernetes with the controller, on which the tour plays. After the first
// error, nothing else happens.
type stage struct {
	ctx        context.Context
	cluster    *launch.Cluster
	controller *launch.Controller // nil until it has started
	err        error
}

// play plays on a local Kubernetes, which it removes at the end with the controller.
func play(ctx context.Context, script func(*stage)) error {
	c, err := launch.StartCluster(ctx, controlplane.Options{Apply: []string{"crd"}})
	if err != nil {
		return err
	}
	s := &stage{ctx: ctx, cluster: c}
	script(s)
	if s.controller != nil {
		s.err = errors.Join(s.err, s.controller.Stop())
	}
	return errors.Join(s.err, c.Stop())
}

// title prints a line in bold, after an empty one.
func (s *stage) title(text string) {
	if isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "" {
		text = "\x1b[1m" + text + "\x1b[0m"
	}
	s.say("\n%s", text)
}

// isTerminal reports whether a file is a terminal.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// say prints a line.
func (s *stage) say(format string, args ...any) {
	if s.err == nil {
		fmt.Printf(format+"\n", args...)
	}
}

// startController starts the controller with flags, and waits until it reconciles.
func (s *stage) startController(flags ...string) {
	if s.err != nil {
		return
	}
	command := append([]string{"samplecrd-controller", "-kubeconfig=" + s.cluster.Kubeconfig()}, flags...)
	if s.controller, s.err = launch.StartProgram(s.cluster.Dir(), "controller", command...); s.err == nil {
		s.eventually(s.controller.Leads)
	}
}

// eventually waits until a check passes.
func (s *stage) eventually(check func(context.Context) error) {
	if s.err == nil {
		s.err = s.controller.Eventually(s.ctx, check)
	}
}

// kubectl runs kubectl, and returns what it prints.
func (s *stage) kubectl(args ...string) (text string) {
	if s.err == nil {
		text, s.err = s.try(s.ctx, args...)
	}
	return text
}

func (s *stage) try(ctx context.Context, args ...string) (string, error) {
	output, warnings, err := s.cluster.KubectlWarnings(ctx, args...)
	return string(output) + string(warnings), err
}

// show runs kubectl, and prints the command and its output.
func (s *stage) show(args ...string) {
	if s.err != nil {
		return
	}
	s.say("$ %s", commandLine(args))
	text, err := s.try(s.ctx, args...)
	for line := range strings.Lines(text) {
		s.say("  %s", strings.TrimRight(line, "\n"))
	}
	s.err = err
}

// commandLine returns a command with these arguments of kubectl.
func commandLine(args []string) string {
	words := []string{"kubectl"}
	for _, arg := range args {
		if strings.ContainsAny(arg, `{}" `) {
			arg = "'" + arg + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// send sends a request, and decodes the body of the response unless that is nil.
func (s *stage) send(method, url, body string, response any) {
	if s.err == nil {
		s.err = send(s.ctx, method, url, body, response)
	}
}

func send(ctx context.Context, method, url, body string, response any) error {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = got.Body.Close() }()
	switch {
	case got.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("%s responds with %s", url, got.Status)
	case response == nil:
		return nil
	}
	return json.NewDecoder(got.Body).Decode(response)
}

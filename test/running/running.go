// Package running has what tests need that run programs and watch them from outside.
package running

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/test/internal/process"
)

// Patience limits how long Eventually waits.
const Patience = time.Minute

// Eventually waits until a check passes, and fails with its last error.
func Eventually(t testing.TB, check func() error) {
	t.Helper()
	var last error
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	err := process.Poll(ctx, 5*time.Millisecond, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("timed out waiting: %v", last)
	}
}

// Program is a program that runs for a test.
type Program struct {
	*process.Process
	t testing.TB
}

// Start starts a program. The end of the test kills it.
func Start(t testing.TB, env []string, args ...string) *Program {
	t.Helper()
	p, err := process.Start(t.TempDir(), process.Program{Name: filepath.Base(args[0]), Args: args, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the log of process %d:\n%s", p.PID(), p.Log())
		}
	})
	return &Program{p, t}
}

// WaitFor waits until the log matches a regular expression.
func (p *Program) WaitFor(pattern string) {
	p.t.Helper()
	want := regexp.MustCompile(pattern)
	Eventually(p.t, func() error {
		if !want.MatchString(p.Log()) {
			return fmt.Errorf("the log does not match %s:\n%s", pattern, p.Log())
		}
		return nil
	})
}

// URL waits until the controller logs that it serves something, and returns the URL.
func (p *Program) URL(what string) string {
	p.t.Helper()
	pattern := `"Serving ` + what + `" url="([^"]+)"`
	p.WaitFor(pattern)
	return regexp.MustCompile(pattern).FindStringSubmatch(p.Log())[1]
}

// Signal sends a signal.
func (p *Program) Signal(signal syscall.Signal) {
	p.t.Helper()
	if err := syscall.Kill(p.PID(), signal); err != nil {
		p.t.Fatal(err)
	}
}

// WantExit waits until the program ends, and checks its exit code.
func (p *Program) WantExit(code int) {
	p.t.Helper()
	want := fmt.Sprintf("(exit status %d)", code)
	err := p.Finish(p.t.Context())
	if (err == nil) != (code == 0) || err != nil && !strings.Contains(err.Error(), want) {
		p.t.Errorf("ended with %v, want exit code %d", err, code)
	}
}

// Get returns the body of what a URL serves, whatever the status code is.
func Get(url string) (string, error) {
	response, err := http.Get(url) //nolint:noctx // go test has a timeout
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// Package require decides what happens if a test or a program cannot run on this
// machine, because it needs root, another system or a program that is missing.
// By default it is skipped. If TEST_REQUIRE_ALL=yes is set, it fails.
package require

import (
	"errors"
	"fmt"
	"os"
)

// variable is the environment variable. .ci/run sets it.
const variable = "TEST_REQUIRE_ALL"

// All reports whether a test that cannot run fails.
func All() bool { return os.Getenv(variable) == "yes" }

// Skip skips a test that cannot run on this machine, or fails it.
func Skip(t interface {
	Helper()
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
}, format string, args ...any,
) {
	t.Helper()
	if All() {
		t.Fatalf(variable+"=yes is set, but "+format, args...)
	}
	t.Skipf(format, args...)
}

// ErrSkipped is the error for a program that cannot run on this machine and
// changed nothing.
var ErrSkipped = errors.New("skipped")

// Exit codes of programs.
const (
	ExitFailed  = 1
	ExitUsage   = 2
	ExitSkipped = 3
)

// Exit prints an error, if there is one, and ends the program. The exit code is
// not 0 if there is an error: ExitSkipped for ErrSkipped, unless all is required.
func Exit(program string, exitCode int, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
	}
	switch {
	case errors.Is(err, ErrSkipped) && !All():
		exitCode = ExitSkipped
	case err != nil:
		exitCode = max(exitCode, ExitFailed)
	}
	os.Exit(exitCode)
}

// Package multicall makes one program out of several. The first argument selects
// the program to run, or the name of the file does: a symbolic link kubectl to
// the file runs kubectl.
//
// The package imports nothing of Kubernetes, so that linting and testing it
// compiles nothing of Kubernetes.
package multicall

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// exitWhenStdinCloses is the environment variable that ties a daemon to the
// process that started it. If the variable is not empty, the daemon exits as soon
// as its standard input is closed. The parent process keeps the other end of the
// pipe open. The kernel closes it when the parent ends, even after kill -9. This
// works on every Unix.
const exitWhenStdinCloses = "EXIT_WHEN_STDIN_CLOSES"

// Program is one of the programs.
type Program struct {
	// Daemon is true if the program runs until it is stopped, and reads nothing
	// from its standard input.
	Daemon bool
	// Run runs the program with the arguments in os.Args.
	Run func() (exitCode int)
}

// Main runs the program that the command line selects, and exits.
func Main(programs map[string]Program) {
	name, args := selected(programs, os.Args)
	program, ok := programs[name]
	if !ok {
		fmt.Fprint(os.Stderr, usage(programs))
		os.Exit(2)
	}
	os.Args = args
	if program.Daemon && os.Getenv(exitWhenStdinCloses) != "" {
		go exitAfter(os.Stdin, name)
	}
	os.Exit(program.Run())
}

// selected returns the name of the program that the command line selects, and
// the command line of that program.
func selected(programs map[string]Program, args []string) (name string, programArgs []string) {
	if len(args) == 0 {
		return "", nil
	}
	name = filepath.Base(args[0])
	if _, ok := programs[name]; ok {
		return name, args
	}
	if len(args) == 1 {
		return "", nil
	}
	return args[1], args[1:]
}

func usage(programs map[string]Program) string {
	names := slices.Sorted(maps.Keys(programs))
	return fmt.Sprintf(`usage: %s %s [arguments]

A symbolic link with one of these names runs that program.
With %s=1, a daemon exits when its standard input is closed.
`, filepath.Base(os.Args[0]), strings.Join(names, "|"), exitWhenStdinCloses)
}

// exitAfter exits when the input ends. It does not wait for the program: the
// process that started it has ended.
func exitAfter(input io.Reader, name string) {
	_, _ = io.Copy(io.Discard, input)
	fmt.Fprintf(os.Stderr, "%s: standard input was closed, exiting\n", name)
	os.Exit(1)
}

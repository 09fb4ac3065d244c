// Package multicall makes one program out of several. The first argument selects
// the program to run, or the name of the file does: a symbolic link kubectl to
// the file runs kubectl.
//
// The package imports nothing of Kubernetes, so that linting and testing it
// compiles nothing of Kubernetes.
package multicall

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Main runs the program that the command line selects, with the arguments in os.Args, and
// exits with the code that it returns.
func Main(programs map[string]func() (exitCode int)) {
	name, args := selected(programs, os.Args)
	program, ok := programs[name]
	if !ok {
		fmt.Fprint(os.Stderr, usage(programs))
		os.Exit(2)
	}
	os.Args = args
	os.Exit(program())
}

// selected returns the name of the program that the command line selects, and
// the command line of that program.
func selected(programs map[string]func() int, args []string) (name string, programArgs []string) {
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

func usage(programs map[string]func() int) string {
	names := slices.Sorted(maps.Keys(programs))
	return fmt.Sprintf("usage: %s %s [arguments]\nA symbolic link with one of these names runs that program.\n",
		filepath.Base(os.Args[0]), strings.Join(names, "|"))
}

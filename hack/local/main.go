// Command local runs the controller for people, by default with a local Kubernetes that
// exists only as long. Run it in the root of the module:
//
//	local demo                                          play the walkthrough
//	local run [-kubeconfig PATH] -- CONTROLLER [FLAGS]  run the controller in the foreground
//	local cluster                                       run a Kubernetes without a controller
//	local demo-namespaceplus                            play the walkthrough of example/namespaceplus
//	local demo-aggregated                               play the walkthrough of example/aggregated
//	local tour [-lang en|zh] [-yes]                     explain the path of a key, step by step
//
// They need what `make build` and `make control-plane` build. The environment variable
// KUBEBUILDER_ASSETS names a folder with other programs for the local Kubernetes;
// hack/kubernetes/with.sh, which make uses, sets it if it has downloaded some.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/samplecrd/network-controller/test/launch"
)

// commands are functions that run until they are done or the context ends. They return
// the exit code. Signals can be passed on to another process.
var commands = map[string]func(ctx context.Context, signals <-chan os.Signal, args []string) (exitCode int, err error){
	"demo": demo, "run": run, "cluster": cluster, "tour": guide, "demo-namespaceplus": demoNamespacePlus,
	"demo-aggregated": demoAggregated,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: local demo|demo-aggregated|demo-namespaceplus|run|cluster|tour [FLAGS]")
		os.Exit(2)
	}
	name := os.Args[1]
	ctx, signals := launch.Signals()
	if name != "run" { // which passes them on
		go func() {
			<-signals
			<-signals // a user who does not want to wait
			os.Exit(130)
		}()
	}
	exitCode, err := commands[name](ctx, signals, os.Args[2:])
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(os.Stderr, "\n%s: interrupted; everything is stopped\n", name)
		exitCode = 130
	case err != nil:
		fmt.Fprintf(os.Stderr, "\n%s: %v\n", name, err)
		exitCode = max(exitCode, 1)
	}
	os.Exit(exitCode)
}

// isTerminal reports whether a file is a terminal.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// title prints a line in bold, after an empty one.
func title(text string) {
	if isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "" {
		text = "\x1b[1m" + text + "\x1b[0m"
	}
	fmt.Printf("\n%s\n", text)
}

// kubectl runs kubectl, and returns what it prints.
type kubectl func(ctx context.Context, args ...string) (string, error)

// of returns a kubectl for a local Kubernetes.
func of(c *launch.Cluster) kubectl {
	return func(ctx context.Context, args ...string) (string, error) {
		output, warnings, err := c.KubectlWarnings(ctx, args...)
		return string(output) + string(warnings), err
	}
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

// show runs kubectl, and prints the command and its output.
func (k kubectl) show(ctx context.Context, args ...string) error {
	fmt.Printf("$ %s\n", commandLine(args))
	output, err := k(ctx, args...)
	printIndented(output)
	return err
}

// printIndented prints the lines of an output.
func printIndented(text string) {
	for line := range strings.Lines(text) {
		fmt.Printf("  %s\n", strings.TrimRight(line, "\n"))
	}
}

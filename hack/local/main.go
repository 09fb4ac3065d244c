// Command local runs the controller for people, by default with a local Kubernetes that
// exists only as long. Run it in the root of the module:
//
//	local exec [FLAGS] COMMAND ARGS…                    run a command, such as a demo, with a Kubernetes
//	local run [-kubeconfig PATH] -- CONTROLLER [FLAGS]  run the controller in the foreground
//	local cluster                                       run a Kubernetes without a controller
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

	"github.com/samplecrd/network-controller/test/launch"
)

// command runs until it is done or the context ends, and returns the exit code. Signals can
// be passed on to another process.
type command func(ctx context.Context, signals <-chan os.Signal, args []string) (exitCode int, err error)

var commands = map[string]command{"exec": execute, "run": run, "cluster": cluster, "tour": guide}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: local exec|run|cluster|tour [FLAGS]")
		os.Exit(2)
	}
	name := os.Args[1]
	ctx, signals := launch.Signals()
	if name != "run" && name != "exec" { // which pass them on
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

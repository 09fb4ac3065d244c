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

	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/launch"
)

// command runs until it is done or the context ends, and returns the exit code. Signals can
// be passed on to another process.
type command func(ctx context.Context, signals <-chan os.Signal, args []string) (exitCode int, err error)

var commands = map[string]command{
	"run": run, "cluster": cluster, "tour": guide,
	"demo": demo("A Network becomes a real network", "make run, and try it yourself.",
		controlplane.Options{}, demoNetwork),
	"demo-namespaceplus": demo("A tenant gets a namespace", "docs/learn/17-namespace-per-tenant.md",
		controlplane.Options{Apply: []string{"crd", "example/namespaceplus/deploy"}, ControllerManager: true},
		demoNamespacePlus),
	"demo-aggregated": demo("kubectl shows what Neutron really has", "docs/learn/19-an-api-without-storage.md",
		controlplane.Options{
			Apply:             []string{"crd", "example/aggregated/deploy/rbac.yaml", "example/aggregated/local.yaml"},
			ControllerManager: true,
		}, demoAggregated),
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

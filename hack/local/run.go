package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/launch"
)

// pageAddress is where the controller serves the debug page, unless something listens
// there already.
const pageAddress = "127.0.0.1:8123"

// run runs a controller in the foreground, and returns its exit code. It sets the flags
// -kubeconfig and -debug-bind-address before the controller's own flags.
func run(ctx context.Context, signals <-chan os.Signal, args []string) (exitCode int, err error) {
	flags := flag.NewFlagSet("run", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "",
		"`path` of the kubeconfig file of a cluster to use. Defaults to a local Kubernetes.")
	_ = flags.Parse(args) // it exits
	if flags.NArg() == 0 {
		return 2, errors.New("which controller? usage: local run [-kubeconfig PATH] -- CONTROLLER [FLAGS]")
	}
	// Wrong arguments are reported before anything starts.
	controller, err := exec.LookPath(flags.Arg(0))
	if err != nil {
		return 1, fmt.Errorf("finding the controller: %w", err)
	}
	path, usage := *kubeconfig, ""
	if path == "" {
		c, starting := startCluster(ctx)
		if starting != nil {
			return 1, starting
		}
		defer func() { err = errors.Join(err, stop(c)) }()
		path, usage = c.Kubeconfig(), howToReach(c, "stops the controller, and then removes")
	} else if _, err := os.ReadFile(path); err != nil {
		return 1, fmt.Errorf("reading -kubeconfig: %w", err)
	}
	own := flags.Args()[1:]
	pageFlag, page, err := choosePage(ctx, own)
	if err != nil {
		return 1, err
	}
	fmt.Print(page + usage)
	return launch.Foreground(signals, controller, slices.Concat([]string{"-kubeconfig=" + path}, pageFlag, own)...)
}

// execute runs a command with a local Kubernetes, which KUBECONFIG names, and with its
// kubectl, and returns its exit code.
func execute(ctx context.Context, signals <-chan os.Signal, args []string) (exitCode int, err error) {
	flags := flag.NewFlagSet("exec", flag.ExitOnError)
	apply := flags.String("apply", "", "files and folders, separated by commas, to apply at the start")
	manager := flags.Bool("controller-manager", false, "run kube-controller-manager, too")
	_ = flags.Parse(args) // it exits
	if flags.NArg() == 0 {
		return 2, errors.New("which command? usage: local exec [FLAGS] COMMAND ARGS…")
	}
	options := controlplane.Options{ControllerManager: *manager}
	if *apply != "" {
		options.Apply = strings.Split(*apply, ",")
	}
	fmt.Print("Starting a Kubernetes API server on loopback … ")
	begun := time.Now()
	c, err := launch.StartCluster(ctx, options)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	fmt.Printf("ready after %.1f s\n", time.Since(begun).Seconds())
	for name, value := range map[string]string{
		"KUBECONFIG": c.Kubeconfig(),
		"PATH":       filepath.Dir(c.KubectlPath()) + ":" + os.Getenv("PATH"),
	} {
		if err := os.Setenv(name, value); err != nil {
			return 1, err
		}
	}
	return launch.Foreground(signals, flags.Arg(0), flags.Args()[1:]...)
}

// cluster runs a local Kubernetes until a signal.
func cluster(ctx context.Context, _ <-chan os.Signal, _ []string) (exitCode int, err error) {
	c, err := startCluster(ctx)
	if err != nil {
		return 1, err
	}
	fmt.Print(howToReach(c, "removes"))
	<-ctx.Done()
	return 0, stop(c)
}

// choosePage returns the flag that makes the controller serve the debug page, and a
// line for the user. If the controller's own flags have an address, it is theirs.
func choosePage(ctx context.Context, own []string) (flags []string, line string, err error) {
	const name = "-debug-bind-address"
	if slices.ContainsFunc(own, func(flag string) bool { return strings.Contains(flag, name) }) {
		return nil, "", nil
	}
	address, err := launch.FreeAddress(ctx, pageAddress)
	return []string{name + "=" + address}, "To watch the controller, open http://" + address + "/ in a browser.\n", err
}

func startCluster(ctx context.Context) (*launch.Cluster, error) {
	fmt.Println("Starting a local Kubernetes.")
	return launch.StartCluster(ctx, controlplane.Options{Apply: []string{"crd"}, ControllerManager: true})
}

// stop stops a local Kubernetes and prints what it removed.
func stop(c *launch.Cluster) error {
	err := c.Stop()
	if err == nil {
		fmt.Printf("Stopped the local Kubernetes. Removed its data and %s.\n", c.Kubeconfig())
	}
	return err
}

// howToReach returns what to type into a second terminal, with or without an
// installed kubectl, and what Ctrl-C does.
func howToReach(c *launch.Cluster, ctrlC string) string {
	commands := "  export KUBECONFIG=" + quote(c.Kubeconfig()) + "\n"
	if _, err := exec.LookPath("kubectl"); err != nil {
		commands += "  alias kubectl=" + quote(quote(c.KubectlPath())) + "\n"
	}
	return "It is ready. To use it, type into a second terminal:\n\n" + commands + "  kubectl get networks\n\n" +
		"Ctrl-C " + ctrlC + " this Kubernetes with all its objects.\n\n"
}

// quote returns a text as one word for a shell.
func quote(text string) string {
	const harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+:,./-"
	if text != "" && strings.Trim(text, harmless) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

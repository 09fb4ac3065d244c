// Command run runs the controller in the foreground, by default against a local
// Kubernetes that lives as long as the controller does. It is what `make run`
// calls, after it has built it:
//
//	build/bin/run [-kubeconfig PATH] -- ./samplecrd-controller [FLAGS]
//
// The controller gets the flag -kubeconfig before its own. Its exit code is
// that of this program, too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/samplecrd/network-controller/test/controlplane"
)

func main() {
	if pid := os.Getenv(guardedVariable); pid != "" {
		guard(pid)
		return
	}
	kubeconfig := flag.String("kubeconfig", "", "`path` of the kubeconfig file of a cluster to run against. Without it, a local one is started.")
	flag.Usage = func() {
		_, _ = fmt.Fprintf(flag.CommandLine.Output(), "usage: %s [-kubeconfig PATH] -- CONTROLLER [FLAGS]\n", filepath.Base(os.Args[0]))
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	exitCode, err := run(listen(), *kubeconfig, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
	}
	os.Exit(exitCode)
}

// run runs the controller until it ends, and returns its exit code.
func run(stop *stopper, kubeconfig string, controller []string) (exitCode int, err error) {
	// Whatever is wrong with the arguments is told before anything starts.
	path, err := exec.LookPath(controller[0])
	if err != nil {
		return 1, fmt.Errorf("finding the controller: %w", err)
	}
	command := func(kubeconfig string) *exec.Cmd {
		args := append([]string{"-kubeconfig=" + kubeconfig}, controller[1:]...)
		return exec.Command(path, args...) //nolint:noctx // it is asked to stop, not killed
	}
	if kubeconfig != "" {
		if kubeconfig, err = expandHome(kubeconfig); err != nil {
			return 1, err
		}
		if err := readable(kubeconfig); err != nil {
			return 1, fmt.Errorf("reading -kubeconfig: %w", err)
		}
		return stop.runForeground(command(kubeconfig))
	}

	cluster, err := startCluster(stop.context, os.Stdout)
	switch {
	case errors.Is(err, context.Canceled):
		return 130, nil // asked to stop before it was ready
	case err != nil:
		return 1, err
	}
	exitCode, err = stop.runForeground(command(cluster.Kubeconfig()))
	if stopping := cluster.Stop(); stopping != nil {
		exitCode, err = max(exitCode, 1), errors.Join(err, stopping)
	}
	return exitCode, err
}

// startCluster starts a local Kubernetes and tells how to reach it.
func startCluster(ctx context.Context, output io.Writer) (*controlplane.Cluster, error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintln(output, "Starting a local Kubernetes.")
	cluster, err := controlplane.Start(ctx, controlplane.Options{Apply: []string{"crd"}, ControllerManager: true})
	if err != nil {
		return nil, err
	}
	_, err = exec.LookPath("kubectl")
	_, _ = fmt.Fprint(output, howToReach(cluster.Kubeconfig(), filepath.Join(root, "build", "bin", "kubectl"), err == nil))
	return cluster, nil
}

// howToReach says what to type into a second terminal, where a kubectl may be
// installed or not.
func howToReach(kubeconfig, kubectl string, installed bool) string {
	lines := []string{"It is ready. To use it, type into a second terminal:", "", "  export KUBECONFIG=" + quote(kubeconfig)}
	if !installed {
		lines = append(lines, "  alias kubectl="+quote(quote(kubectl)))
	}
	return strings.Join(append(lines,
		"  kubectl get networks",
		"",
		"Ctrl-C ends the controller, and then this Kubernetes with all that is in it.",
		"", ""), "\n")
}

// quote makes one word for a shell of a text.
func quote(text string) string {
	const harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+:,./-"
	if text != "" && strings.Trim(text, harmless) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// expandHome does what a shell does with a path that begins with ~, in case
// none did it: in `make run KUBECONFIG=~/.kube/config`, for example.
func expandHome(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok || rest != "" && rest[0] != filepath.Separator {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding the home folder of %s: %w", path, err)
	}
	return filepath.Join(home, rest), nil
}

// readable returns an error when a file cannot be read.
func readable(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return file.Close()
}

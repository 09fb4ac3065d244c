// Command run runs the controller in the foreground, by default with a local
// Kubernetes that lives as long as the controller. make run builds the controller
// and calls this program:
//
//	build/bin/run [-kubeconfig PATH] -- ./samplecrd-controller [FLAGS]
//	build/bin/run -cluster-only
//
// The controller gets the flags -kubeconfig and -debug-bind-address before its own
// flags. Its exit code is the exit code of this program. The environment variable
// KUBEBUILDER_ASSETS names a folder with programs for the local Kubernetes.
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
	"slices"
	"strings"

	"github.com/samplecrd/network-controller/hack/local"
	"github.com/samplecrd/network-controller/test/controlplane"
)

func main() {
	if pid := os.Getenv(guardedVariable); pid != "" {
		guard(pid)
		return
	}
	kubeconfig := flag.String("kubeconfig", "", "`path` of the kubeconfig file of a cluster to run against. Without it, a local one is started.")
	clusterOnly := flag.Bool("cluster-only", false, "Run a local Kubernetes without a controller until a signal.")
	flag.Usage = func() {
		_, _ = fmt.Fprintf(flag.CommandLine.Output(), "usage: %s [-kubeconfig PATH] -- CONTROLLER [FLAGS]\n", filepath.Base(os.Args[0]))
		flag.PrintDefaults()
	}
	flag.Parse()
	if *clusterOnly {
		if err := runCluster(listen()); err != nil {
			fmt.Fprintln(os.Stderr, "run:", err)
			os.Exit(1)
		}
		return
	}
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
	// Wrong arguments are reported before anything starts.
	path, err := exec.LookPath(controller[0])
	if err != nil {
		return 1, fmt.Errorf("finding the controller: %w", err)
	}
	foreground := func(kubeconfig, usage string) (int, error) {
		pageFlag, page, err := pageOf(stop.context, controller[1:])
		if err != nil {
			return 1, err
		}
		fmt.Print(whereThePageIs(page) + usage)
		command := exec.Command(path, append([]string{"-kubeconfig=" + kubeconfig, pageFlag}, controller[1:]...)...) //nolint:noctx // it is stopped with a signal, not killed
		// Also where somebody works in a pod, the embedded Neutron is the default.
		command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "KUBERNETES_SERVICE_HOST=") })
		return stop.runForeground(command)
	}
	if kubeconfig != "" {
		if kubeconfig, err = expandHome(kubeconfig); err != nil {
			return 1, err
		}
		if err := readable(kubeconfig); err != nil {
			return 1, fmt.Errorf("reading -kubeconfig: %w", err)
		}
		return foreground(kubeconfig, "")
	}

	cluster, err := startCluster(stop.context, os.Stdout, "stops the controller, and then removes")
	switch {
	case errors.Is(err, context.Canceled):
		return 130, nil // stopped before it was ready
	case err != nil:
		return 1, err
	}
	exitCode, err = foreground(cluster.kubeconfig, cluster.usage)
	if stopping := cluster.stop(os.Stdout); stopping != nil {
		exitCode, err = max(exitCode, 1), errors.Join(err, stopping)
	}
	return exitCode, err
}

// runCluster runs a local Kubernetes until a signal.
func runCluster(stop *stopper) error {
	cluster, err := startCluster(stop.context, os.Stdout, "removes")
	switch {
	case errors.Is(err, context.Canceled):
		return nil // stopped before it was ready
	case err != nil:
		return err
	}
	fmt.Print(cluster.usage)
	<-stop.context.Done()
	return cluster.stop(os.Stdout)
}

// localCluster is a local Kubernetes.
type localCluster struct {
	*controlplane.Cluster
	kubeconfig string // a link that is the same in every run, if no other run uses it
	usage      string
}

// pageAddress is where the controller serves the debug page, unless something listens
// there already.
const pageAddress = "127.0.0.1:8123"

// pageOf returns the flag that makes the controller serve the debug page, and the
// address of the page. The controller's own flags have priority: the address is empty
// if they switch the page off, or choose a port that only the log shows.
func pageOf(ctx context.Context, flags []string) (pageFlag, address string, err error) {
	const name = "debug-bind-address"
	address, err = local.FreeAddress(ctx, pageAddress)
	if err != nil {
		return "", "", err
	}
	pageFlag = "-" + name + "=" + address
	for i, given := range flags {
		given = strings.TrimPrefix(strings.TrimPrefix(given, "-"), "-")
		if value, ok := strings.CutPrefix(given, name+"="); ok {
			address = value
		} else if given == name && i+1 < len(flags) {
			address = flags[i+1]
		}
	}
	if strings.HasSuffix(address, ":0") {
		address = ""
	}
	return pageFlag, address, nil
}

// whereThePageIs returns the line with the address of the debug page, if there is one.
func whereThePageIs(address string) string {
	if address == "" {
		return ""
	}
	return "To watch the controller, open http://" + address + "/ in a browser.\n"
}

// startCluster starts a local Kubernetes. Its usage includes what Ctrl-C does to it.
func startCluster(ctx context.Context, output io.Writer, ctrlC string) (*localCluster, error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return nil, err
	}
	options := controlplane.Options{Apply: []string{"crd"}, Assets: os.Getenv("KUBEBUILDER_ASSETS"), ControllerManager: true}
	kubectl := filepath.Join(root, "build", "bin", "kubectl")
	_, _ = fmt.Fprintln(output, "Starting a local Kubernetes.")
	if options.Assets != "" {
		kubectl = filepath.Join(options.Assets, "kubectl")
		if _, err := exec.LookPath(filepath.Join(options.Assets, "kube-controller-manager")); err != nil {
			options.ControllerManager = false
			_, _ = fmt.Fprintf(output, "%s has no kube-controller-manager: objects are not garbage-collected, and Deployments create no Pods.\n", options.Assets)
		}
	}
	cluster, err := controlplane.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	l := &localCluster{Cluster: cluster, kubeconfig: linkTo(cluster.Kubeconfig(), filepath.Join(root, "build", "run", "kubeconfig"))}
	_, err = exec.LookPath("kubectl")
	l.usage = howToReach(l.kubeconfig, kubectl, ctrlC, err == nil)
	return l, nil
}

// linkTo makes a symbolic link to a file and returns the path of the link. If the
// link exists and another run uses it, it returns the path of the file.
func linkTo(file, link string) string {
	if _, err := os.Stat(link); err == nil {
		return file
	}
	_ = os.Remove(link) // of a run that was killed
	if err := os.Symlink(file, link); err != nil {
		return file
	}
	return link
}

// stop stops the local Kubernetes and prints what it removed.
func (l *localCluster) stop(output io.Writer) error {
	if l.kubeconfig != l.Kubeconfig() {
		_ = os.Remove(l.kubeconfig)
	}
	if err := l.Stop(); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(output, "Stopped the local Kubernetes. Removed its data and %s.\n", l.kubeconfig)
	return nil
}

// howToReach returns what to type into a second terminal, with or without an
// installed kubectl.
func howToReach(kubeconfig, kubectl, ctrlC string, installed bool) string {
	lines := []string{"It is ready. To use it, type into a second terminal:", "", "  export KUBECONFIG=" + quote(kubeconfig)}
	if !installed {
		lines = append(lines, "  alias kubectl="+quote(quote(kubectl)))
	}
	return strings.Join(append(lines,
		"  kubectl get networks",
		"",
		"Ctrl-C "+ctrlC+" this Kubernetes with all its objects.",
		"", ""), "\n")
}

// quote returns a text as one word for a shell.
func quote(text string) string {
	const harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+:,./-"
	if text != "" && strings.Trim(text, harmless) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// expandHome expands a leading ~, which the shell does not expand in
// `make run KUBECONFIG='~/.kube/config'`.
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

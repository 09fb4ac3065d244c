// Package launch starts what a person tries the controller with: a local Kubernetes
// whose kubeconfig file is easy to find, and the built controller. It stops them at a
// signal. On Linux, they end with this process, even after kill -9.
package launch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/internal/process"
)

// Signals returns a context that ends at the first signal to stop, and a channel with
// these signals. The end of the parent process is such a signal, too: `go run` forwards
// only a Ctrl-C.
func Signals() (context.Context, <-chan os.Signal) {
	ctx, cancel := context.WithCancel(context.Background())
	received, passedOn := process.Signals(), make(chan os.Signal, 16)
	go func() {
		parent, parentEnds := os.Getppid(), time.NewTicker(time.Second)
		for {
			var one os.Signal = syscall.SIGTERM
			select {
			case one = <-received:
				if one == syscall.SIGHUP { // the terminal was closed
					one = syscall.SIGTERM
				}
			case <-parentEnds.C:
				if os.Getppid() == parent {
					continue
				}
			}
			parentEnds.Stop() // make ends at the signal that this process has received
			cancel()
			passedOn <- one
		}
	}()
	return ctx, passedOn
}

// Cluster is a local Kubernetes.
type Cluster struct {
	*controlplane.Cluster
	link string
}

// StartCluster starts a local Kubernetes, of prebuilt programs if there are any.
func StartCluster(ctx context.Context, options controlplane.Options) (*Cluster, error) {
	options.Assets = os.Getenv(controlplane.AssetsVariable)
	if options.Assets != "" && options.ControllerManager {
		if _, err := exec.LookPath(filepath.Join(options.Assets, "kube-controller-manager")); err != nil {
			options.ControllerManager = false
			fmt.Printf("%s has no kube-controller-manager: objects are not garbage-collected, and Deployments create no Pods.\n",
				options.Assets)
		}
	}
	cluster, err := controlplane.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	return &Cluster{cluster, linkTo(cluster.Kubeconfig(), filepath.Join(filepath.Dir(cluster.Dir()), "kubeconfig"))}, nil
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

// Kubeconfig returns the path of the kubeconfig file: build/run/kubeconfig in every
// run, unless another run uses that.
func (c *Cluster) Kubeconfig() string { return c.link }

// KubectlPath returns the path of a kubectl that is built, or in the folder of
// programs.
func (c *Cluster) KubectlPath() string {
	if folder := os.Getenv(controlplane.AssetsVariable); folder != "" {
		return filepath.Join(folder, "kubectl")
	}
	return filepath.Join(c.Dir(), "../../bin/kubectl")
}

// Stop stops the cluster and removes its files.
func (c *Cluster) Stop() error {
	if c.link != c.Cluster.Kubeconfig() {
		_ = os.Remove(c.link)
	}
	return c.Cluster.Stop()
}

// Command demo plays the walkthrough: it creates, edits and deletes a Network
// on a real API server. After each step it shows the state in Kubernetes and in
// Neutron. It exits with 0 if the state is as expected. If its output is not a
// terminal, it is plain text.
//
// The API server is a local one, or that of -kubeconfig. The environment variable
// KUBEBUILDER_ASSETS names a folder with programs for a local one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/samplecrd/network-controller/hack/local"
	"github.com/samplecrd/network-controller/test/controlplane"
)

const example = "example-network"

func main() {
	kubeconfig := flag.String("kubeconfig", "", "`path` of the kubeconfig file of a cluster to use. Defaults to a local control plane.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	begun := time.Now()
	err := play(ctx, *kubeconfig)
	switch {
	case err == nil:
		fmt.Printf("\n%s in %.0f s. Next: make run, and try it yourself.\n", local.Bold("All as expected"), time.Since(begun).Seconds())
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "\ndemo: interrupted; everything is stopped")
		os.Exit(1)
	default:
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

// play starts everything, plays the three acts, and stops everything.
func play(ctx context.Context, kubeconfig string) (err error) {
	if kubeconfig, err = absolute(kubeconfig); err != nil {
		return err
	}
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	if err := os.Chdir(root); err != nil {
		return fmt.Errorf("changing to the module's root: %w", err)
	}
	fmt.Println(local.Bold("A Network becomes a real network"))
	var c *cluster
	if kubeconfig == "" {
		c, err = startCluster(ctx, os.Getenv("KUBEBUILDER_ASSETS"))
	} else {
		c, err = useCluster(ctx, kubeconfig)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.cleanUp()) }()

	s, err := newStage(ctx, c)
	if err != nil {
		return err
	}
	if c.stop != nil || c.madeCRD {
		if err := s.kubectl("apply", "-f", "crd/"); err != nil {
			return err
		}
	}
	if err := s.startController(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.controller.Stop()) }()
	if err := local.Eventually(s.ctx, s.controller.Leads); err != nil {
		return err
	}

	for _, act := range []func(*stage) error{create, edit, remove} {
		if err := act(s); err != nil {
			return err
		}
	}
	return nil
}

func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

func create(s *stage) error {
	s.title("1. Create")
	if err := s.kubectl("apply", "-f", "example/example-network.yaml"); err != nil {
		return err
	}
	if err := s.showKubernetes("NetworkCreated"); err != nil {
		return err
	}
	return s.showNeutron("192.168.0.0/16", "192.168.0.1")
}

func edit(s *stage) error {
	s.title("2. Edit: the same range, written differently, and another gateway")
	patch := `{"spec":{"cidr":"192.168.1.0/16","gateway":"192.168.1.1"}}`
	if err := s.kubectl("patch", "network", example, "--type=merge", "--patch", patch); err != nil {
		return err
	}
	if err := s.showKubernetes("SubnetUpdated"); err != nil {
		return err
	}
	return s.showNeutron("192.168.0.0/16", "192.168.1.1")
}

func remove(s *stage) error {
	s.title("3. Delete")
	if err := s.kubectl("delete", "network", example, "--timeout", local.Timeout.String()); err != nil {
		return err
	}
	if err := s.kubectl("get", "networks"); err != nil {
		return err
	}
	if err := s.events("NetworkDeleted"); err != nil {
		return err
	}
	return s.checkNeutronEmpty()
}

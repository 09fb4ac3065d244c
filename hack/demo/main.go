// Command demo plays the walkthrough: it creates, edits and deletes a Network
// on a real API server, and shows after each step what Kubernetes says and what
// Neutron has. It exits with 0 where that is what it should be.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/samplecrd/network-controller/test/controlplane"
)

const (
	example = "example-network"
	timeout = time.Minute // for anything that should take a second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	begun := time.Now()
	err := play(ctx)
	switch {
	case err == nil:
		fmt.Printf("\n%s in %.0f s. Next: make run, and try it yourself.\n", bold("All as it should be"), time.Since(begun).Seconds())
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "\ndemo: interrupted; everything is stopped")
		os.Exit(1)
	default:
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

// play starts everything, plays the three acts, and stops everything.
func play(ctx context.Context) (err error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	if err := os.Chdir(root); err != nil {
		return fmt.Errorf("going to the module's root: %w", err)
	}
	fmt.Println(bold("A Network becomes a real network"))
	fmt.Print("\nStarting a Kubernetes API server on loopback … ")
	begun := time.Now()
	cluster, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	fmt.Printf("ready after %.1f s\n", time.Since(begun).Seconds())

	s, err := newStage(ctx, cluster)
	if err != nil {
		return err
	}
	if err := s.kubectl("apply", "-f", "crd/"); err != nil {
		return err
	}
	if err := s.startController(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stopController()) }()

	for _, act := range []func(*stage) error{create, edit, remove} {
		if err := act(s); err != nil {
			return err
		}
	}
	return nil
}

func create(s *stage) error {
	s.title("1. Create")
	if err := s.kubectl("apply", "-f", "example/example-network.yaml"); err != nil {
		return err
	}
	if err := s.kubernetesSays("NetworkCreated", "SubnetCreated"); err != nil {
		return err
	}
	return s.neutronHas("192.168.0.0/16", "192.168.0.1")
}

func edit(s *stage) error {
	s.title("2. Edit: the same range, written differently, and another gateway")
	patch := `{"spec":{"cidr":"192.168.1.0/16","gateway":"192.168.1.1"}}`
	if err := s.kubectl("patch", "network", example, "--type=merge", "--patch", patch); err != nil {
		return err
	}
	if err := s.kubernetesSays("SubnetUpdated"); err != nil {
		return err
	}
	return s.neutronHas("192.168.0.0/16", "192.168.1.1")
}

func remove(s *stage) error {
	s.title("3. Delete")
	if err := s.kubectl("delete", "network", example, "--timeout", timeout.String()); err != nil {
		return err
	}
	if err := s.kubectl("get", "networks"); err != nil {
		return err
	}
	if err := s.events("NetworkDeleted"); err != nil {
		return err
	}
	return s.neutronHasNothing()
}

// bold makes a text stand out on a terminal, and leaves it alone elsewhere.
func bold(text string) string {
	stdout, err := os.Stdout.Stat()
	if err != nil || stdout.Mode()&os.ModeCharDevice == 0 || os.Getenv("NO_COLOR") != "" {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

// shellWords writes a command line as one would type it.
func shellWords(args []string) string {
	var words []string
	for _, arg := range args {
		if strings.ContainsAny(arg, `{}" `) {
			arg = "'" + arg + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

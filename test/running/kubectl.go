package running

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/samplecrd/network-controller/test/controlplane"
)

// Kubectl is kubectl in a test, with the permissions of an administrator.
type Kubectl struct {
	*testing.T
	Cluster *controlplane.Cluster
}

// Do runs kubectl, and returns what it prints.
func (k Kubectl) Do(args ...string) string {
	k.Helper()
	output, err := k.Cluster.Kubectl(k.Context(), args...)
	if err != nil {
		k.Fatal(err)
	}
	return string(output)
}

// TryApply applies a manifest. The end of the test deletes what is in it.
func (k Kubectl) TryApply(manifest string) error {
	k.Helper()
	file := filepath.Join(k.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		k.Fatal(err)
	}
	_, err := k.Cluster.Kubectl(k.Context(), "apply", "--server-side", "--force-conflicts", "-f", file)
	if err == nil {
		k.Cleanup(func() { // the context of the test has ended
			_, _ = k.Cluster.Kubectl(context.Background(), "delete", "--ignore-not-found", "--wait=false", "-f", file)
		})
	}
	return err
}

// Apply applies a manifest.
func (k Kubectl) Apply(manifest string) {
	k.Helper()
	if err := k.TryApply(manifest); err != nil {
		k.Fatal(err)
	}
}

// Prints returns an error unless kubectl prints a text that matches a regular expression.
func (k Kubectl) Prints(pattern string, args ...string) error {
	output, err := k.Cluster.Kubectl(k.Context(), args...)
	if err != nil {
		output = []byte(err.Error())
	}
	if !regexp.MustCompile(pattern).Match(output) {
		return fmt.Errorf("kubectl %s prints %q, want %s", strings.Join(args, " "), output, pattern)
	}
	return nil
}

// Want waits until it does.
func (k Kubectl) Want(pattern string, args ...string) {
	k.Helper()
	Eventually(k.T, func() error { return k.Prints(pattern, args...) })
}

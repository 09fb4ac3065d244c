package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
)

// Names in deploy/.
const (
	system     = "samplecrd-system"
	controller = "samplecrd-controller" // Deployment, Lease and ServiceAccount
	home       = "samplecrd-e2e"        // the namespace of the Networks of this test
	shipped    = "ghcr.io/samplecrd/network-controller:latest"
)

// cluster is the cluster on which the test runs.
type cluster struct {
	kubeconfig string
	config     *rest.Config
	kube       kubernetes.Interface
	streams    kubernetes.Interface // without a timeout
	networks   versioned.Interface

	image, upgrade string // upgrade may be empty
	// address is an address of this machine that pods can reach. It may be empty.
	address string
	node    *node // nil for an existing cluster

	// unready are the periods in which this test restarted the API server.
	unready []period
	logs    *logs
	timings []string
	notRun  []string
}

type period struct{ from, to time.Time }

// connect returns the cluster in the environment variables.
func connect(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{
		kubeconfig: os.Getenv("E2E_KUBECONFIG"),
		image:      os.Getenv("IMAGE"),
		upgrade:    os.Getenv("UPGRADE_IMAGE"),
		address:    os.Getenv("NEUTRON_ADDRESS"),
	}
	if folder := os.Getenv("NODE_RUN_FOLDER"); folder != "" {
		c.kubeconfig, c.address = os.Getenv("KUBECONFIG"), os.Getenv("NODE_ADDRESS")
		c.node = &node{folder: folder, auditLog: os.Getenv("NODE_AUDIT_LOG")}
	}
	if c.kubeconfig == "" {
		t.Skip("no cluster to run on: `make e2e` starts one; `make e2e KUBECONFIG=path` uses yours")
	}
	if c.image == "" {
		c.image = shipped
	}
	var err error
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig); err != nil {
		t.Fatalf("reading %s: %v", c.kubeconfig, err)
	}
	c.config.QPS = -1
	if c.streams, err = kubernetes.NewForConfig(c.config); err != nil {
		t.Fatalf("using %s: %v", c.kubeconfig, err)
	}
	c.config.Timeout = 10 * time.Second // a request without a response is sent again
	if c.kube, err = kubernetes.NewForConfig(c.config); err == nil {
		c.networks, err = versioned.NewForConfig(c.config)
	}
	if err != nil {
		t.Fatalf("using %s: %v", c.kubeconfig, err)
	}
	return c
}

// timed records a duration for the end of the log.
func (c *cluster) timed(t *testing.T, what string, took time.Duration) {
	t.Helper()
	line := fmt.Sprintf("%6.1f s  %s", took.Seconds(), what)
	t.Log(line)
	c.timings = append(c.timings, line)
}

// cannot skips a part of the test, and records the reason.
func (c *cluster) cannot(t *testing.T, why string) {
	t.Helper()
	c.notRun = append(c.notRun, fmt.Sprintf("%s: %s", t.Name(), why))
	t.Skip(why)
}

// tryKubectl runs kubectl with an input, and returns its standard output and error.
func (c *cluster) tryKubectl(ctx context.Context, input string, args ...string) (output, complaints string, err error) {
	command := exec.CommandContext(ctx, "kubectl", append([]string{"--kubeconfig=" + c.kubeconfig}, args...)...)
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(input), &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), stderr.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), stderr.String(), nil
}

// kubectl runs kubectl, which must succeed.
func (c *cluster) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return c.kubectlReads(t, "", args...)
}

// kubectlReads runs kubectl with an input; it must succeed. kubectl apply must print
// no warning either, such as one of Pod Security.
func (c *cluster) kubectlReads(t *testing.T, input string, args ...string) string {
	t.Helper()
	output, complaints, err := c.tryKubectl(t.Context(), input, args...)
	if err != nil {
		t.Fatal(err)
	}
	if complaints != "" && args[0] == "apply" {
		t.Errorf("kubectl %s printed a warning: %s", strings.Join(args, " "), complaints)
	}
	return output
}

// until waits until a check returns nil, and returns how long that took.
func until(t *testing.T, limit time.Duration, want string, wrong func(context.Context) error) time.Duration {
	t.Helper()
	begun := time.Now()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		err := wrong(ctx)
		if err == nil || ctx.Err() == nil { // otherwise the error is only that the wait ended
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: not within %v: %v", want, limit, errors.Join(last, t.Context().Err()))
	}
	return time.Since(begun)
}

// overlay returns the folder of an overlay in deploy/, or of an overlay on top of it
// if the image is not the shipped one.
func (c *cluster) overlay(t *testing.T, name, image string) string {
	t.Helper()
	folder := filepath.Join("deploy", "overlays", name)
	if image == shipped {
		return folder
	}
	if err := os.MkdirAll("build", 0o755); err != nil {
		t.Fatal(err)
	}
	top, err := os.MkdirTemp("build", "e2e-overlay-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	cut := strings.LastIndex(image, ":")
	if cut < strings.LastIndex(image, "/") {
		t.Fatalf("the image %s has no tag", image)
	}
	text := fmt.Sprintf(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - ../../%s
images:
  - name: %s
    newName: %s
    newTag: %q
`, filepath.ToSlash(folder), strings.TrimSuffix(shipped, ":latest"), image[:cut], image[cut+1:])
	if err := os.WriteFile(filepath.Join(top, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return top
}

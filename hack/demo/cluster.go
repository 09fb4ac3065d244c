package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/samplecrd/network-controller/hack/local"
	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/test/controlplane"
)

// cluster is where the demo runs: a local control plane, which is removed as a
// whole, or the cluster of a kubeconfig file, from which the demo removes what it
// created.
type cluster struct {
	kubeconfig      string
	kubectlPath     string
	namespace       string
	controllerFlags []string

	stop    func() error // stops a local control plane
	madeCRD bool         // in a cluster that is not local
}

const crdName = "networks.samplecrd.k8s.io"

// startCluster starts a local control plane, of the prebuilt programs in a folder
// if it is not "".
func startCluster(ctx context.Context, assets string) (*cluster, error) {
	fmt.Print("\nStarting a Kubernetes API server on loopback … ")
	begun := time.Now()
	started, err := controlplane.Start(ctx, controlplane.Options{Assets: assets})
	if err != nil {
		fmt.Println()
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	fmt.Printf("ready after %.1f s\n", time.Since(begun).Seconds())
	kubectl := filepath.Join("build", "bin", "kubectl")
	if assets != "" {
		kubectl = filepath.Join(assets, "kubectl")
	}
	return &cluster{kubeconfig: started.Kubeconfig(), kubectlPath: kubectl, namespace: metav1.NamespaceDefault, stop: started.Stop}, nil
}

// useCluster prepares the cluster of a kubeconfig file: a namespace for the demo,
// and a kubeconfig file whose default is that namespace.
func useCluster(ctx context.Context, kubeconfig string) (_ *cluster, err error) {
	kubectl, err := findKubectl()
	if err != nil {
		return nil, err
	}
	c := &cluster{kubeconfig: kubeconfig, kubectlPath: kubectl}
	namespace := "network-demo-" + rand.String(5)
	if _, err := c.kubectl(ctx, "create", "namespace", namespace); err != nil {
		return nil, err
	}
	c.namespace = namespace
	fmt.Printf("\nUsing the cluster of %s, namespace %s\n", kubeconfig, namespace)
	// The demo's Neutron is in memory: its controller must not touch other Networks.
	c.controllerFlags = []string{"-namespaces", namespace, "-deployment-networks", "none"}
	if c.kubeconfig, err = withNamespace(kubeconfig, namespace); err == nil {
		c.madeCRD, err = c.lacksCRD(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.cleanUp())
	}
	return c, nil
}

// findKubectl returns the path of an installed kubectl, or of the one that make
// control-plane builds.
func findKubectl() (string, error) {
	if path, err := exec.LookPath("kubectl"); err == nil {
		return path, nil
	}
	path, err := exec.LookPath(filepath.Join("build", "bin", "kubectl"))
	if err != nil {
		return "", errors.New("kubectl is not installed: install it, or build it with make control-plane")
	}
	return path, nil
}

// withNamespace returns the path of a copy of a kubeconfig file with another
// default namespace.
func withNamespace(kubeconfig, namespace string) (string, error) {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return "", fmt.Errorf("reading the kubeconfig file: %w", err)
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return "", fmt.Errorf("%s has no current context", kubeconfig)
	}
	current.Namespace = namespace
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return "", fmt.Errorf("reading the kubeconfig file: %w", err)
	}
	folder, err := os.MkdirTemp("", "network-demo-")
	if err != nil {
		return "", fmt.Errorf("writing a kubeconfig file: %w", err)
	}
	path := filepath.Join(folder, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", errors.Join(fmt.Errorf("writing a kubeconfig file: %w", err), os.RemoveAll(folder))
	}
	return path, nil
}

func (c *cluster) lacksCRD(ctx context.Context) (bool, error) {
	found, err := c.kubectl(ctx, "get", "crd", crdName, "--ignore-not-found", "-o", "name")
	return found == "", err
}

// kubectl runs kubectl, and returns its output.
func (c *cluster) kubectl(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, c.kubectlPath, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	output, err := command.CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("kubectl %s: %w: %s", args[0], err, strings.TrimSpace(string(output)))
	}
	return string(output), nil
}

// cleanUp removes the local control plane, or what the demo created in another
// cluster. The controller has been stopped: the finalizers that it left are
// removed too, because its Neutron is gone.
func (c *cluster) cleanUp() error {
	if c.stop != nil {
		return c.stop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), local.Timeout) // also after Ctrl-C
	defer cancel()
	defer os.RemoveAll(filepath.Dir(c.kubeconfig)) //nolint:errcheck // a file in the system's temporary folder
	var errs []error
	run := func(args ...string) string {
		output, err := c.kubectl(ctx, args...)
		errs = append(errs, err)
		return output
	}
	removed := "namespace " + c.namespace
	for name := range strings.FieldsSeq(run("get", "networks", "--namespace", c.namespace, "--ignore-not-found", "-o", "name")) {
		run("patch", name, "--namespace", c.namespace, "--type=merge", "--patch", `{"metadata":{"finalizers":null}}`)
	}
	run("delete", "namespace", c.namespace)
	if c.madeCRD {
		if run("get", "networks", "--all-namespaces", "-o", "name") == "" {
			run("annotate", "crd", crdName, samplecrdv1.AnnotationAllowDeletion+"=true")
			run("delete", "-f", "crd/")
			removed += " and CRD " + crdName
		} else {
			removed += "; not CRD " + crdName + ", because Networks exist"
		}
	}
	err := errors.Join(errs...)
	if err == nil {
		fmt.Printf("\nRemoved %s.\n", removed)
	}
	return err
}

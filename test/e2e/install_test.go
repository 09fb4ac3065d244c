package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	ofController = "app.kubernetes.io/name=" + controller
	podNames     = []string{"get", "pods", "-n", system, "-l", ofController, "-o", "jsonpath={.items[*].metadata.name}"}
)

// available waits until the Deployment is rolled out, and all other pods are gone.
func (n *node) available(t *testing.T, replicas int) (pods []string) {
	t.Helper()
	n.kubectl(t, "rollout", "status", "-n", system, "deployment/"+controller, "--timeout=2m")
	until(t, time.Minute, "the pods", func(ctx context.Context) error {
		output, _, err := tryKubectl(ctx, "", podNames...)
		if pods = strings.Fields(output); err == nil && len(pods) != replicas {
			err = fmt.Errorf("there are %v, want %d", pods, replicas)
		}
		return err
	})
	return pods
}

// podsAreRestricted checks the rights of the processes. It is not enough that the pods
// were admitted.
func (n *node) podsAreRestricted(t *testing.T) {
	n.prints(t, "restricted", "get", "namespace", system, "-o", `jsonpath={.metadata.labels.pod-security\.kubernetes\.io/enforce}`)
	processes := n.processes(func(p nodeProcess) bool { return strings.HasPrefix(p.command, "/"+controller) })
	if len(processes) == 0 {
		t.Error("the controller has no process")
	}
	for _, p := range processes {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"Uid:\t65532\t65532\t65532\t65532", "Gid:\t65532\t65532\t65532\t65532", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2",
		} {
			if !strings.Contains(string(status), want+"\n") {
				t.Errorf("the process of the controller has no %q:\n%s", want, status)
			}
		}
		mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mounts", p.pid))
		if err != nil {
			t.Fatal(err)
		}
		if root, _, _ := strings.Cut(string(mounts), "\n"); !strings.Contains(root, " / ") || !strings.Contains(root, " ro,") {
			t.Errorf("the root filesystem is not mounted read-only: %s", root)
		}
	}
}

// installYAML is install.yaml in the OCI artifact, which run.sh has unpacked.
const installYAML = "build/e2e/manifests/install/install.yaml"

// installWithSecret installs from the OCI artifact of a release. The Pods wait for a Secret, which is
// created later, as in docs/operate/install.md.
func (n *node) installWithSecret(t *testing.T, c *cloud) {
	t.Helper()
	n.kubectl(t, "apply", "-f", "build/e2e/manifests/crds/crds.yaml")
	n.kubectl(t, "apply", "-f", installYAML)
	path := filepath.Join(t.TempDir(), "clouds.yaml")
	if err := os.WriteFile(path, []byte(c.CloudsYAML()), 0o600); err != nil {
		t.Fatal(err)
	}
	n.kubectl(t, "create", "secret", "generic", "openstack-clouds", "-n", system, "--from-file=clouds.yaml="+path)
	n.available(t, 2)
}

// uninstall deletes everything as in docs/operate/maintain.md, and checks that nothing is
// left.
func (n *node) uninstall(t *testing.T, c *cloud, installed ...string) {
	n.kubectl(t, "delete", "networks.samplecrd.k8s.io", "--all", "-A", "--timeout=90s")
	if c != nil {
		if left := c.content(t); len(left) > 0 {
			t.Errorf("left in Neutron: %v", left)
		}
	}
	n.kubectl(t, append([]string{"delete", "--timeout=90s"}, installed...)...)
	n.kubectl(t, "annotate", "crd", "networks.samplecrd.k8s.io", "samplecrd.k8s.io/allow-deletion=true")
	n.kubectl(t, "delete", "-f", "crd/", "--timeout=90s")
	until(t, time.Minute, "nothing is left in Kubernetes", func(ctx context.Context) error {
		names, _, err := tryKubectl(ctx, "", "get", "-A", "-o", "name", "namespaces,customresourcedefinitions,"+
			"clusterroles,clusterrolebindings,roles,rolebindings,leases,validatingadmissionpolicies,validatingadmissionpolicybindings")
		if err == nil && strings.Contains(names, "samplecrd") {
			err = fmt.Errorf("there are %s", names)
		}
		return err
	})
}

// apply applies a Network.
func (n *node) apply(t *testing.T, name, gateway string) {
	t.Helper()
	const network = `{"apiVersion": "samplecrd.k8s.io/v1", "kind": "Network", "metadata": {"name": %q}, "spec": {"cidr": "10.5.0.0/24", "gateway": %q}}`
	n.kubectlReads(t, fmt.Sprintf(network, name, gateway), "apply", "-n", home, "-f", "-")
}

// ready waits until the current spec of a Network is ready.
func (n *node) ready(t *testing.T, name string) (status string) {
	t.Helper()
	n.kubectl(t, "wait", "-n", home, "network/"+name, "--for=condition=Ready", "--timeout=60s")
	return n.kubectl(t, "get", "-n", home, "network", name, "-o", "jsonpath={.status.networkID} {.status.subnetID} {.status.cidr} {.status.gateway}")
}

// walkthrough creates, edits and deletes a Network as in the README.
func (n *node) walkthrough(t *testing.T, c *cloud) {
	const name = "example-network"
	example, err := os.ReadFile("example/example-network.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n.kubectlReads(t, string(example), "apply", "-n", home, "-f", "-")
	first := n.ready(t, name)
	ids, subnet := first[:strings.LastIndex(first[:strings.LastIndex(first, " ")], " ")], " 192.168.0.0/16 192.168.0."
	if first != ids+subnet+"1" {
		t.Errorf("the status has %q", first)
	}
	n.kubectl(t, "patch", "network", "-n", home, name, "--type=merge", "-p", `{"spec": {"gateway": "192.168.0.9"}}`)
	if second := n.ready(t, name); second != ids+subnet+"9" {
		t.Errorf("after the edit, the status has %q, and before %q", second, first)
	}
	if c != nil {
		got, _ := c.content(t)[strings.Fields(ids)[1]].(map[string]any)
		if got["cidr"] != "192.168.0.0/16" || got["gateway_ip"] != "192.168.0.9" {
			t.Errorf("Neutron has the subnet %v", got)
		}
	}
	n.kubectl(t, "delete", "network", "-n", home, name, "--timeout=60s")
	if c != nil && len(c.content(t)) > 0 {
		t.Errorf("Neutron still has %v", c.content(t))
	}
}

// deploymentGetsNetwork adds the annotations of a Network to a Deployment, changes and
// removes them.
func (n *node) deploymentGetsNetwork(t *testing.T) {
	annotate := func(annotations ...string) {
		t.Helper()
		n.kubectl(t, append([]string{"annotate", "--overwrite", "-n", home, "deployment", "web"}, annotations...)...)
	}
	gateway := []string{"get", "network", "-n", home, "web", "--ignore-not-found", "-o", "jsonpath={.status.gateway}"}
	n.kubectl(t, "apply", "-n", home, "-f", "example/deployment.yaml")
	n.prints(t, "10.40.0.1", gateway...)
	annotate("samplecrd.k8s.io/gateway=10.40.0.2")
	n.prints(t, "10.40.0.2", gateway...)
	annotate("samplecrd.k8s.io/gateway-", "samplecrd.k8s.io/cidr-")
	n.prints(t, "", gateway...)
	n.kubectl(t, "delete", "-n", home, "deployment", "web")
}

// wantNoSecrets fails if a secret is in a log, an event, a Network or a pod.
func (n *node) wantNoSecrets(t *testing.T) {
	for _, args := range [][]string{
		{"logs", "-n", system, "-l", ofController, "--tail=-1"},
		{"get", "events", "-A", "-o", "json"},
		{"get", "networks", "-A", "-o", "json"},
		{"get", "pods", "-n", system, "-o", "json"},
	} {
		text := n.kubectl(t, args...)
		if len(text) < 100 || strings.Contains(text, planted) {
			t.Errorf("kubectl %v prints a secret, or nothing, in %d bytes", args, len(text))
		}
	}
}

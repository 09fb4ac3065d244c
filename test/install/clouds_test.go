package install

import (
	"strings"
	"testing"

	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/keystone"
)

// TestCloudOfNamespace: with deploy/cloud-of-namespace, the controller uses the Secret of a
// namespace, and with its rights nobody can read another one. Without it, the namespace has
// its networks in the controller's own cloud.
func TestCloudOfNamespace(t *testing.T) {
	t.Parallel()
	own := controlplane.StartForTest(t, controlplane.Options{Apply: []string{"crd"}, ControllerManager: true})
	cloud := keystone.Start()
	t.Cleanup(cloud.Close)
	kubectl(t, own, "apply", "-k", "deploy/overlays/openstack")
	for _, namespace := range []string{"allowed", "other"} {
		kubectl(t, own, "create", "namespace", namespace)
		for _, name := range []string{"samplecrd-cloud", "password"} {
			content := "--from-literal=clouds.yaml=" + cloud.AddProject(namespace).CloudsYAML()
			kubectl(t, own, "create", "secret", "generic", "-n", namespace, name, content)
		}
		kubectl(t, own, "apply", "-n", namespace, "-f", "example/example-network.yaml")
	}
	kubectl(t, own, "apply", "-n", "allowed", "-k", "deploy/cloud-of-namespace")
	start(t, nil, "-kubeconfig="+asController(t, own), "-embedded-neutron", "-allowed-auth-urls="+cloud.URL,
		"-health-probe-bind-address=127.0.0.1:0", "-metrics-bind-address=127.0.0.1:0")
	for namespace, want := range map[string]string{"allowed": "RegionOne/allowed-id", "other": "embedded"} {
		kubectl(t, own, "wait", "-n", namespace, "--for=condition=Ready", "network/example-network", "--timeout=60s")
		kubectl(t, own, "wait", "-n", namespace, "--for=jsonpath={.status.cloud}="+want, "network/example-network", "--timeout=10s")
	}

	if !may(t, own, "get", "secret/samplecrd-cloud", "-n", "allowed") {
		t.Error("the controller may not read its Secret")
	}
	for namespace, secrets := range map[string]string{
		"allowed": "password", "other": "password samplecrd-cloud",
		"kube-system": "samplecrd-cloud", "samplecrd-system": "samplecrd-cloud",
	} {
		for secret := range strings.FieldsSeq(secrets) {
			if may(t, own, "get", "secret/"+secret, "-n", namespace) {
				t.Errorf("the controller may read the Secret %s/%s", namespace, secret)
			}
		}
	}
	for _, scope := range []string{"--namespace=allowed", "--namespace=other", "--all-namespaces"} {
		if may(t, own, "list", "secrets", scope) || may(t, own, "watch", "secrets", scope) {
			t.Errorf("the controller may list or watch Secrets with %s", scope)
		}
	}
}

package install

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

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
	admin := kubernetes.NewForConfigOrDie(own.RESTConfig())
	kubectl(t, own, "apply", "-k", "deploy/overlays/openstack")
	for _, namespace := range []string{"allowed", "other"} {
		kubectl(t, own, "create", "namespace", namespace)
		for _, name := range []string{"samplecrd-cloud", "password"} {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{
				"clouds.yaml": cloud.AddProject(namespace).CloudsYAML(),
			}}
			if _, err := admin.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		kubectl(t, own, "apply", "-n", namespace, "-f", "example/example-network.yaml")
	}
	kubectl(t, own, "apply", "-n", "allowed", "-k", "deploy/cloud-of-namespace")
	kubeconfig := asController(t, own)
	start(t, nil, "-kubeconfig="+kubeconfig, "-embedded-neutron", "-allowed-auth-urls="+cloud.URL,
		"-health-probe-bind-address=127.0.0.1:0", "-metrics-bind-address=127.0.0.1:0")
	for namespace, want := range map[string]string{"allowed": "RegionOne/allowed-id", "other": "embedded"} {
		kubectl(t, own, "wait", "-n", namespace, "--for=condition=Ready", "network/example-network", "--timeout=60s")
		kubectl(t, own, "wait", "-n", namespace, "--for=jsonpath={.status.cloud}="+want, "network/example-network", "--timeout=10s")
	}

	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	secrets := kubernetes.NewForConfigOrDie(config).CoreV1()
	if _, err := secrets.Secrets("allowed").Get(t.Context(), "samplecrd-cloud", metav1.GetOptions{}); err != nil {
		t.Errorf("the controller cannot read its Secret: %v", err)
	}
	for namespace, names := range map[string][]string{
		"allowed": {"password"}, "other": {"password", "samplecrd-cloud"}, "kube-system": {"samplecrd-cloud"}, "samplecrd-system": {"samplecrd-cloud"},
	} {
		for _, name := range names {
			if _, err := secrets.Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsForbidden(err) {
				t.Errorf("reading the Secret %s/%s: error is %v, want that it is forbidden", namespace, name, err)
			}
		}
	}
	for _, namespace := range []string{"allowed", "other", metav1.NamespaceAll} {
		if _, err := secrets.Secrets(namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("listing Secrets of %q: error is %v, want that it is forbidden", namespace, err)
		}
		if _, err := secrets.Secrets(namespace).Watch(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("watching Secrets of %q: error is %v, want that it is forbidden", namespace, err)
		}
	}
}

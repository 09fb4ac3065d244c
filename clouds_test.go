package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/samplecrd/network-controller/pkg/clouds"
	"github.com/samplecrd/network-controller/test/keystone"
	"github.com/samplecrd/network-controller/test/neutronapi"
)

// These tests show one controller with several clouds: its own, and those that the Secrets
// of namespaces lead to.

// newTenants returns a harness for the namespace of the controller's own cloud, whose next
// controllers use Secrets for an OpenStack with several projects.
func newTenants(t *testing.T) (*harness, *keystone.Cloud) {
	t.Helper()
	h, cloud := newHarness(t), keystone.Start()
	t.Cleanup(cloud.Close)
	h.options.clouds = clouds.Options{
		AllowedURLs: []string{cloud.URL}, Workers: 5,
		CheckPeriod: 50 * time.Millisecond, GracePeriod: 200 * time.Millisecond, MoveDelay: 100 * time.Millisecond,
	}
	return h, cloud
}

// tenant returns a harness for another namespace that the next controllers watch.
func (h *harness) tenant() *harness {
	h.Helper()
	other := h.beside()
	for i, arg := range h.args {
		if arg == "-namespaces="+h.namespace || len(arg) > 12 && arg[:12] == "-namespaces=" {
			h.args[i] = arg + "," + other.namespace
		}
	}
	return other
}

// useCloud writes the Secret of a namespace.
func (h *harness) useCloud(cloudsYAML string) {
	h.Helper()
	secrets := h.kube.CoreV1().Secrets(h.namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: clouds.SecretName},
		Data: map[string][]byte{"clouds.yaml": []byte(cloudsYAML)}}
	_, err := secrets.Update(h.Context(), secret, metav1.UpdateOptions{})
	if err != nil {
		_, err = secrets.Create(h.Context(), secret, metav1.CreateOptions{})
	}
	if err != nil {
		h.Fatal(err)
	}
}

func (h *harness) loseCloud() {
	h.Helper()
	if err := h.kube.CoreV1().Secrets(h.namespace).Delete(h.Context(), clouds.SecretName, metav1.DeleteOptions{}); err != nil {
		h.Fatal(err)
	}
}

// hasNetworks reports whether a project has this number of networks.
func hasNetworks(p *keystone.Project, want int) error {
	all, err := neutronapi.API{Neutron: p.Neutron}.State()
	if err != nil {
		return err
	}
	if len(all.Networks) != want {
		return fmt.Errorf("project %s has %d networks, want %d", p.Name, len(all.Networks), want)
	}
	return nil
}

// TestCloudsOfNamespaces: the Networks of a namespace are made in the project that its Secret
// leads to, and the others in the controller's own cloud. All live through their life.
func TestCloudsOfNamespaces(t *testing.T) {
	own, cloud := newTenants(t)
	a, b, c := own.tenant(), own.tenant(), own.tenant()
	first, second := cloud.AddProject("first"), cloud.AddProject("second")
	a.useCloud(first.CloudsYAML())
	b.useCloud(second.CloudsYAML())
	c.useCloud(second.CloudsYAML())
	own.startController()

	for _, h := range []*harness{own, a, b, c} {
		h.create("example", "10.0.0.0/24", "")
	}
	for h, identity := range map[*harness]string{
		own: own.cloud, a: first.Identity(), b: second.Identity(), c: second.Identity(),
	} {
		if got := h.waitReady("example").Status.Cloud; got != identity {
			t.Errorf("the network is in the cloud %q, want %q", got, identity)
		}
	}
	own.want(errors.Join(own.hasCounts(1, 1), hasNetworks(first, 1), hasNetworks(second, 2)))

	for _, h := range []*harness{own, a, b, c} {
		h.edit(`{"gateway":"10.0.0.9"}`)
		h.waitReady("example")
		h.delete("example")
		h.waitGone("example")
	}
	own.want(errors.Join(own.hasCounts(0, 0), hasNetworks(first, 0), hasNetworks(second, 0)))
}

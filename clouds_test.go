package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	i := slices.IndexFunc(h.args, func(arg string) bool { return strings.HasPrefix(arg, "-namespaces=") })
	h.args[i] += "," + other.namespace
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

// createIn creates the Network example, and waits for its condition.
func (h *harness) createIn(condition, message string) {
	h.Helper()
	h.create("example", "10.0.0.0/24", "")
	h.waitCondition("example", condition, message)
}

// TestUnusableSecret: if the controller has no cloud of its own, the Networks show why the
// Secret of their namespace cannot be used, or that there is none. It is used when it has been
// corrected, and the log has nothing of it.
func TestUnusableSecret(t *testing.T) {
	h, cloud := newTenants(t)
	h.neutronURL, h.verbosity = "", 10 // client-go logs bodies
	project := cloud.AddProject("first")
	good := project.CloudsYAML()
	h.startController()
	h.createIn("NoCloud", "the controller has no cloud of its own, and finds no Secret samplecrd-cloud in the namespace "+
		"that it may read. Create that Secret with the key clouds.yaml, and the Role and RoleBinding of deploy/cloud-of-namespace")
	h.useCloud("")
	h.waitCondition("example", "NoCloud", "the Secret "+h.namespace+"/samplecrd-cloud has no clouds.yaml")
	h.useCloud(strings.Replace(good, cloud.URL, "http://10.0.0.1:5000", 1))
	h.waitCondition("example", "NoCloud", "auth_url is not one that the administrator of the controller allows (-allowed-auth-urls)")
	h.useCloud(strings.Replace(good, "password-of-first", "another-password", 1))
	h.waitCondition("example", "LoginRejected", "The request you have made requires authentication.")
	h.want(hasNetworks(project, 0))
	for _, text := range []string{"another-password", `Response Body namespace="`} { // of what reads Secrets
		if err := h.hasLogged(text); err == nil {
			t.Errorf("the log has %s", text)
		}
	}
	h.want(h.hasLogged("Response Body")) // else this test shows nothing
	h.useCloud(good)
	h.waitReady("example")

	h.useCloud("clouds: {a: {}, b: {}}")
	h.eventually(func() error { return h.hasLogged(`must have one cloud, or one with the name \"openstack\"`) })
	project.SetPassword("changed-in-keystone-only")
	cloud.Revoke()
	h.edit(`{"gateway":"10.0.0.9"}`)
	h.waitCondition("example", "LoginRejected", `the changed cloud configuration is unusable: clouds.yaml in the Secret `)

	h.loseCloud()
	h.waitCondition("example", "NoCloud", "finds no Secret samplecrd-cloud")
	h.useCloud(project.CloudsYAML())
	h.waitReady("example")
	h.want(hasNetworks(project, 1))
}

// TestSecretDeleted: without the Secret, the Network and its network stay, and nothing is made
// in the controller's own cloud. A Secret for the same project continues where it was.
func TestSecretDeleted(t *testing.T) {
	h, cloud := newTenants(t)
	project := cloud.AddProject("first")
	h.useCloud(project.CloudsYAML())
	h.startController()
	h.createIn(provisioned, "")

	h.loseCloud()
	h.waitCondition("example", "OtherCloud", `the network is in the cloud "RegionOne/first-id"`)
	h.delete("example")
	h.edit(`{"gateway":"10.0.0.9"}`)
	h.waitCondition("example", "OtherCloud", "-leave-cloud=RegionOne/first-id")
	h.want(errors.Join(h.hasCounts(0, 0), hasNetworks(project, 1)))

	h.useCloud(project.CloudsYAML())
	h.waitGone("example")
	h.want(errors.Join(h.hasCounts(0, 0), hasNetworks(project, 0)))
}

// TestHangingCloud: two clouds that hang, one of them before its first login, delay neither
// another cloud nor the controller's own, although there are fewer workers than requests.
func TestHangingCloud(t *testing.T) {
	own, cloud := newTenants(t)
	bad := keystone.Start()
	t.Cleanup(bad.Close)
	own.options.clouds.AllowedURLs = append(own.options.clouds.AllowedURLs, bad.URL)
	a, b, c := own.tenant(), own.tenant(), own.tenant()
	good := cloud.AddProject("good")
	a.useCloud(good.CloudsYAML())
	b.useCloud(bad.AddProject("bad").CloudsYAML())
	c.useCloud(bad.AddProject("worse").CloudsYAML())
	own.startWorkers(2)
	const many = 20
	name := func(i int) string { return fmt.Sprintf("n%d", i) }
	b.create("example", "10.0.0.0/24", "")
	b.waitReady("example")
	bad.Stuck.Store(true) // c cannot log in, and b is logged in

	round := func(prefix string) time.Duration {
		began := time.Now()
		for i := range many {
			a.create(prefix+name(i), fmt.Sprintf("10.0.%d.0/24", i), "")
		}
		a.waitAllReady()
		return time.Since(began)
	}
	alone := round("alone-")
	for i := range many {
		b.create(name(i), fmt.Sprintf("10.1.%d.0/24", i), "")
		c.create(name(i), fmt.Sprintf("10.1.%d.0/24", i), "")
	}
	own.create("example", "10.0.0.0/24", "")
	beside := round("beside-")
	own.waitReady("example")
	t.Logf("%d Networks took %v, and %v beside two clouds that hang", many, alone, beside)
	if beside > 3*alone+time.Second {
		t.Errorf("%d Networks took %v, and %v beside two clouds that hang", many, alone, beside)
	}
	bad.Stuck.Store(false)
	bad.CloseClientConnections()
}

// TestPlanOfClouds: the command plan reads one cloud and names it: that of the Secret of the only
// namespace, or the controller's own. It leaves out what is in another one.
func TestPlanOfClouds(t *testing.T) {
	own, cloud := newTenants(t)
	own.flags("-cluster-name=" + testCluster)
	a, b := own.beside(), own.tenant()
	a.useCloud(cloud.AddProject("first").CloudsYAML())
	own.create("example", "10.0.0.0/24", "")
	a.create("example", "10.0.0.0/24", "")
	a.flags("-namespaces=" + a.namespace)
	a.wantPlan(2, "This is the cloud RegionOne/first-id, of the namespace "+a.namespace+".", "Plan: 2 to create")
	own.wantPlan(2, "This is the cloud "+own.cloud+", of the controller.", "Plan: 2 to create")
	b.useCloud("clouds: {}")
	b.create("example", "10.0.0.0/24", "")
	own.wantPlan(1, "not in this plan: clouds.yaml in the Secret "+b.namespace+"/samplecrd-cloud", "Plan: 2 to create")
	b.useCloud(cloud.AddProject("second").CloudsYAML())
	own.wantPlan(1, "the namespace "+b.namespace+" has a cloud of its own: plan it with -namespaces="+b.namespace)
}

// wantPlan runs the command plan, and checks its exit code and its output.
func (h *harness) wantPlan(code int, texts ...string) {
	h.Helper()
	output, err := os.Create(filepath.Join(h.TempDir(), "plan"))
	if err != nil {
		h.Fatal(err)
	}
	defer func() { _ = output.Close() }()
	if got := h.parse().previewCommand().Run(h.Context(), nil, output, output); got != code {
		h.Errorf("the exit code of plan is %d, want %d", got, code)
	}
	text, err := os.ReadFile(output.Name())
	for _, want := range texts {
		if err != nil || !strings.Contains(string(text), want) {
			h.Errorf("plan prints (%v):\n%s\nwant %q in it", err, text, want)
		}
	}
}

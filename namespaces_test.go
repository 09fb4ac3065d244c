package main

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// TestForbiddenNamespace: a namespace that the controller is not permitted to read
// does not block the others. It is reconciled once it is permitted.
func TestForbiddenNamespace(t *testing.T) {
	h := newHarness(t)
	other := h.beside()
	for _, h := range []*harness{h, other} {
		h.create("example", "10.0.0.0/24", "")
	}
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = h.namespace
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	allow := func(namespace string) {
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "controller"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: h.namespace}}}
		if _, err := h.kube.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	allow(h.namespace)
	startProgram(t, "-kubeconfig="+kubeconfig, "-neutron-endpoint="+h.neutronURL, "-cluster-name="+testCluster, "-namespaces="+h.namespace+","+other.namespace)
	h.waitReady("example")
	if network := other.get("example"); network.Status.NetworkID != "" {
		t.Error("the Network in the forbidden namespace was reconciled")
	}
	allow(other.namespace)
	other.waitReady("example")
}

// TestTwoControllers: two controllers of one cluster and one project, with different
// namespaces and a Lease each, reconcile at the same time. Each of them lists all
// networks of the project, but changes only those of its namespaces.
func TestTwoControllers(t *testing.T) {
	a := newHarness(t)
	b, unwatched := a.beside(), a.beside()
	for _, h := range []*harness{a, b, unwatched} {
		h.postNetwork("orphan of "+h.namespace, h.marker("gone"))
	}
	a.postNetwork("foreign", "")
	unwatched.create("example", "10.0.0.0/24", "")
	controllers := map[*harness]*replica{}
	for _, h := range []*harness{a, b} {
		controllers[h] = h.startReplica("-resync-period=1s", "-delete-orphans", "-orphan-grace-period=1ms", "-metrics-bind-address=127.0.0.1:0")
	}
	names := []string{"one", "two", "three"}
	for i := range names {
		a.create(names[i], "10.0.0.0/24", "")
		b.create(names[i], "10.0.0.0/24", "")
	}
	for i := range names {
		a.waitReady(names[i])
		b.waitReady(names[i])
	}
	a.eventually(func() error { return a.hasCounts(2*len(names)+2, 2*len(names)) }) // the orphans of both are gone
	for h, controller := range controllers {
		if h.holder() == "" {
			t.Error("a controller has no Lease of its own")
		}
		url := regexp.MustCompile(`"Serving metrics" url="([^"]+)"`).FindStringSubmatch(controller.log.String())[1]
		h.eventually(func() error {
			return serves(url, fmt.Sprintf(`samplecrd_neutron_cache_objects{kind="network"} %d`, 2*len(names)+2))
		})
		h.eventually(func() error { return serves(url, "samplecrd_orphans 0") })
	}
	posts := 0
	for _, request := range a.neutronRequests() {
		if request.Method == http.MethodPost {
			posts++
		}
	}
	if posts != 4*len(names) {
		t.Errorf("Neutron received %d POSTs, want two for each Network: %+v", posts, a.neutronRequests())
	}

	if network := unwatched.get("example"); len(network.Finalizers) > 0 {
		t.Errorf("the Network in another namespace was changed: %+v", network)
	}
	controllers[a].signal(t, syscall.SIGTERM)
	controllers[a].wantExit(t, 0)
	for _, name := range names {
		b.delete(name)
		b.waitGone(name)
	}
	a.wantCounts(len(names)+2, len(names))
}

// serves returns an error if what a URL serves does not contain a text.
func serves(url, text string) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && !strings.Contains(string(body), text) {
		err = fmt.Errorf("%s does not contain %q", url, text)
	}
	return err
}

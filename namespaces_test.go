package main

import (
	"path/filepath"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// TestNamespaces: what is not asked for is not looked at, orphans included.
func TestNamespaces(t *testing.T) {
	a := newHarness(t)
	b, other := a.beside(), a.beside()
	a.postNetwork("orphan of a", a.mark("gone"))
	a.postNetwork("orphan of another", other.mark("gone"))
	for _, h := range []*harness{a, b, other} {
		h.create("example", "10.0.0.0/24", "")
	}
	p := newProgram(t, "-kubeconfig="+cluster.Kubeconfig(), "-neutron-endpoint="+a.neutronURL, "-cluster-name="+testCluster,
		"-namespaces="+a.namespace+","+b.namespace, "-resync-period=1s", "-delete-orphans", "-orphan-grace-period=1ms")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })

	a.waitReady("example")
	b.waitReady("example")
	a.eventually(func() error { return a.countsAre(3, 2) }) // the two, and the orphan that is none of ours
	a.delete("example")
	a.waitGone("example")
	if networks := a.inNeutron().Networks; len(networks) != 2 || networks[0].Name != "orphan of another" {
		t.Errorf("Neutron has %+v, want the orphan of another namespace, and the network of one that is looked at", networks)
	}
	if network := other.get("example"); len(network.Finalizers) > 0 {
		t.Errorf("the Network in another namespace was touched: %+v", network)
	}
}

// TestForbiddenNamespace: one that may not be looked at keeps nobody waiting, and
// is looked at when it may.
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
	p := newProgram(t, "-kubeconfig="+kubeconfig, "-neutron-endpoint="+h.neutronURL, "-cluster-name="+testCluster, "-namespaces="+h.namespace+","+other.namespace)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	h.waitReady("example")
	if network := other.get("example"); network.Status.NetworkID != "" {
		t.Error("what is forbidden was done")
	}
	allow(other.namespace)
	other.waitReady("example")
}

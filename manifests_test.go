package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/samplecrd/network-controller/test/controlplane"
)

// deploymentOf returns the controller's Deployment in a folder of deploy/.
func deploymentOf(t *testing.T, folder string) (found appsv1.Deployment) {
	t.Helper()
	text, err := cluster.Kubectl(t.Context(), "kustomize", filepath.Join("deploy", folder))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); found.Kind != "Deployment"; {
		found = appsv1.Deployment{}
		if err := decoder.Decode(&found); errors.Is(err, io.EOF) {
			t.Fatalf("%s has no Deployment", folder)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// TestManifestsNameNeutron: the manifests that everybody needs do not run without a
// Neutron, and each overlay has the one that its name promises.
func TestManifestsNameNeutron(t *testing.T) {
	t.Parallel()
	for folder, want := range map[string]string{
		"base":                "no Neutron configured: set -cloud or OS_CLOUD",
		"overlays/embedded":   "using the embedded Neutron",
		"overlays/openstack":  "-cloud or OS_CLOUD: there is no clouds.yaml",
		"overlays/namespaces": "-cloud or OS_CLOUD: there is no clouds.yaml",
	} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			container := deploymentOf(t, folder).Spec.Template.Spec.Containers[0]
			p := newDefaultProgram(t, append(container.Args, "-kubeconfig="+cluster.Kubeconfig(), "-namespaces=default",
				"-leader-elect=false", "-health-probe-bind-address=", "-metrics-bind-address=")...)
			p.Env = append(p.Env, "KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=1")
			for _, variable := range container.Env {
				p.Env = append(p.Env, variable.Name+"="+variable.Value)
			}
			p.start(t)
			p.waitFor(t, want)
		})
	}
}

// TestUserRoles: only the controller may write the status of Networks, which says what
// the controller may undo in Neutron. No role has a wildcard, which includes it.
func TestUserRoles(t *testing.T) {
	var writers []string
	roles := 0
	err := filepath.WalkDir("deploy", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" || entry.IsDir() {
			return err
		}
		decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(read(t, path)), 4096)
		for {
			var role rbacv1.ClusterRole // a Role has the same rules
			if err := decoder.Decode(&role); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil || role.Kind != "ClusterRole" && role.Kind != "Role" {
				continue // patches and other objects
			}
			roles++
			for _, rule := range role.Rules {
				granted := strings.Join(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs), " ")
				if strings.Contains(granted, "*") {
					t.Errorf("%s: the role %s has a wildcard: %s", path, role.Name, granted)
				}
				if slices.Contains(rule.Resources, "networks/status") {
					writers = append(writers, path+" "+role.Name)
				}
			}
		}
	})
	want := []string{"deploy/base/rbac.yaml samplecrd-controller", "deploy/watched-namespace/role.yaml samplecrd-controller"}
	if diff := cmp.Diff(want, writers); err != nil || diff != "" || roles < 8 {
		t.Errorf("%d roles, %v; with networks/status (-want +got):\n%s", roles, err, diff)
	}
}

// asServiceAccount returns a kubeconfig file with the rights of the controller in a
// cluster, and no others.
func asServiceAccount(t *testing.T, c *controlplane.Cluster) (path string) {
	t.Helper()
	token, err := c.Kubectl(t.Context(), "create", "token", "-n", "samplecrd-system", controllerName)
	if err != nil {
		t.Fatalf("%v\n%s", err, token)
	}
	config := rest.CopyConfig(c.RESTConfig())
	file := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: strings.TrimSpace(string(token))}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "c",
	}
	path = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(file, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRightsForLease: the manifests grant what leader election needs, and a
// controller whose Lease was deleted says how to get it back.
func TestRightsForLease(t *testing.T) {
	t.Parallel()
	own := ownCluster(t)
	kubectl(t, own, "apply", "-k", "deploy/overlays/embedded")
	kubeconfig := asServiceAccount(t, own)
	start := func(args ...string) *program {
		p := newDefaultProgram(t, append(args, "-kubeconfig="+kubeconfig, "-embedded-neutron", "-health-probe-bind-address=127.0.0.1:0")...)
		p.start(t)
		return p
	}
	p := start()
	p.waitFor(t, `"Starting workers"`)
	if lease := leaseOf(t, own, controllerName); lease.Spec.HolderIdentity == nil {
		t.Error("the controller works without the Lease")
	}
	if output, err := own.Kubectl(t.Context(), "auth", "can-i", "create", "leases", "-n", "kube-system", "--as=system:serviceaccount:samplecrd-system:"+controllerName); err == nil {
		t.Errorf("the controller may create Leases in kube-system: %s", output)
	}

	// kubectl apply leaves the holder alone
	kubectl(t, own, "apply", "-k", "deploy/overlays/embedded")
	if lease := leaseOf(t, own, controllerName); lease.Spec.HolderIdentity == nil {
		t.Error("kubectl apply has removed the holder of the Lease")
	}

	_ = p.Process.Kill()
	kubectl(t, own, "delete", "lease", "-n", "kube-system", controllerName)
	p = start()
	h := &harness{T: t}
	p.waitFor(t, `"Serving health"`)
	h.eventually(func() error {
		return responds(p.readyz(), http.StatusServiceUnavailable, "waiting: the Lease kube-system/samplecrd-controller, which could not be read or created: "+
			"the Lease does not exist, and the controller may not create it: install it again with kubectl apply -k")
	})
	kubectl(t, own, "apply", "-k", "deploy/overlays/embedded")
	p.waitFor(t, `"Starting workers"`)
}

// TestOverlaysKeepNetworks: who deletes what an overlay installed deletes no Network.
func TestOverlaysKeepNetworks(t *testing.T) {
	t.Parallel()
	own := ownCluster(t)
	kubectl(t, own, "apply", "-f", "example/example-network.yaml")
	for _, overlay := range []string{"embedded", "openstack", "namespaces"} {
		folder := filepath.Join("deploy", "overlays", overlay)
		kubectl(t, own, "delete", "-k", folder, "--ignore-not-found", "--wait=false")
		const path = "{.metadata.deletionTimestamp}"
		for _, object := range []string{"crd/networks.samplecrd.k8s.io", "network/example-network"} {
			output, err := own.Kubectl(t.Context(), "get", object, "-o", "jsonpath="+path)
			if err != nil || len(output) > 0 {
				t.Errorf("after kubectl delete -k %s, %s of %s is %q (%v), want none", folder, path, object, output, err)
			}
		}
	}
}

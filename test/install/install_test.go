// Package install checks on a real kube-apiserver what deploy/, crd/ and example/ grant,
// protect and lead to.
package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/metadata"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/kube"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/internal/program"
	"github.com/samplecrd/network-controller/test/running"
)

const controllerName = "samplecrd-controller"

// cluster is the control plane that the tests of this package share.
var cluster *controlplane.Cluster

// builtProgram is the path of the controller.
var builtProgram string

func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(program.RunTests(withCluster{m}, &builtProgram))
}

// withCluster runs the tests with the control plane.
type withCluster struct{ tests *testing.M }

func (w withCluster) Run() int {
	return controlplane.RunTests(w.tests, controlplane.Options{Apply: []string{"crd"}, ControllerManager: true}, func(c *controlplane.Cluster) { cluster = c })
}

// start starts the controller. The end of the test kills it.
func start(t *testing.T, env []string, args ...string) *running.Program {
	t.Helper()
	return running.Start(t, env, append([]string{builtProgram}, args...)...)
}

// ownCluster returns a control plane for one test.
func ownCluster(t *testing.T) *controlplane.Cluster {
	t.Helper()
	return controlplane.StartForTest(t, controlplane.Options{Apply: []string{"crd"}})
}

func kubectl(t *testing.T, c *controlplane.Cluster, args ...string) {
	t.Helper()
	if output, err := c.Kubectl(t.Context(), args...); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// TestUserRoles: only the controller may write the status of Networks, which says what
// the controller may undo in Neutron. No role has a wildcard, which includes it. The
// controller has the same rules in the whole cluster and in one namespace.
func TestUserRoles(t *testing.T) {
	var writers []string
	var ofController [][]rbacv1.PolicyRule
	roles := 0
	err := filepath.WalkDir("deploy", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			var role rbacv1.ClusterRole // a Role has the same rules
			if err := decoder.Decode(&role); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil || role.Kind != "ClusterRole" && role.Kind != "Role" {
				continue // patches and other objects
			}
			roles++
			if role.Name == controllerName {
				ofController = append(ofController, role.Rules)
			}
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
	// deploy/base has a ClusterRole, and deploy/watched-namespace a Role
	if len(ofController) != 2 || !cmp.Equal(ofController[0], ofController[1]) {
		t.Errorf("the controller's roles have different rules: %v", ofController)
	}
}

const crdName = "networks.samplecrd.k8s.io"

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// deniedDeletion checks that the CustomResourceDefinition cannot be deleted, and returns the
// command in the message that permits it.
func deniedDeletion(t *testing.T, own *controlplane.Cluster) (permit []string) {
	t.Helper()
	client := metadata.NewForConfigOrDie(own.RESTConfig()).Resource(definitions)
	dryRun := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}

	var message string
	running.Eventually(t, func() error { // the API server enforces a new policy after a moment
		err := client.Delete(t.Context(), crdName, dryRun)
		if err == nil {
			return errors.New("the deletion is permitted")
		}
		message = err.Error()
		return nil
	})
	for _, part := range []string{"every Network", "networks in Neutron", "set deletionPolicy: Retain on each Network"} {
		if !strings.Contains(message, part) {
			t.Errorf("the message is %q, want %q in it", message, part)
		}
	}
	const denied = "deleting this CustomResourceDefinition deletes every Network"
	err := client.DeleteCollection(t.Context(), dryRun, metav1.ListOptions{})
	if err == nil || !strings.Contains(err.Error(), denied) {
		t.Errorf("deleting all CustomResourceDefinitions: %v, want %q", err, denied)
	}
	output, err := own.Kubectl(t.Context(), "delete", "-f", "crd/", "--dry-run=server")
	if err == nil || !strings.Contains(fmt.Sprint(string(output), err), denied) {
		t.Errorf("kubectl delete -f crd/: %v, want %q\n%s", err, denied, output)
	}
	command := regexp.MustCompile(`run kubectl (annotate crd .*)$`).FindStringSubmatch(message)
	if command == nil {
		t.Fatalf("the message is %q, want a command at its end", message)
	}
	return strings.Fields(command[1])
}

// TestCRDDeletion: whatever deletes the CustomResourceDefinition is denied, until the
// command in the message permits it. A controller then logs once what to do, and continues
// when it is installed again. Who deletes what an overlay installed deletes no Network.
func TestCRDDeletion(t *testing.T) {
	t.Parallel()
	own := ownCluster(t)
	p := start(t, nil, "-kubeconfig="+own.Kubeconfig(), "-leader-elect=false") // an overlay has the Lease
	p.WaitFor("Starting workers")
	permit := deniedDeletion(t, own)
	kubectl(t, own, "apply", "-f", "example/portrule/crd.yaml")
	kubectl(t, own, "delete", "-f", "example/portrule/crd.yaml")              // other CustomResourceDefinitions
	for _, overlay := range []string{"embedded", "openstack", "namespaces"} { // without an error about ours
		kubectl(t, own, "delete", "-k", "deploy/overlays/"+overlay, "--ignore-not-found", "--wait=false")
	}

	kubectl(t, own, permit...)
	kubectl(t, own, "delete", "-f", "crd/")
	const missing = "is not installed: run kubectl apply -f crd/"
	p.WaitFor(regexp.QuoteMeta(missing))
	kubectl(t, own, "apply", "-f", "crd/")
	kubectl(t, own, "wait", "--for=condition=Established", "crd/"+crdName)
	kubectl(t, own, "apply", "-f", "example/example-network.yaml")
	kubectl(t, own, "wait", "--for=condition=Ready", "network/example-network", "--timeout=90s")
	if n := strings.Count(p.Log(), missing); n != 1 {
		t.Errorf("it is logged %d times, want once:\n%s", n, p.Log())
	}
}

// TestCRDIsNotPruned: Flux and Argo CD do not delete what is in crd/, when it is no
// longer among what they apply, or when they delete the rest.
func TestCRDIsNotPruned(t *testing.T) {
	t.Parallel()
	const annotations = `jsonpath={.metadata.annotations['argocd\.argoproj\.io/sync-options', 'kustomize\.toolkit\.fluxcd\.io/prune']}`
	for kind, name := range map[string]string{
		"crd": crdName, "validatingadmissionpolicy": "samplecrd-crd-deletion", "validatingadmissionpolicybinding": "samplecrd-crd-deletion",
	} {
		got := running.Kubectl{T: t, Cluster: cluster}.Do("get", kind, name, "-o", annotations)
		if got != "Prune=false,Delete=false disabled" {
			t.Errorf("%s %s has the annotations %q", kind, name, got)
		}
	}
}

// may reports whether the controller may do something in a cluster.
func may(t *testing.T, own *controlplane.Cluster, action ...string) bool {
	t.Helper()
	account := "--as=system:serviceaccount:samplecrd-system:" + controllerName
	_, err := own.Kubectl(t.Context(), append([]string{"auth", "can-i", account}, action...)...)
	return err == nil
}

// TestCRDGuard: without the policy, the CustomResourceDefinition is deleted with a
// Network that has a finalizer. The controller notices, also that it is permitted.
func TestCRDGuard(t *testing.T) {
	t.Parallel()
	own := ownCluster(t)
	guard := kube.NewCRDGuard(metadata.NewForConfigOrDie(own.RESTConfig()), crdName, samplecrdv1.AnnotationAllowDeletion)
	want := func(when string, want bool) {
		t.Helper()
		if got, err := guard.BeingDeleted(t.Context()); err != nil || got != want {
			t.Errorf("%s, BeingDeleted() = %v, %v, want %v", when, got, err, want)
		}
	}
	kubectl(t, own, "apply", "-f", "example/example-network.yaml")
	setFinalizers := func(finalizers string) {
		t.Helper()
		patch := `{"metadata":{"finalizers":` + finalizers + `}}`
		kubectl(t, own, "patch", "network", "example-network", "--type=merge", "-p", patch)
	}
	setFinalizers(`["` + samplecrdv1.Finalizer + `"]`)
	want("before", false)
	kubectl(t, own, "delete", "-f", "crd/protection.yaml")
	running.Eventually(t, func() error { // the API server forgets a policy after a moment
		output, err := own.Kubectl(t.Context(), "delete", "crd", crdName, "--wait=false")
		if err != nil {
			return fmt.Errorf("%w\n%s", err, output)
		}
		return nil
	})
	want("while it is being deleted", true)
	kubectl(t, own, "annotate", "crd", crdName, samplecrdv1.AnnotationAllowDeletion+"=true")
	want("once it is permitted", false)
	setFinalizers("null")
	kubectl(t, own, "wait", "--for=delete", "crd/"+crdName, "--timeout=60s")
	want("afterwards", true)
}

// TestRightsForCRD: each overlay permits the controller to read this
// CustomResourceDefinition, and nothing else of any.
func TestRightsForCRD(t *testing.T) {
	t.Parallel()
	own := ownCluster(t)
	for _, overlay := range []string{"namespaces", "openstack", "embedded"} { // the first one has the fewest rights
		kubectl(t, own, "apply", "-k", "deploy/overlays/"+overlay)
		running.Eventually(t, func() error {
			if !may(t, own, "get", "crd/"+crdName) {
				return errors.New("the controller may not read it")
			}
			return nil
		})
		for _, verb := range []string{"list", "watch", "create", "update", "patch", "delete"} {
			if may(t, own, verb, "crd/"+crdName) {
				t.Errorf("with the overlay %s, the controller may %s it", overlay, verb)
			}
		}
		if may(t, own, "get", "crd/others.example.org") {
			t.Errorf("with the overlay %s, the controller may read others", overlay)
		}
	}
}

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
			env := []string{"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=1"}
			for _, variable := range container.Env {
				env = append(env, variable.Name+"="+variable.Value)
			}
			p := start(t, env, append(container.Args, "-kubeconfig="+cluster.Kubeconfig(), "-namespaces=default",
				"-leader-elect=false", "-health-probe-bind-address=", "-metrics-bind-address=")...)
			p.WaitFor(regexp.QuoteMeta(want))
		})
	}
}

// asController returns a kubeconfig file with the rights of the controller in a cluster.
func asController(t *testing.T, c *controlplane.Cluster) string {
	t.Helper()
	path, err := c.KubeconfigFor(t.Context(), "samplecrd-system", controllerName)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWatchedNamespaces: with deploy/overlays/namespaces, the controller works in the
// namespaces that have the Role, and leaves the others alone. One gets the Role after the
// start of the controller. The remedy in the overlay
// ends the deletion of a namespace that was deleted before its Networks.
func TestWatchedNamespaces(t *testing.T) {
	t.Parallel()
	own := controlplane.StartForTest(t, controlplane.Options{Apply: []string{"crd"}, ControllerManager: true})
	const overlay = "overlays/namespaces"
	kubectl(t, own, "apply", "-k", "deploy/"+overlay)
	for _, namespace := range []string{"a", "b", "c"} {
		kubectl(t, own, "create", "namespace", namespace)
		kubectl(t, own, "apply", "-n", namespace, "-f", "example/example-network.yaml")
	}
	kubectl(t, own, "apply", "-n", "a", "-k", "deploy/watched-namespace")
	args := deploymentOf(t, overlay).Spec.Template.Spec.Containers[0].Args
	start(t, nil, append(args, "-kubeconfig="+asController(t, own), "-embedded-neutron",
		"-health-probe-bind-address=127.0.0.1:0", "-metrics-bind-address=127.0.0.1:0")...)
	kubectl(t, own, "wait", "-n", "a", "--for=condition=Ready", "network/example-network", "--timeout=60s")
	kubectl(t, own, "apply", "-n", "b", "-k", "deploy/watched-namespace") // it did not delay the others until now
	kubectl(t, own, "wait", "-n", "b", "--for=condition=Ready", "network/example-network", "--timeout=90s")
	kubectl(t, own, "apply", "-n", "b", "-f", "example/deployment.yaml")
	kubectl(t, own, "wait", "-n", "b", "--for=create", "network/web", "--timeout=60s")
	output, err := own.Kubectl(t.Context(), "get", "network", "-n", "c", "example-network", "-o", "jsonpath={.metadata.finalizers}{.status.conditions[*].reason}")
	if string(output) != "Pending" { // by the API server itself
		t.Errorf("in a namespace that is not watched, the Network has %q (%v)", output, err)
	}

	kubectl(t, own, "delete", "namespace", "a", "--wait=false")
	running.Eventually(t, func() error {
		if output, err := own.Kubectl(t.Context(), "get", "role", "-n", "a", "-o", "name"); err != nil || len(output) > 0 {
			return fmt.Errorf("%s exists (%w)", output, err)
		}
		return nil
	})
	kubectl(t, own, "apply", "-f", "deploy/base/rbac.yaml")
	kubectl(t, own, "wait", "--for=delete", "namespace/a", "--timeout=60s")
}

// TestUsers: the standard ClusterRoles edit and view cover Networks, but not their status.
func TestUsers(t *testing.T) {
	t.Parallel()
	const namespace = "users"
	kubectl(t, cluster, "create", "namespace", namespace)
	kubectl(t, cluster, "apply", "-f", "deploy/base/rbac-users.yaml")
	for _, role := range []string{"view", "edit"} {
		kubectl(t, cluster, "create", "rolebinding", "-n", namespace, role, "--clusterrole="+role, "--user="+role)
		running.Eventually(t, func() error { // the roles are aggregated after a moment
			for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
				want := role == "edit" || slices.Contains([]string{"get", "list", "watch"}, verb)
				if output, err := cluster.Kubectl(t.Context(), "auth", "can-i", verb, "networks", "-n", namespace, "--as="+role); (err == nil) != want {
					return fmt.Errorf("%s may %s Networks: %s, want %v", role, verb, output, want)
				}
			}
			return nil
		})
		for _, forbidden := range [][]string{{"patch", "networks", "--subresource=status", "-n", namespace}, {"create", "networks", "-n", "default"}} {
			if output, err := cluster.Kubectl(t.Context(), append([]string{"auth", "can-i", "--as=" + role}, forbidden...)...); err == nil {
				t.Errorf("%s may %v: %s", role, forbidden, output)
			}
		}
	}
}

// TestRightsForLease: the manifests grant what leader election needs, and a
// controller whose Lease was deleted says how to get it back.
func TestRightsForLease(t *testing.T) {
	t.Parallel()
	own := ownCluster(t)
	kubectl(t, own, "apply", "-k", "deploy/overlays/embedded")
	kubeconfig := asController(t, own)
	begin := func() *running.Program {
		return start(t, nil, "-kubeconfig="+kubeconfig, "-embedded-neutron", "-health-probe-bind-address=127.0.0.1:0")
	}
	hasHolder := func() bool {
		t.Helper()
		output, err := own.Kubectl(t.Context(), "get", "lease", "-n", "kube-system", controllerName, "-o", "jsonpath={.spec.holderIdentity}")
		return err == nil && len(output) > 0
	}
	p := begin()
	p.WaitFor(`"Starting workers"`)
	if !hasHolder() {
		t.Error("the controller works without the Lease")
	}
	if may(t, own, "create", "leases", "-n", "kube-system") {
		t.Error("the controller may create Leases in kube-system")
	}

	// kubectl apply leaves the holder alone
	kubectl(t, own, "apply", "-k", "deploy/overlays/embedded")
	if !hasHolder() {
		t.Error("kubectl apply has removed the holder of the Lease")
	}

	p.Kill()
	kubectl(t, own, "delete", "lease", "-n", "kube-system", controllerName)
	p = begin()
	running.Eventually(t, func() error {
		text, err := running.Get(p.URL("health"))
		if !strings.Contains(text, "waiting: the Lease kube-system/samplecrd-controller, which could not be read or created: "+
			"the Lease does not exist, and the controller may not create it: install it again with kubectl apply -k") {
			return fmt.Errorf("/readyz returns %q, %w", text, err)
		}
		return nil
	})
	kubectl(t, own, "apply", "-k", "deploy/overlays/embedded")
	p.WaitFor(`"Starting workers"`)
}

// examples contains the expected result of each file in example/: the name of the
// Network, and some fields of its network and subnet in JSON.
var examples = map[string]struct{ name, network, subnet string }{
	"example-network.yaml":             {"example-network", `{}`, `{"cidr": "192.168.0.0/16", "gateway_ip": "192.168.0.1"}`},
	"ipv6-network.yaml":                {"ipv6-network", `{}`, `{"cidr": "fd00:1234::/64", "gateway_ip": "fd00:1234::1"}`},
	"retained-network.yaml":            {"retained-network", `{}`, `{"cidr": "10.30.0.0/24"}`},
	"allocation-pools-network.yaml":    {"allocation-pools-network", `{}`, `{"gateway_ip": "10.31.0.254", "allocation_pools": [{"start": "10.31.0.10", "end": "10.31.0.49"}, {"start": "10.31.0.100", "end": "10.31.0.199"}]}`},
	"dns-network.yaml":                 {"dns-network", `{"dns_domain": "lab.example.org."}`, `{"dns_nameservers": ["10.32.0.53", "9.9.9.9"]}`},
	"host-routes-network.yaml":         {"host-routes-network", `{}`, `{"host_routes": [{"destination": "172.20.0.0/14", "nexthop": "10.33.0.2"}]}`},
	"isolated-network.yaml":            {"isolated-network", `{"port_security_enabled": false}`, `{"gateway_ip": null, "enable_dhcp": false}`},
	"link-network.yaml":                {"link-network", `{}`, `{"cidr": "10.35.0.0/31", "gateway_ip": null, "allocation_pools": [{"start": "10.35.0.0", "end": "10.35.0.1"}]}`},
	"slaac-network.yaml":               {"slaac-network", `{}`, `{"ipv6_address_mode": "slaac", "ipv6_ra_mode": "slaac", "gateway_ip": "fd00:36::1"}`},
	"mtu-network.yaml":                 {"mtu-network", `{"mtu": 1400}`, `{}`},
	"down-network.yaml":                {"down-network", `{"admin_state_up": false}`, `{}`},
	"tagged-network.yaml":              {"tagged-network", `{"tags": ["cost-centre:4711", "team=network"]}`, `{}`},
	"subnet-pool-network.yaml":         {"subnet-pool-network", `{}`, `{"cidr": "10.64.0.0/26", "gateway_ip": "10.64.0.1"}`},
	"router-network.yaml":              {"router-network", `{}`, `{"gateway_ip": "10.36.0.1"}`},
	"deployment.yaml":                  {"web", `{}`, `{"cidr": "10.40.0.0/24", "gateway_ip": "10.40.0.1"}`},
	"deployment-from-subnet-pool.yaml": {"api", `{}`, `{"cidr": "10.64.0.0/27", "gateway_ip": "10.64.0.1"}`},
}

// TestExamples applies each file in example/ and checks the result in Neutron. Then it
// deletes the objects in the file, and nothing remains in Neutron unless it is retained.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("example/*.yaml")
	if err != nil || len(files) != len(examples) {
		t.Fatalf("example/ contains %d files, and the test expects %d (%v)", len(files), len(examples), err)
	}
	server := httptest.NewServer(embedded.New(embedded.Options{With: []string{neutron.ExtensionDNS}}))
	t.Cleanup(server.Close)
	for path, body := range map[string]string{
		"subnetpools": `{"subnetpool": {"name": "campus", "prefixes": ["10.64.0.0/12"], "default_prefixlen": 24}}`,
		"routers":     `{"router": {"name": "edge"}}`,
	} {
		response, err := http.Post(server.URL+"/v2.0/"+path, "application/json", strings.NewReader(body))
		if err != nil || response.StatusCode != http.StatusCreated {
			t.Fatalf("POST %s: %v, %v", path, response, err)
		}
		_ = response.Body.Close()
	}
	const namespace = "examples"
	kubectl(t, cluster, "create", "namespace", namespace)
	start(t, nil, "-kubeconfig="+cluster.Kubeconfig(), "-neutron-endpoint="+server.URL, "-namespaces="+namespace, "-leader-elect=false")
	for _, file := range files { // one after the other: two of them use the first range of the pool
		t.Run(filepath.Base(file), func(t *testing.T) {
			want := examples[filepath.Base(file)]
			kubectl(t, cluster, "-n", namespace, "apply", "-f", file)
			var network samplecrdv1.Network
			running.Eventually(t, func() error {
				output, err := cluster.Kubectl(t.Context(), "-n", namespace, "get", "network", want.name, "-o", "json")
				if err == nil {
					err = json.Unmarshal(output, &network)
				}
				if !meta.IsStatusConditionTrue(network.Status.Conditions, samplecrdv1.ConditionReady) {
					return fmt.Errorf("%s, %w", output, err)
				}
				return err
			})
			id := network.Status.NetworkID
			wantPart(t, server.URL+"/v2.0/networks/"+id, want.network)
			wantPart(t, server.URL+"/v2.0/subnets/"+network.Status.SubnetID, want.subnet)
			ports, err := running.Get(server.URL + "/v2.0/ports?device_owner=network:router_interface&network_id=" + id)
			if strings.Contains(ports, id) != (want.name == "router-network") {
				t.Errorf("the network is attached to %s (%v)", ports, err)
			}
			if want.name == "retained-network" {
				return
			}
			kubectl(t, cluster, "-n", namespace, "delete", "-f", file)
			running.Eventually(t, func() error {
				if text, err := running.Get(server.URL + "/v2.0/networks"); err != nil || strings.Contains(text, id) {
					return fmt.Errorf("Neutron has %s (%w)", text, err)
				}
				return nil
			})
		})
	}
}

// wantPart checks that an object in Neutron has these fields.
func wantPart(t *testing.T, url, part string) {
	t.Helper()
	var want map[string]any
	var got map[string]map[string]any
	text, err := running.Get(url)
	if err := errors.Join(err, json.Unmarshal([]byte(part), &want), json.Unmarshal([]byte(text), &got)); err != nil {
		t.Fatal(err)
	}
	for _, fields := range got {
		for name, value := range want {
			if diff := cmp.Diff(value, fields[name]); diff != "" {
				t.Errorf("%s of %s differs (-want +got):\n%s", name, url, diff)
			}
		}
	}
}

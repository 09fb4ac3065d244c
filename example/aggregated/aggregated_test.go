package main

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/samplecrd/network-controller/example/aggregated/v1alpha1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/launch"
	"github.com/samplecrd/network-controller/test/neutronapi"
	"github.com/samplecrd/network-controller/test/running"
)

// cluster is a control plane with an aggregator.
var cluster *controlplane.Cluster

// controllerPath is the controller that make build builds.
const controllerPath = "../../samplecrd-controller"

// serverVariable makes the test binary the API server, instead of running tests.
const serverVariable = "AGGREGATED_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		main()
		return
	}
	if _, err := os.Stat(controllerPath); err != nil {
		fmt.Fprintln(os.Stderr, "the controller is not built: run make build control-plane:", err)
		os.Exit(1)
	}
	os.Exit(controlplane.RunTests(m, controlplane.Options{
		Apply: []string{"crd", "example/aggregated/deploy/rbac.yaml", "example/aggregated/local.yaml"},
	}, func(c *controlplane.Cluster) { cluster = c }))
}

// site is a Neutron, the API server in front of it, and clients of kube-apiserver.
type site struct {
	running.Kubectl
	neutron *embedded.Server
	api     neutronapi.API
	program *running.Program
	folder  string // of the certificate
	port    string
	client  dynamic.NamespaceableResourceInterface
}

func newSite(t *testing.T) *site {
	t.Helper()
	server := embedded.New(embedded.Options{})
	if err := server.Listen(""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	address, err := launch.FreeAddress(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{Kubectl: running.Kubectl{T: t, Cluster: cluster}, neutron: server, api: neutronapi.API{Neutron: server},
		folder: t.TempDir(), port: strings.TrimPrefix(address, "127.0.0.1:"), client: clientOf(t, cluster.RESTConfig())}
	s.start()
	s.register()
	return s
}

func clientOf(t testing.TB, config *rest.Config) dynamic.NamespaceableResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.Resource))
}

// start starts the API server with the permissions of its ServiceAccount.
func (s *site) start() {
	s.Helper()
	kubeconfig, err := cluster.KubeconfigFor(s.Context(), "neutron-api", "neutron-api")
	if err != nil {
		s.Fatal(err)
	}
	s.program = running.Start(s.T, []string{serverVariable + "=1"}, os.Args[0],
		"--kubeconfig="+kubeconfig, "--cert-dir="+s.folder, "--bind-address=127.0.0.1",
		"--secure-port="+s.port, "--neutron-endpoint="+s.neutron.URL(), "--resync-period=50ms")
}

// register registers the API server, as README.md describes, and waits until kube-apiserver
// serves the group.
func (s *site) register() {
	s.Helper()
	// If the first look of kube-apiserver fails, the next one is up to 30 seconds later.
	s.program.WaitFor("Serving securely")
	certificate, err := os.ReadFile(filepath.Join(s.folder, "apiserver.crt"))
	if err != nil {
		s.Fatal(err)
	}
	manifest, err := os.ReadFile("deploy/apiservice.yaml")
	if err != nil {
		s.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString(certificate)
	text := strings.NewReplacer("CA_BUNDLE", encoded, "port: 6443", "port: "+s.port).Replace(string(manifest))
	s.Apply(text)
	s.Do("wait", "--for=condition=Available", "--timeout=2m", "apiservice/v1alpha1.neutron.samplecrd.k8s.io")
	s.eventually(func() error {
		_, err := s.client.List(s.Context(), metav1.ListOptions{})
		return err
	})
}

func (s *site) eventually(check func() error) {
	s.Helper()
	running.Eventually(s.T, check)
}

type object = map[string]any

// ask sends a request to Neutron.
func (s *site) ask(method, path string, body, response any) {
	s.Helper()
	if err := s.api.Do(method, path, body, response); err != nil {
		s.Fatal(err)
	}
}

// create creates a network in Neutron, with a subnet if it has a range, and returns its ID.
func (s *site) create(name, description, cidr string) string {
	s.Helper()
	var created struct{ Network struct{ ID string } }
	s.ask(http.MethodPost, "networks", object{"network": object{"name": name, "description": description}}, &created)
	if cidr != "" {
		subnet := object{"network_id": created.Network.ID, "cidr": cidr, "ip_version": 4}
		s.ask(http.MethodPost, "subnets", object{"subnet": subnet}, nil)
	}
	return created.Network.ID
}

func (s *site) clusterName() string {
	s.Helper()
	return s.Do("get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
}

// wantObjects waits until the objects that are selected are these, each described as
// "namespace/name in Neutron: state".
func (s *site) wantObjects(options metav1.ListOptions, want ...string) {
	s.Helper()
	s.eventually(func() error {
		list, err := s.client.List(s.Context(), options)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, described(list.Items)); diff != "" {
			return fmt.Errorf("the objects differ (-want +got):\n%s", diff)
		}
		return nil
	})
}

func described(items []unstructured.Unstructured) (all []string) {
	for _, item := range items {
		name, _, _ := unstructured.NestedString(item.Object, "status", "name")
		state, _, _ := unstructured.NestedString(item.Object, "status", "state")
		all = append(all, item.GetNamespace()+"/"+name+": "+state)
	}
	slices.Sort(all) // their names are random
	return all
}

// TestView: what kubectl shows is what Neutron has, beside a real controller.
func TestView(t *testing.T) {
	s := newSite(t)
	s.Apply(`{apiVersion: v1, kind: Namespace, metadata: {name: team-a}}`)
	program, err := filepath.Abs(controllerPath)
	if err != nil {
		t.Fatal(err)
	}
	controller := running.Start(t, nil, program, "-kubeconfig="+cluster.Kubeconfig(),
		"-neutron-endpoint="+s.neutron.URL(), "-resync-period=1s", "-leader-elect=false")
	s.Apply(`{apiVersion: samplecrd.k8s.io/v1, kind: Network, metadata: {name: web, namespace: team-a}, ` +
		`spec: {cidr: 10.0.0.0/24, gateway: 10.0.0.1}}`)
	s.Do("wait", "--for=condition=Ready", "--timeout=60s", "-n", "team-a", "network/web")
	gone := neutron.Owner{Cluster: s.clusterName(), Namespace: "team-b", Name: "gone"}
	elsewhere := neutron.Owner{Cluster: "another", Namespace: "team-a", Name: "web"}
	hidden := neutron.Owner{Cluster: s.clusterName(), Namespace: "Team_B", Name: "x"}
	s.create("orphan", gone.NetworkMarker("", false), "")
	s.create("retained", gone.RetainedMarker(), "")
	s.create("foreign", "", "10.9.0.0/24")
	s.create("theirs", elsewhere.NetworkMarker("", false), "")
	s.create("invalid", hidden.NetworkMarker("", false), "")
	s.wantObjects(metav1.ListOptions{FieldSelector: "status.state=Orphaned,metadata.namespace=team-b"},
		"team-b/orphan: Orphaned")
	s.wantObjects(metav1.ListOptions{FieldSelector: "status.state=Retained"}, "team-b/retained: Retained")
	s.wantObjects(metav1.ListOptions{FieldSelector: "status.network=web"}, "team-a/team-a/web: Owned")
	s.wantObjects(metav1.ListOptions{FieldSelector: "metadata.namespace=neutron-api,status.owner!="},
		"neutron-api/invalid: Orphaned", "neutron-api/theirs: Foreign")

	// A new Network may have a step until the next list.
	s.Want(`Owned\s+web\s+10.0.0.0/24\s+\d+\w+ *\n`, "get", "nn", "-n", "team-a", "--no-headers")
	for pattern, args := range map[string][]string{
		`NAME +STATE +NETWORK +CIDRS +DRIFT +ORPHANED +AGE`: {"get", "neutronnetworks", "-A"},
		`Foreign +10.9.0.0/24`:                              {"get", "nn", "-n", "neutron-api"},
		`Orphaned +\d+s +\d+s`:                              {"get", "nn", "-n", "team-b"},
		`(?s)drift.*what the controller would do to make`:   {"explain", "nn.status.drift"},
		`neutronnetworks +nn .* get,list,watch`: {
			"api-resources", "--api-group=neutron.samplecrd.k8s.io", "-o", "wide",
		},
	} {
		// kube-apiserver asks for the API's documentation a second after the registration.
		s.Want(pattern, args...)
	}

	// Without a controller, a subnet that somebody deletes is drift.
	controller.Signal(syscall.SIGTERM)
	controller.WantExit(0)
	state, err := s.api.State()
	if err != nil {
		t.Fatal(err)
	}
	for _, subnet := range state.Subnets {
		if subnet.CIDR == "10.0.0.0/24" {
			s.ask(http.MethodDelete, "subnets/"+subnet.ID, nil, nil)
		}
	}
	s.Want(`Owned +web +create subnet`, "get", "nn", "-n", "team-a")
	s.Do("patch", "network", "web", "-n", "team-a", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	s.Do("delete", "network", "web", "-n", "team-a")
	s.wantObjects(metav1.ListOptions{FieldSelector: "metadata.namespace=team-a"}, "team-a/team-a/web: Orphaned")
}

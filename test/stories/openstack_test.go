package stories

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/yaml"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
	"github.com/samplecrd/network-controller/test/controlplane"
)

// realOpenStack is a Keystone and a Neutron, which the controller finds in
// clouds.yaml, and a Kubernetes for one test.
type realOpenStack struct {
	*story
	ours neutron.Client // not through the controller
}

func newRealOpenStack(t *testing.T) *realOpenStack {
	t.Helper()
	if os.Getenv("OPENSTACK_CLOUDS") == "" {
		t.Skip("OPENSTACK_CLOUDS is not set: `make test-openstack` starts an OpenStack and sets it")
	}
	cluster := controlplane.StartForTest(t, controlplane.Options{Apply: []string{"crd"}})
	s := &story{TB: t, cluster: cluster, clusterName: "test-" + rand.String(8), namespace: "default"}
	return &realOpenStack{story: s, ours: connectCloud(t, "ours")}
}

func connectCloud(t testing.TB, name string) neutron.Client {
	t.Helper()
	client, err := openstack.NewFromCloud(name, openstack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// start runs the controller for a cloud, at the highest log level.
func (o *realOpenStack) start(cloud string, flags ...string) *controller {
	o.Helper()
	c := newController(o, "OS_CLOUD="+cloud, "OS_CLIENT_CONFIG_FILE="+os.Getenv("OS_CLIENT_CONFIG_FILE"))
	o.controllers = map[string]*controller{"first": c}
	o.Cleanup(func() {
		_ = c.end(syscall.SIGKILL)
		o.checkNoSecrets(c.log())
	})
	if err := c.start(append([]string{
		"-kubeconfig=" + o.cluster.Kubeconfig(), "-cluster-name=" + o.clusterName, "-resync-period=1s",
		"-metrics-bind-address=127.0.0.1:0", "-v=9",
	}, flags...)...); err != nil {
		o.Fatal(err)
	}
	return c
}

func (o *realOpenStack) mustKubectl(args ...string) string {
	o.Helper()
	output, err := o.kubectl(args)
	if err != nil {
		o.Fatal(err)
	}
	return output
}

// checkNeutron compares the networks and subnets that a project has for the Network of the
// example in a namespace.
func (o *realOpenStack) checkNeutron(project neutron.Client, namespace, want string) {
	o.Helper()
	networks, err := project.Networks(o.Context(), neutron.NetworkFilter{Name: namespace + "/example-network"})
	var got []string
	for _, network := range networks {
		subnets, failed := project.Subnets(o.Context(), neutron.SubnetFilter{NetworkID: network.ID})
		err = errors.Join(err, failed)
		for _, subnet := range subnets {
			got = append(got, network.Name+" "+subnet.CIDR.String()+" "+subnet.Gateway.String())
		}
	}
	if got := strings.Join(got, ", "); err != nil || got != want {
		o.Errorf("the project has %q (%v), want %q", got, err, want)
	}
}

// checkNoSecrets checks that the log has no passwords and tokens.
func (o *realOpenStack) checkNoSecrets(log string) {
	o.Helper()
	secure, err := os.ReadFile(filepath.Join(filepath.Dir(os.Getenv("OS_CLIENT_CONFIG_FILE")), "secure.yaml"))
	if err != nil {
		o.Fatal(err)
	}
	secrets := regexp.MustCompile(`(?m)(?:password|secret): *"?([^"\s]+)`).FindAllStringSubmatch(string(secure), -1)
	if len(secrets) == 0 {
		o.Error("secure.yaml has no secrets to look for")
	}
	for _, secret := range secrets {
		if strings.Contains(log, secret[1]) {
			o.Error("a secret is in the log")
		}
	}
	if regexp.MustCompile(`gAAAAA[\w-]{20,}`).MatchString(log) {
		o.Error("a token is in the log")
	}
}

// TestRealWalkthrough creates, edits and deletes a Network, as a user of a real
// OpenStack, with each way to log in. The network of another tenant with the same
// name and owner marker stays; and tokens that live for eight seconds are renewed
// without a failure.
func TestRealWalkthrough(t *testing.T) {
	for _, cloud := range []string{"ours", "ours-app", "short"} {
		t.Run(cloud, func(t *testing.T) {
			o := newRealOpenStack(t)
			neighbour := connectCloud(t, "other-tenant")
			same := neutron.NewNetwork{Name: "default/example-network", Description: o.owner("example-network").Marker()}
			theirs, err := neighbour.CreateNetwork(t.Context(), same)
			if err != nil {
				t.Fatal(err)
			}
			c := o.start(cloud)

			o.mustKubectl("apply", "-f", "../../example/example-network.yaml")
			o.mustKubectl("wait", "--for=condition=Ready", "network/example-network", "--timeout=60s")
			o.checkNeutron(o.ours, "default", "default/example-network 192.168.0.0/16 192.168.0.1")
			if cloud == "short" {
				const tenLists = `^samplecrd_neutron_cache_refreshes_total\{result="success"\} \d\d` // of a second or two
				if _, err := o.until([]string{"controller", "metrics", "~", tenLists}); err != nil {
					t.Fatal(err)
				}
			}
			o.mustKubectl("patch", "network", "example-network", "--type=merge",
				"--patch", `{"spec":{"cidr":"192.168.1.0/16","gateway":"192.168.1.1"}}`)
			o.mustKubectl("wait", "--for=condition=Ready", "network/example-network", "--timeout=60s") // of the new spec
			o.checkNeutron(o.ours, "default", "default/example-network 192.168.0.0/16 192.168.1.1")
			o.mustKubectl("delete", "network", "example-network", "--timeout=60s")
			o.checkNeutron(o.ours, "default", "")

			if strings.Contains(c.log(), "unavailable") {
				t.Errorf("something was unavailable:\n%s", c.log())
			}
			if err := neighbour.DeleteNetwork(t.Context(), theirs.ID, theirs.Revision); err != nil {
				t.Errorf("the other tenant's network is not as it was: %v", err)
			}
		})
	}
}

// cloudConfig is a cloud of the clouds.yaml, with the password in the secure.yaml beside it.
type cloudConfig struct {
	Region string            `json:"region_name"`
	Auth   map[string]string `json:"auth"`
}

func readCloud(t *testing.T, name string) (c cloudConfig) {
	t.Helper()
	file := os.Getenv("OS_CLIENT_CONFIG_FILE")
	for _, file := range []string{file, filepath.Join(filepath.Dir(file), "secure.yaml")} {
		text, err := os.ReadFile(file)
		var all struct{ Clouds map[string]json.RawMessage }
		err = errors.Join(err, yaml.Unmarshal(text, &all))
		if err := errors.Join(err, json.Unmarshal(all.Clouds[name], &c)); err != nil { // it adds to the map
			t.Fatal(err)
		}
	}
	return c
}

// secret writes a Secret with the cloud, and returns its path.
func (c cloudConfig) secret(t *testing.T, namespace string) string {
	t.Helper()
	text, _ := json.Marshal(map[string]any{"clouds": map[string]any{"openstack": c}})
	secret, _ := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "stringData": map[string]string{"clouds.yaml": string(text)},
		"metadata": map[string]string{"namespace": namespace, "name": "samplecrd-cloud"},
	})
	path := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(path, secret, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRealClouds makes the networks of two namespaces with one controller in two projects,
// each with the Secret of its namespace.
func TestRealClouds(t *testing.T) {
	o := newRealOpenStack(t)
	clouds := map[string]string{"red": "ours", "blue": "other-tenant"}
	o.start("", "-allowed-auth-urls="+readCloud(t, "ours").Auth["auth_url"]+","+os.Getenv("NEUTRON_KEYSTONE_ENDPOINT"))
	for namespace, cloud := range clouds {
		o.mustKubectl("create", "namespace", namespace)
		o.mustKubectl("apply", "-n", namespace, "-f", "../../example/example-network.yaml")
		o.mustKubectl("wait", "-n", namespace, "network/example-network", "--timeout=60s",
			"--for=jsonpath={.status.conditions[0].reason}=NoCloud")
		o.mustKubectl("apply", "-n", namespace, "-f", readCloud(t, cloud).secret(t, namespace))
	}
	o.wantInOwnProjects(clouds, "192.168.0.1")
	for namespace := range clouds {
		o.mustKubectl("patch", "-n", namespace, "network", "example-network", "--type=merge",
			"--patch", `{"spec":{"gateway":"192.168.0.9"}}`)
	}
	o.wantInOwnProjects(clouds, "192.168.0.9")
	for namespace := range clouds {
		o.mustKubectl("delete", "-n", namespace, "network", "example-network", "--timeout=60s")
	}
	o.wantInOwnProjects(clouds, "")
}

// wantInOwnProjects checks that the project of each namespace has the network of that
// namespace, with this gateway, and none of another one. Without a gateway, it must have none.
func (o *realOpenStack) wantInOwnProjects(clouds map[string]string, gateway string) {
	o.Helper()
	for namespace, cloud := range clouds {
		if gateway != "" {
			o.mustKubectl("wait", "-n", namespace, "--for=condition=Ready", "network/example-network", "--timeout=90s")
		}
		for other := range clouds {
			want := ""
			if other == namespace && gateway != "" {
				want = other + "/example-network 192.168.0.0/16 " + gateway
			}
			o.checkNeutron(connectCloud(o, cloud), other, want)
		}
	}
}

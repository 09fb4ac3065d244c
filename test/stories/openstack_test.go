package stories

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/util/rand"

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

func connectCloud(t *testing.T, name string) neutron.Client {
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

// checkNeutron compares the network and subnet that the project has for the
// Network of the example.
func (o *realOpenStack) checkNeutron(want string) {
	o.Helper()
	filter := neutron.NetworkFilter{Name: o.namespace + "/example-network"}
	networks, err := o.ours.Networks(o.Context(), filter)
	if err != nil {
		o.Fatal(err)
	}
	var got []string
	for _, network := range networks {
		subnets, err := o.ours.Subnets(o.Context(), neutron.SubnetFilter{NetworkID: network.ID})
		if err != nil {
			o.Fatal(err)
		}
		for _, subnet := range subnets {
			got = append(got, network.Name+" "+subnet.CIDR.String()+" "+subnet.Gateway.String())
		}
	}
	if got := strings.Join(got, ", "); got != want {
		o.Errorf("Neutron has %q, want %q", got, want)
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
			o.checkNeutron("default/example-network 192.168.0.0/16 192.168.0.1")
			if cloud == "short" {
				o.waitForLists(10) // one or two seconds each
			}
			o.mustKubectl("patch", "network", "example-network", "--type=merge",
				"--patch", `{"spec":{"cidr":"192.168.1.0/16","gateway":"192.168.1.1"}}`)
			o.mustKubectl("wait", "--for=condition=Ready", "network/example-network", "--timeout=60s") // of the new spec
			o.checkNeutron("default/example-network 192.168.0.0/16 192.168.1.1")
			o.mustKubectl("delete", "network", "example-network", "--timeout=60s")
			o.checkNeutron("")

			if strings.Contains(c.log(), "unavailable") {
				t.Errorf("something was unavailable:\n%s", c.log())
			}
			if err := neighbour.DeleteNetwork(t.Context(), theirs.ID, theirs.Revision); err != nil {
				t.Errorf("the other tenant's network is not as it was: %v", err)
			}
		})
	}
}

// waitForLists waits until the controller has refreshed the cache of Neutron's
// state so many times, which a metric counts.
func (o *realOpenStack) waitForLists(number int) {
	o.Helper()
	lists := regexp.MustCompile(`(?m)^samplecrd_neutron_cache_refreshes_total\{result="success"\} (\d+)$`)
	err := o.eventually(func() error {
		text, err := o.controllers["first"].get("metrics")
		if err != nil {
			return err
		}
		match := lists.FindStringSubmatch(text)
		if match == nil {
			return errors.New("the metrics have no number of refreshes")
		}
		if count, err := strconv.Atoi(match[1]); err != nil || count < number {
			return fmt.Errorf("the controller has refreshed its cache %s times, want %d", match[1], number)
		}
		return nil
	})
	if err != nil {
		o.Fatal(err)
	}
}

// TestRealKeystoneAway suspends Keystone: the condition reports it, and the Network
// is created when Keystone continues.
func TestRealKeystoneAway(t *testing.T) {
	o := newRealOpenStack(t)
	keystone, err := strconv.Atoi(os.Getenv("OPENSTACK_KEYSTONE_PID"))
	if err != nil {
		t.Skip("OPENSTACK_KEYSTONE_PID is not set")
	}
	o.start("ours", "-neutron-timeout=5s")
	if err := syscall.Kill(keystone, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(keystone, syscall.SIGCONT) })

	o.mustKubectl("apply", "-f", "../../example/example-network.yaml")
	o.mustKubectl("wait", "--for=condition=Ready=false", "network/example-network", "--timeout=120s")
	reason := o.mustKubectl("get", "network", "example-network", "-o", `jsonpath={.status.conditions[0].reason}`)
	if reason != "NeutronUnavailable" {
		t.Errorf("the reason is %q", reason)
	}
	if err := syscall.Kill(keystone, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	o.mustKubectl("wait", "--for=condition=Ready", "network/example-network", "--timeout=180s")
	o.checkNeutron("default/example-network 192.168.0.0/16 192.168.0.1")
	o.mustKubectl("delete", "network", "example-network", "--timeout=60s")
	o.checkNeutron("")
}

package main

import (
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

// realOpenStack is a Keystone and a Neutron, as the program finds them, and a
// Kubernetes for the test alone.
type realOpenStack struct {
	*testing.T
	kubernetes  *controlplane.Cluster
	clusterName string
	ours        neutron.Client // past the program
}

func newRealOpenStack(t *testing.T) *realOpenStack {
	t.Helper()
	if os.Getenv("OPENSTACK_CLOUDS") == "" {
		t.Skip("OPENSTACK_CLOUDS is not set: `make test-openstack` starts an OpenStack and sets it")
	}
	return &realOpenStack{T: t, kubernetes: ownCluster(t), clusterName: "test-" + rand.String(8), ours: connectCloud(t, "ours")}
}

func connectCloud(t *testing.T, name string) neutron.Client {
	t.Helper()
	client, err := openstack.NewFromCloud(name)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// start runs the program for a cloud, as talkative as it can be.
func (o *realOpenStack) start(cloud string, flags ...string) *program {
	o.Helper()
	flags = append(flags, "-kubeconfig="+o.kubernetes.Kubeconfig(), "-cluster-name="+o.clusterName, "-resync-period=1s", "-v=9")
	p := newProgram(o.T, flags...)
	p.Env = append(p.Env, "OS_CLOUD="+cloud, "OS_CLIENT_CONFIG_FILE="+os.Getenv("OS_CLIENT_CONFIG_FILE"))
	if err := p.Start(); err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() { o.wantNoSecrets(p) })
	p.waitFor(o.T, "Using Neutron")
	return p
}

func (o *realOpenStack) kubectl(args ...string) {
	o.Helper()
	kubectl(o.T, o.kubernetes, args...)
}

// mark is on what the program makes of the Network of the example.
func (o *realOpenStack) mark() string {
	return neutron.Owner{Cluster: o.clusterName, Namespace: "default", Name: "example-network"}.Marker()
}

// wantNeutron checks what the project has of the example.
func (o *realOpenStack) wantNeutron(gateways ...string) {
	o.Helper()
	networks, err := o.ours.Networks(o.Context(), neutron.NetworkFilter{Descriptions: []string{o.mark()}})
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
	var want []string
	for _, gateway := range gateways {
		want = append(want, "default/example-network 192.168.0.0/16 "+gateway)
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		o.Errorf("Neutron has %q, want %q", got, want)
	}
}

// wantNoSecrets checks what the program has said.
func (o *realOpenStack) wantNoSecrets(p *program) {
	o.Helper()
	secure, err := os.ReadFile(filepath.Join(filepath.Dir(os.Getenv("OS_CLIENT_CONFIG_FILE")), "secure.yaml"))
	if err != nil {
		o.Fatal(err)
	}
	secrets := regexp.MustCompile(`(?m)(?:password|secret): *"?([^"\s]+)`).FindAllStringSubmatch(string(secure), -1)
	if len(secrets) == 0 {
		o.Error("found no secrets to look for")
	}
	for _, secret := range secrets {
		if strings.Contains(p.log.String(), secret[1]) {
			o.Error("a secret is in the log")
		}
	}
	if token := regexp.MustCompile(`gAAAAA[\w-]{20,}`).FindString(p.log.String()); token != "" {
		o.Error("a token is in the log")
	}
}

// TestRealWalkthrough: create, edit, delete, as a user of a real OpenStack, with
// each way to log in. What another tenant has beside it stays, whatever it is
// called; and tokens that live for eight seconds are renewed, unnoticed.
func TestRealWalkthrough(t *testing.T) {
	for _, cloud := range []string{"ours", "ours-app", "short"} {
		t.Run(cloud, func(t *testing.T) {
			o := newRealOpenStack(t)
			neighbour := connectCloud(t, "other-tenant")
			theirs, err := neighbour.CreateNetwork(t.Context(), neutron.NewNetwork{Name: "default/example-network", Description: o.mark()})
			if err != nil {
				t.Fatal(err)
			}
			p := o.start(cloud)

			o.kubectl("apply", "-f", "example/example-network.yaml")
			o.kubectl("wait", "--for=condition=Ready", "network/example-network", "--timeout=60s")
			o.wantNeutron("192.168.0.1")
			if cloud == "short" {
				p.waitForMore(t, "Listed what Neutron has", 10) // a second apart, or two
			}
			o.kubectl("patch", "network", "example-network", "--type=merge", "--patch", `{"spec":{"cidr":"192.168.1.0/16","gateway":"192.168.1.1"}}`)
			o.kubectl("wait", "--for=jsonpath={.status.observedGeneration}=2", "network/example-network", "--timeout=60s")
			o.wantNeutron("192.168.1.1")
			o.kubectl("delete", "network", "example-network", "--timeout=60s")
			o.wantNeutron()

			if strings.Contains(p.log.String(), "unavailable") {
				t.Errorf("something was unavailable:\n%s", &p.log)
			}
			if err := neighbour.DeleteNetwork(t.Context(), theirs.ID, theirs.Revision); err != nil {
				t.Errorf("the other tenant's network is not as it was: %v", err)
			}
		})
	}
}

// TestRealKeystoneAway: while Keystone hangs, Networks say so; when it goes on,
// so do they.
func TestRealKeystoneAway(t *testing.T) {
	o := newRealOpenStack(t)
	keystone, err := strconv.Atoi(os.Getenv("OPENSTACK_KEYSTONE_PID"))
	if err != nil {
		t.Skip("OPENSTACK_KEYSTONE_PID is not set")
	}
	o.start("ours", "-neutron-timeout=5s")
	signal := func(s syscall.Signal) error { return syscall.Kill(keystone, s) }
	if err := signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	goOn := func() error { return signal(syscall.SIGCONT) }
	t.Cleanup(func() { _ = goOn() })

	o.kubectl("apply", "-f", "example/example-network.yaml")
	o.kubectl("wait", "--for=condition=Ready=false", "network/example-network", "--timeout=120s")
	reason, err := o.kubernetes.Kubectl(t.Context(), "get", "network", "example-network", "-o", `jsonpath={.status.conditions[0].reason}`)
	if err != nil || string(reason) != "NeutronUnavailable" {
		t.Errorf("the reason is %q (%v)", reason, err)
	}
	if err := goOn(); err != nil {
		t.Fatal(err)
	}
	o.kubectl("wait", "--for=condition=Ready", "network/example-network", "--timeout=180s")
	o.wantNeutron("192.168.0.1")
	o.kubectl("delete", "network", "example-network", "--timeout=60s")
	o.wantNeutron()
}

// waitForMore waits until a program has said something so many times more.
func (p *program) waitForMore(t *testing.T, text string, times int) {
	t.Helper()
	p.waitFor(t, fmt.Sprintf(`(?s)(%s.*?){%d}`, regexp.QuoteMeta(text), strings.Count(p.log.String(), text)+times))
}

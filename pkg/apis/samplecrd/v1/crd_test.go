package v1_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/samplecrd/network-controller/hack/localcluster"
	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	typedv1 "github.com/samplecrd/network-controller/pkg/client/clientset/versioned/typed/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

var cluster *localcluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(localcluster.RunTests(m, localcluster.Options{Apply: []string{"crd"}}, func(c *localcluster.Cluster) { cluster = c }))
}

const (
	notACIDR     = "cidr must be an IPv4 or IPv6 range in CIDR notation, such as 192.168.0.0/16 or fd00:1234::/64"
	noRoom       = "the prefix length of cidr must be from /1 to /30 for IPv4 and from /1 to /126 for IPv6"
	noHosts      = "cidr must not be a multicast or loopback range, nor begin with 0.0.0.0"
	notAnAddress = "gateway must be an IPv4 or IPv6 address, such as 192.168.0.1 or fd00:1234::1"
	notAHost     = "gateway must not be a multicast or loopback address"
	notInside    = "gateway must be an address inside cidr, and of the same IP version"
	networkAddr  = "gateway must not be the network address"
)

// TestValidation applies specs to a real API server. The controller must come
// to the same answer by itself, since an older CRD may let more through.
func TestValidation(t *testing.T) {
	for name, test := range map[string]struct {
		cidr, gateway string
		refusal       string // a part of the answer; empty where it is accepted
	}{
		"the walkthrough":                  {"192.168.0.0/16", "192.168.0.1", ""},
		"the walkthrough, edited":          {"192.168.1.0/16", "192.168.1.1", ""},
		"no gateway":                       {"10.0.0.0/8", "", ""},
		"smallest":                         {"10.0.0.0/30", "10.0.0.2", ""},
		"largest":                          {"128.0.0.0/1", "", ""},
		"IPv6":                             {"fd00:1234::/64", "fd00:1234::1", ""},
		"IPv6, smallest":                   {"fd00:1234::/126", "fd00:1234::3", ""},
		"IPv6, spelt out":                  {"fd00:1234:0000:0000:0000:0000:0000:0000/100", "fd00:1234:0000:0000:0000:0000:0000:0001", ""},
		"IPv6, capitals":                   {"FD00::/64", "FD00::A", ""},
		"no CIDR":                          {"", "", notACIDR},
		"words":                            {"my network", "", notACIDR},
		"an address":                       {"192.168.0.0", "", notACIDR},
		"prefix too long":                  {"192.168.0.0/33", "", notACIDR},
		"octet too large":                  {"192.168.0.256/16", "", notACIDR},
		"leading zeros":                    {"192.168.00.0/16", "", notACIDR},
		"leading zeros in the prefix":      {"192.168.0.0/016", "", notACIDR},
		"spaces":                           {" 192.168.0.0/16", "", notACIDR},
		"IPv4 in IPv6":                     {"::ffff:192.168.0.0/112", "", notACIDR},
		"zone":                             {"fe80::1%eth0/64", "", notACIDR},
		"too long":                         {strings.Repeat("1", 60), "", "Too long"},
		"no room":                          {"10.0.0.0/31", "", noRoom},
		"one address":                      {"10.0.0.0/32", "", noRoom},
		"no room, IPv6":                    {"fd00::/127", "", noRoom},
		"everything":                       {"0.0.0.0/0", "", noRoom},
		"everything, IPv6":                 {"::/0", "", noRoom},
		"multicast":                        {"224.0.0.0/24", "", noHosts},
		"multicast, IPv6":                  {"ff02::/64", "", noHosts},
		"more than multicast":              {"224.0.0.0/3", "", ""},
		"loopback":                         {"127.0.1.0/24", "", noHosts},
		"first of all":                     {"0.0.0.0/8", "", noHosts},
		"first of all, with host bits":     {"1.2.3.4/1", "", noHosts},
		"first of all, IPv6":               {"::/64", "", noHosts},
		"gateway in words":                 {"10.0.0.0/24", "router", notAnAddress},
		"gateway with a prefix":            {"10.0.0.0/24", "10.0.0.1/24", notAnAddress},
		"gateway with leading zeros":       {"10.0.0.0/24", "10.0.0.01", notAnAddress},
		"gateway with a zone":              {"fe80::/64", "fe80::1%eth0", notAnAddress},
		"gateway IPv4 in IPv6":             {"10.0.0.0/24", "::ffff:10.0.0.1", notAnAddress},
		"gateway is multicast":             {"128.0.0.0/1", "230.0.0.1", notAHost},
		"gateway is loopback":              {"126.0.0.0/7", "127.0.0.1", notAHost},
		"gateway outside":                  {"10.0.0.0/24", "10.0.1.1", notInside},
		"gateway of the other family":      {"10.0.0.0/24", "fd00::1", notInside},
		"gateway of the other family, 6":   {"fd00::/64", "10.0.0.1", notInside},
		"gateway is the network address":   {"10.0.0.0/24", "10.0.0.0", networkAddr},
		"gateway is it, with host bits":    {"192.168.1.0/16", "192.168.0.0", networkAddr},
		"gateway is the first IPv6 one":    {"fd00::/64", "fd00::", networkAddr},
		"gateway is it, written at length": {"fd00::/64", "fd00:0:0:0::", networkAddr},
		"both are wrong":                   {"nonsense", "more nonsense", notACIDR},
	} {
		t.Run(name, func(t *testing.T) {
			err := create(t, "validation", test.cidr, test.gateway)
			switch {
			case test.refusal == "" && err != nil:
				t.Errorf("was refused: %v", err)
			case test.refusal != "" && (err == nil || !strings.Contains(err.Error(), test.refusal)):
				t.Errorf("the answer is %v, want a refusal with %q", err, test.refusal)
			}
			ours := plan.Want(neutron.Owner{}, test.cidr, test.gateway).Invalid
			if (ours == "") != (err == nil) {
				t.Errorf("the API server says %v, and the controller would say %q", err, ours)
			}
		})
	}
}

// TestPolicyAndAdoption: what is refused of the other fields, and that a network
// cannot be exchanged for another one.
func TestPolicyAndAdoption(t *testing.T) {
	for name, test := range map[string]struct {
		patch   string
		refusal string // a part of the answer; empty where it is accepted
	}{
		"retain":                 {`{"spec":{"deletionPolicy":"Retain"}}`, ""},
		"delete":                 {`{"spec":{"deletionPolicy":"Delete"}}`, ""},
		"no policy":              {`{"spec":{"deletionPolicy":null}}`, ""},
		"another policy":         {`{"spec":{"deletionPolicy":"Keep"}}`, "deletionPolicy"},
		"a network, later":       {`{"spec":{"networkID":"abc"}}`, "networkID cannot be set, changed or removed later"},
		"an ID that is a path":   {`{"spec":{"networkID":"../x"}}`, "networkID"},
		"an ID that is empty":    {`{"spec":{"networkID":""}}`, "networkID"},
		"an ID that is too long": {`{"spec":{"networkID":"` + strings.Repeat("a", 65) + `"}}`, "networkID"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := create(t, "policy", "10.0.0.0/24", ""); err != nil {
				t.Fatal(err)
			}
			_, err := networks(t).Patch(t.Context(), "policy", types.MergePatchType, []byte(test.patch), metav1.PatchOptions{})
			if test.refusal == "" && err != nil || test.refusal != "" && (err == nil || !strings.Contains(err.Error(), test.refusal)) {
				t.Errorf("patching with %s: %v, want %q", test.patch, err, test.refusal)
			}
		})
	}
	adopting := &samplecrdv1.Network{Spec: samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", NetworkID: "abc"}}
	adopting.Name = "adopting"
	if _, err := networks(t).Create(t.Context(), adopting, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, patch := range []string{`{"spec":{"networkID":"abd"}}`, `{"spec":{"networkID":null}}`} {
		_, err := networks(t).Patch(t.Context(), "adopting", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err == nil || !strings.Contains(err.Error(), "networkID cannot be set, changed or removed later") {
			t.Errorf("patching with %s: %v", patch, err)
		}
	}
}

func TestNameIsLimited(t *testing.T) {
	if err := create(t, strings.Repeat("x", 63), "10.0.0.0/24", ""); err != nil {
		t.Errorf("a name of 63 characters was refused: %v", err)
	}
	err := create(t, strings.Repeat("x", 64), "10.0.0.0/24", "")
	if err == nil || !strings.Contains(err.Error(), "metadata.name must have at most 63 characters") {
		t.Errorf("a name of 64 characters: %v", err)
	}
}

// TestNewIsNotReady: before a controller has looked at a Network, tools that
// wait for its condition have one to wait for.
func TestNewIsNotReady(t *testing.T) {
	if err := create(t, "new", "10.0.0.0/24", ""); err != nil {
		t.Fatal(err)
	}
	network, err := networks(t).Get(t.Context(), "new", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ready := meta.FindStatusCondition(network.Status.Conditions, samplecrdv1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionUnknown || ready.Reason != "Pending" {
		t.Errorf("the condition is %+v", ready)
	}
}

// TestKubectl: what users see of the API without having read about it.
func TestKubectl(t *testing.T) {
	if err := create(t, "shown", "10.0.0.0/24", "10.0.0.1"); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"table":      {[]string{"get", "networks", "shown"}, []string{"CIDR", "GATEWAY", "READY", "AGE", "10.0.0.0/24", "Unknown"}},
		"wide table": {[]string{"get", "nw", "shown", "-o", "wide"}, []string{"REASON", "NETWORK ID", "SUBNET ID", "Pending"}},
		"explain": {[]string{"explain", "network.spec"}, []string{
			"cidr", "-required-", "IPv4 (/1 to /30) or IPv6", "host bits are dropped", "gateway"}},
		"explain status": {[]string{"explain", "network.status"}, []string{"observedGeneration", "conditions tell how the Network is"}},
	} {
		t.Run(name, func(t *testing.T) {
			output, err := cluster.Kubectl(t.Context(), test.args...)
			if err != nil {
				t.Fatal(err)
			}
			flat := strings.ToLower(strings.Join(strings.Fields(string(output)), " "))
			for _, want := range test.want {
				if !strings.Contains(flat, strings.ToLower(want)) {
					t.Errorf("kubectl %s says nothing of %q:\n%s", strings.Join(test.args, " "), want, output)
				}
			}
		})
	}
}

// create creates a Network, which is deleted at the end of the test.
func create(t *testing.T, name, cidr, gateway string) error {
	t.Helper()
	network := &samplecrdv1.Network{Spec: samplecrdv1.NetworkSpec{CIDR: cidr, Gateway: gateway}}
	network.Name = name
	_, err := networks(t).Create(t.Context(), network, metav1.CreateOptions{})
	if err == nil {
		t.Cleanup(func() { // nothing else in this cluster holds it
			if err := networks(t).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
				t.Errorf("deleting it again: %v", err)
			}
		})
	}
	return err
}

func networks(t *testing.T) typedv1.NetworkInterface {
	t.Helper()
	client, err := clientset.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client.SamplecrdV1().Networks(metav1.NamespaceDefault)
}

package v1_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/test/controlplane"
)

var cluster *controlplane.Cluster

func TestMain(m *testing.M) {
	os.Exit(controlplane.RunTests(m, controlplane.Options{Apply: []string{"crd"}}, func(c *controlplane.Cluster) { cluster = c }))
}

// specs are specs in YAML, by who rejects them. The examples in schema.yaml have one
// violation of each rule. CEL cannot order addresses: the API server accepts some specs
// that the controller rejects. Without the CRD, Neutron would reject others.
var specs = map[string][]string{
	"nobody": {
		"{cidr: 192.168.0.0/16, gateway: 192.168.0.1}", "{cidr: 192.168.1.0/16, gateway: 192.168.1.1}", "{cidr: 10.0.0.0/8}",
		"{cidr: 10.0.0.0/30, gateway: 10.0.0.2}", "{cidr: 128.0.0.0/1}", "{cidr: 224.0.0.0/3}",
		"{cidr: 'fd00:1234::/64', gateway: 'fd00:1234::1'}", "{cidr: 'fd00:1234::/126', gateway: 'fd00:1234::3'}",
		"{cidr: 'fd00:1234:0000:0000:0000:0000:0000:0000/100', gateway: 'fd00:1234:0:0:0:0:0:0001'}",
		"{cidr: 'FD00::/64', gateway: 'FD00::A'}", "{cidr: 10.0.0.0/24, gateway: None}",
		"{cidr: 10.0.0.0/31, gateway: None, enableDHCP: false}", "{cidr: 'fd00::/128', gateway: None, enableDHCP: false}",
		"{subnetPool: {name: campus, prefixLength: 24}}", "{subnetPool: {id: a-b}}", "{subnetPool: {name: campus}, gateway: None}",
		"{cidr: 'fd00::/64', dnsNameservers: ['fd00::53'], hostRoutes: [{destination: 'fd01::/64', nextHop: 'fd00::9'}]}",
		"{cidr: 'fd00::/64', ipv6: {addressMode: slaac, raMode: slaac}}", "{cidr: 10.0.0.0/24, deletionPolicy: Retain}",
		"{cidr: 10.0.0.0/24, networkID: abc, dnsNameservers: [9.9.9.9]}",
		`{cidr: 10.0.0.0/24, gateway: 10.0.0.254, dnsNameservers: [10.0.0.53, 9.9.9.9], enableDHCP: true, mtu: 1400,
  allocationPools: [{start: 10.0.0.10, end: 10.0.0.20}, {start: 10.0.0.30, end: 10.0.0.40}],
  hostRoutes: [{destination: 0.0.0.0/0, nextHop: 10.0.0.9}], adminStateUp: false, portSecurityEnabled: false,
  dnsDomain: net.example.org., tags: [team=blue, a b], router: {name: edge}, deletionPolicy: Delete}`,
	},
	"both": {
		"{cidr: 192.168.0.0}", "{cidr: 192.168.0.0/33}", "{cidr: 192.168.0.256/16}", "{cidr: 192.168.00.0/16}",
		"{cidr: 192.168.0.0/016}", "{cidr: ' 192.168.0.0/16'}", "{cidr: '::ffff:192.168.0.0/112'}", "{cidr: 'fe80::1%eth0/64'}",
		"{cidr: '" + strings.Repeat("1", 60) + "'}", "{cidr: 10.0.0.0/32}", "{cidr: 'fd00::/127'}", "{cidr: 0.0.0.0/0}", "{cidr: '::/0'}",
		"{cidr: 224.0.0.0/24}", "{cidr: 'ff02::/64'}", "{cidr: 0.0.0.0/8}", "{cidr: 1.2.3.4/1}", "{cidr: '::/64'}",
		"{cidr: 10.0.0.0/24, gateway: 10.0.0.1/24}", "{cidr: 10.0.0.0/24, gateway: 10.0.0.01}", "{cidr: 10.0.0.0/24, gateway: none}",
		"{cidr: 'fe80::/64', gateway: 'fe80::1%eth0'}", "{cidr: 10.0.0.0/24, gateway: '::ffff:10.0.0.1'}",
		"{cidr: 128.0.0.0/1, gateway: 230.0.0.1}", "{cidr: 10.0.0.0/24, gateway: 'fd00::1'}", "{cidr: 'fd00::/64', gateway: 10.0.0.1}",
		"{cidr: 192.168.1.0/16, gateway: 192.168.0.0}", "{cidr: 'fd00::/64', gateway: 'fd00::'}", "{cidr: 'fd00::/64', gateway: 'fd00:0:0:0::'}",
		"{cidr: 10.0.0.0/31, gateway: None}", "{cidr: 0.0.0.0/0, gateway: None, enableDHCP: false}",
		"{cidr: 10.0.0.0/24, allocationPools: [{start: 'fd00::1', end: 'fd00::2'}]}",
		"{subnetPool: {prefixLength: 24}}", "{subnetPool: {name: campus, prefixLength: 127}}", "{cidr: 10.0.0.0/24, mtu: 67}",
	},
	"the controller": {
		"{cidr: 10.0.0.0/24, allocationPools: [{start: 10.0.0.9, end: 10.0.0.2}]}",
		"{cidr: 10.0.0.0/24, allocationPools: [{start: 10.0.0.1, end: 10.0.0.9}]}",
		"{cidr: 'fd00::/80', ipv6: {raMode: slaac}}",
	},
	"the API server": {
		"{subnetPool: {id: ../a}}", "{cidr: 'fd00::/64', ipv6: {raMode: SLAAC}}", "{cidr: 10.0.0.0/24, tags: [a, a]}",
		"{cidr: 10.0.0.0/24, tags: [" + strings.Repeat("a", 61) + "]}", "{cidr: 10.0.0.0/24, deletionPolicy: Keep}",
		"{cidr: 10.0.0.0/24, networkID: ../x}", "{cidr: 10.0.0.0/24, networkID: ''}",
		"{cidr: 10.0.0.0/24, networkID: " + strings.Repeat("a", 65) + "}",
	},
}

// TestSpecs creates Networks on a real API server. The controller must reject the same
// specs, because an older CRD may accept more.
func TestSpecs(t *testing.T) {
	client := crdObjects("samplecrd.k8s.io")
	for who, specs := range specs {
		for _, text := range specs {
			var spec map[string]any
			if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			err, invalid := client.try(t, spec), invalid(t, spec)
			rejects := map[string][2]bool{"nobody": {}, "both": {true, true}, "the controller": {false, true}, "the API server": {true, false}}
			if got := [2]bool{err != nil, invalid != ""}; got != rejects[who] {
				t.Errorf("%s rejects %s, want %s:\nthe API server: %v\nthe controller: %s", who, text, who, err, invalid)
			}
		}
	}
}

// invalid returns why the controller rejects a spec, or an empty string.
func invalid(t *testing.T, spec map[string]any) string {
	t.Helper()
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	var typed samplecrdv1.NetworkSpec
	if err := json.Unmarshal(text, &typed); err != nil {
		t.Fatal(err)
	}
	return plan.DesiredFor(neutron.Owner{}, typed).Invalid
}

// TestMessagesAreOneLine: an error shows what a user wrote, and cannot control the
// terminal.
func TestMessagesAreOneLine(t *testing.T) {
	client := crdObjects("samplecrd.k8s.io")
	for want, spec := range map[string]map[string]any{
		`spec.cidr: Invalid value: "10.0.0.0/24\n": cidr must be`:        {"cidr": "10.0.0.0/24\n"},
		`spec.gateway: Invalid value: "a\n\x1b[31mb": gateway must be`:   {"subnetPool": map[string]any{"name": "campus"}, "gateway": "a\n\x1b[31mb"},
		`spec.tags[1]: Invalid value: "b/c": tags must`:                  {"cidr": "10.0.0.0/24", "tags": []any{"a", "b/c"}},
		"gateway 10.0.1.1 is outside of cidr 10.0.0.0/24: it must be an": {"cidr": "10.0.0.0/24", "gateway": "10.0.1.1"},
	} {
		if err := client.try(t, spec); err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("got error %q, want one that contains %q", err, want)
		}
	}
}

// TestKubectl checks the output of kubectl get and kubectl explain.
func TestKubectl(t *testing.T) {
	for _, name := range []string{"shown", "waiting"} {
		kubectl(t, "create", "-f", write(t, networkYAML(name, `{cidr: 10.0.0.0/24, gateway: 10.0.0.1}`)))
		t.Cleanup(func() { kubectlAfter(t, "delete", "network", name) })
	}
	setStatus(t, "shown", `{"cidr":"10.0.0.0/24","gateway":"10.0.0.1","networkID":"5fc2b1e0","conditions":[{"type":"Ready",`+
		`"status":"True","reason":"Provisioned","message":"The network exists.","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`)
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"table": {[]string{"get", "networks", "shown"}, []string{"NAME CIDR GATEWAY READY REASON AGE shown 10.0.0.0/24 10.0.0.1 True Provisioned"}},
		"wide table": {[]string{"get", "nw", "shown", "-o", "wide"}, []string{
			"NAME CIDR GATEWAY READY REASON MESSAGE NETWORK ID AGE shown 10.0.0.0/24 10.0.0.1 True Provisioned The network exists. 5fc2b1e0"}},
		"category":     {[]string{"get", "openstack"}, []string{"shown 10.0.0.0/24"}},
		"all":          {[]string{"get", "all"}, []string{"network.samplecrd.k8s.io/shown 10.0.0.0/24"}},
		"before start": {[]string{"get", "networks", "waiting", "-o", "wide"}, []string{"waiting Unknown Pending No controller has reconciled this Network yet."}},
		"explain": {[]string{"explain", "network.spec"}, []string{
			"cidr", "/1 to /30 for IPv4 and /1 to /126 for IPv6", "host bits are ignored", "gateway", "subnetPool", "allocationPools", "dnsNameservers", "hostRoutes", "enableDHCP", "ipv6", "mtu", "adminStateUp", "portSecurityEnabled", "dnsDomain", "tags", "net-mtu-writable"}},
		"explain a field": {[]string{"explain", "network.spec.subnetPool"}, []string{"prefixLength", "must be unique among the subnet pools"}},
		"explain status":  {[]string{"explain", "network.status"}, []string{"observedGeneration", "conditions are the current conditions of the Network"}},
	} {
		t.Run(name, func(t *testing.T) {
			output, err := cluster.Kubectl(t.Context(), test.args...)
			if err != nil {
				t.Fatal(err)
			}
			flat := strings.ToLower(strings.Join(strings.Fields(string(output)), " "))
			for _, want := range test.want {
				if !strings.Contains(flat, strings.ToLower(want)) {
					t.Errorf("the output of kubectl %s lacks %q:\n%s", strings.Join(test.args, " "), want, output)
				}
			}
		})
	}
}

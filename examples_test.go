package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
)

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

// TestExamples applies each file in example/ and checks the result in Neutron.
// Then it deletes the objects in the file, and nothing remains in Neutron unless
// it is retained.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("example/*.yaml")
	if err != nil || len(files) != len(examples) {
		t.Fatalf("example/ contains %d files, and the test expects %d (%v)", len(files), len(examples), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want := examples[filepath.Base(file)]
			h := newDeploymentHarness(t)
			h.neutron = embedded.New(embedded.Options{With: []string{neutron.ExtensionDNS}})
			h.post("/v2.0/subnetpools", `{"subnetpool": {"name": "campus", "prefixes": ["10.64.0.0/12"], "default_prefixlen": 24}}`)
			h.postRouter("edge")
			h.startController()
			kubectl(t, cluster, "-n", h.namespace, "apply", "-f", file)
			status := h.waitReady(want.name).Status
			for path, part := range map[string]string{"networks/" + status.NetworkID: want.network, "subnets/" + status.SubnetID: want.subnet} {
				h.wantPart(path, part)
			}
			if routers := h.attachedTo(status.NetworkID); len(routers) == 1 != (want.name == "router-network") {
				t.Errorf("the network is attached to %v", routers)
			}
			if want.name != "retained-network" {
				kubectl(t, cluster, "-n", h.namespace, "delete", "-f", file)
				h.waitGone(want.name)
				h.wantCounts(0, 0)
			}
		})
	}
}

// wantPart checks that an object in Neutron has these fields.
func (h *harness) wantPart(path, part string) {
	h.Helper()
	var want map[string]json.RawMessage
	var response map[string]map[string]any
	if err := json.Unmarshal([]byte(part), &want); err != nil {
		h.Fatal(err)
	}
	h.do(http.MethodGet, "/v2.0/"+path, "", &response)
	for _, fields := range response {
		for name, value := range want {
			got, _ := json.Marshal(fields[name]) // it comes from JSON
			var expected any
			_ = json.Unmarshal(value, &expected) // as above
			text, _ := json.Marshal(expected)
			if string(got) != string(text) {
				h.Errorf("%s of %s is %s, want %s", name, path, got, text)
			}
		}
	}
}

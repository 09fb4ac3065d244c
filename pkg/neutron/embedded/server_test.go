package embedded_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
)

func start(t *testing.T, options embedded.Options) *embedded.Server {
	t.Helper()
	server := embedded.New(options)
	if err := server.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// serve returns the response of a server, decoded from JSON.
func serve(t testing.TB, server http.Handler, method, path, body string) (response map[string]any) {
	t.Helper()
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, httptest.NewRequest(method, "/v2.0/"+path, strings.NewReader(body)))
	if recorder.Code != http.StatusNoContent {
		if err := json.Unmarshal(recorder.Body.Bytes(), &response); err != nil {
			t.Errorf("%s %s %.100s: %d %s: %v", method, path, body, recorder.Code, recorder.Body, err)
		}
	}
	return response
}

const aNetwork = `{"network": {"name": "a"}}`

func TestListen(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "[::]:0", "example.com:0", "127.0.0.1"} {
		server := embedded.New(embedded.Options{})
		if err := server.Listen(address); err == nil {
			t.Errorf("it listens on %s", address)
			_ = server.Close()
		}
	}
	server := embedded.New(embedded.Options{})
	if server.URL() != "" || server.Close() != nil {
		t.Error("a server that does not listen has a URL, or cannot be closed")
	}
	for _, address := range []string{"", "localhost:0"} {
		server := embedded.New(embedded.Options{})
		if err := server.Listen(address); err != nil {
			t.Errorf("Listen(%q): %v", address, err)
		}
		if err := server.Listen(address); err == nil {
			t.Errorf("Listen(%q) succeeds a second time", address)
		}
		_ = server.Close()
	}
}

// TestQueries: a user with curl can select fields, and filter.
func TestQueries(t *testing.T) {
	server := embedded.New(embedded.Options{})
	for _, name := range []string{"none", "one", "two"} {
		serve(t, server, http.MethodPost, "networks", `{"network": {"name": "`+name+`"}}`)
	}
	for query, want := range map[string]int{"": 3, "admin_state_up=true": 3, "name=x&name=one": 1, "name=two&shared=false": 1} {
		response := serve(t, server, http.MethodGet, "networks?fields=name&"+query, "")
		found := response["networks"].([]any)
		if len(found) != want || len(found[0].(map[string]any)) != 1 {
			t.Errorf("with %s: %v, want %d names", query, found, want)
		}
	}
}

// FuzzRequests: every request has a response, in JSON.
func FuzzRequests(f *testing.F) {
	for _, seed := range [][3]string{
		{"POST", "networks", `{"network": {"name": "a", "mtu": 1400}}`},
		{"POST", "subnets", `{"subnet": {"network_id": "ID", "cidr": "fd00::/64", "ip_version": "6", "gateway_ip": "fd00::5", "ipv6_ra_mode": "slaac"}}`},
		{"POST", "subnets", `{"subnets": [{"network_id": "ID", "cidr": "10.0.0.0/31", "ip_version": 4, "enable_dhcp": false, "gateway_ip": null}]}`},
		{"POST", "subnets", `{"subnet": {"network_id": "ID", "cidr": "10.0.0.0/24", "ip_version": 4, "dns_nameservers": ["10.0.0.1"], "host_routes": [{"destination": "10.0.0.0/8", "nexthop": "10.0.0.1"}]}}`},
		{"POST", "subnets", `{"subnet": {"network_id": "ID", "cidr": "::/0", "ip_version": 6, "allocation_pools": [{"start": "::1", "end": "10.0.0.1"}]}}`},
		{"POST", "subnets", `{"subnet": {"network_id": "ID", "cidr": "255.255.255.255/32", "ip_version": 4, "enable_dhcp": false}}`},
		{"POST", "ports", `{"port": {"network_id": "ID", "device_owner": "compute:nova"}}`},
		{"PUT", "networks/ID", `{"network": {"name": null}}`},
		{"PUT", "networks/ID/tags/..%2e%ff", ``},
		{"PUT", "quotas/x", `{"quota": {"network": -1}}`},
		{"GET", "networks?name=a&tags=b&limit=1&marker=ID&fields=id", ``},
		{"GET", "ports?fixed_ips=ip_address%3D10.0.0.5", ``},
		{"DELETE", "networks/ID", ``},
		{"POST", "subnetpools", `{"subnetpool": {"name": "x", "prefixes": ["10.0.0.0/8", "0.0.0.0/0"], "min_prefixlen": 0}}`},
		{"PUT", "subnetpools/POOL", `{"subnetpool": {"prefixes": ["0.0.0.0/0"], "max_prefixlen": 30}}`},
		{"POST", "subnets", `{"subnet": {"network_id": "ID", "ip_version": 4, "subnetpool_id": "POOL", "prefixlen": 32}}`},
		{"POST", "subnets", `{"subnet": {"network_id": "ID", "ip_version": 4, "subnetpool_id": "POOL", "cidr": "255.255.255.255/32", "gateway_ip": null}}`},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, method, path, body string) {
		server := embedded.New(embedded.Options{})
		created := func(kind, body string) string {
			response := serve(t, server, http.MethodPost, kind+"s", body)
			return response[kind].(map[string]any)["id"].(string)
		}
		network := created("network", aNetwork)
		pool := created("subnetpool", `{"subnetpool": {"name": "x", "prefixes": ["128.0.0.0/1"]}}`)
		created("subnet", `{"subnet": {"network_id": "`+network+`", "cidr": "10.1.0.0/16", "ip_version": 4}}`)
		withID := strings.NewReplacer("ID", network, "POOL", pool).Replace
		for range 2 {
			request, err := http.NewRequest(method, "http://127.0.0.1/v2.0/"+withID(path), strings.NewReader(withID(body)))
			if err != nil {
				t.Skip("not a request")
			}
			recorder := httptest.NewRecorder()
			server.ServeHTTP(recorder, request)
			// An exhausted subnet pool responds with 500. A panic would end the test.
			rejected := recorder.Code == http.StatusInternalServerError
			if recorder.Code < 200 || recorder.Code >= 500 && !rejected || recorder.Header().Get("Content-Type") == "application/json" && !json.Valid(recorder.Body.Bytes()) {
				t.Errorf("%s %s %s: %d %s", method, path, body, recorder.Code, recorder.Body)
			}
		}
	})
}

package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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

const aNetwork = `{"network": {"name": "a"}}`

// do makes a request over a connection of its own: Go's client would send some
// again on another one.
func do(ctx context.Context, server *embedded.Server, method, body string) (status int, answer string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, server.URL()+"/v2.0/networks", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	return response.StatusCode, string(data), err
}

// count returns how many networks there are.
func count(t *testing.T, server *embedded.Server) int {
	t.Helper()
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/v2.0/networks", nil))
	var body struct{ Networks []any }
	if err := json.Unmarshal(recorder.Body.Bytes(), &body); err != nil {
		t.Fatalf("%v: %s", err, recorder.Body)
	}
	return len(body.Networks)
}

func TestFaults(t *testing.T) {
	for name, test := range map[string]struct {
		fault   embedded.Fault
		status  int // 0: no answer
		body    string
		broken  bool // the answer ends too early
		created bool
		logged  int
	}{
		"none":                {embedded.Fault{Method: http.MethodGet}, 201, `"name":"a"`, false, true, 201},
		"another path":        {embedded.Fault{Path: "^/v2.0/subnets", Status: 500}, 201, `"name":"a"`, false, true, 201},
		"a status":            {embedded.Fault{Method: http.MethodPost, Path: "^/v2.0/networks$", Status: 503}, 503, "<h1>Service Unavailable</h1>", false, false, 503},
		"a body":              {embedded.Fault{Status: 409, Body: "{}"}, 409, "{}", false, false, 409},
		"a lost request":      {embedded.Fault{DropRequest: true}, 0, "", false, false, 0},
		"a lost answer":       {embedded.Fault{DropAnswer: true}, 0, "", false, true, 0},
		"half an answer":      {embedded.Fault{Truncate: true}, 201, `{"network":`, true, true, 201},
		"half of a body":      {embedded.Fault{Status: 200, Body: "0123456789", Truncate: true}, 200, "01234", true, false, 200},
		"a delay":             {embedded.Fault{Delay: time.Millisecond}, 201, `"name":"a"`, false, true, 201},
		"a delay, and a loss": {embedded.Fault{Delay: time.Millisecond, DropRequest: true}, 0, "", false, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, embedded.Options{})
			remove := server.Inject(test.fault)
			status, body, err := do(t.Context(), server, http.MethodPost, aNetwork)
			if status != test.status || !strings.Contains(body, test.body) || (err != nil) != (test.broken || test.status == 0) {
				t.Errorf("the answer is %d %q, error %v", status, body, err)
			}
			got := server.Requests()
			if len(got) != 1 || got[0].Method != http.MethodPost || got[0].Path != "/v2.0/networks" || got[0].Status != test.logged {
				t.Errorf("the requests are %+v, want a POST with status %d", got, test.logged)
			}
			remove()
			if created := count(t, server) == 1; created != test.created {
				t.Errorf("created: %v, want %v", created, test.created)
			}
		})
	}
}

func TestFaultTimes(t *testing.T) {
	server := start(t, embedded.Options{})
	server.Inject(embedded.Fault{Status: 503, Times: 2})
	remove := server.Inject(embedded.Fault{Status: 500})
	want := []int{503, 503, 500, 500}
	for i, want := range want {
		if status, _, _ := do(t.Context(), server, http.MethodGet, ""); status != want {
			t.Errorf("request %d: %d, want %d", i, status, want)
		}
	}
	remove()
	remove() // a second time does no harm
	if status, _, _ := do(t.Context(), server, http.MethodGet, ""); status != http.StatusOK {
		t.Errorf("after the fault was removed: %d", status)
	}
}

// TestDelayGivenUp: a request whose client has gone is not carried out.
func TestDelayGivenUp(t *testing.T) {
	server := embedded.New(embedded.Options{})
	remove := server.Inject(embedded.Fault{Delay: time.Hour})
	done := make(chan struct{})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		server.ServeHTTP(w, r)
	}))
	defer front.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, front.URL+"/v2.0/networks", strings.NewReader(aNetwork))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error is %v, want the deadline", err)
	}
	<-done
	remove()
	if n := count(t, server); n != 0 {
		t.Errorf("there are %d networks, want none", n)
	}
}

func TestRequestsAreBounded(t *testing.T) {
	server := embedded.New(embedded.Options{})
	for i := range 50_000 {
		server.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, fmt.Sprintf("/?%d", i), nil))
	}
	got := server.Requests()
	if len(got) > 20_000 || got[len(got)-1].Query != "49999" {
		t.Errorf("%d requests are remembered, the last one is %+v", len(got), got[len(got)-1])
	}
	server.ResetRequests()
	if got := server.Requests(); len(got) != 0 {
		t.Errorf("%d requests are left after ResetRequests", len(got))
	}
}

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

func TestLargeBody(t *testing.T) {
	server := start(t, embedded.Options{})
	body := `{"network": {"name": "` + strings.Repeat("x", 2<<20) + `"}}`
	status, answer, err := do(t.Context(), server, http.MethodPost, body)
	if status != http.StatusRequestEntityTooLarge && err == nil {
		t.Errorf("the answer is %d %.100s", status, answer)
	}
}

// TestManyNetworks: a large cloud is listed fast enough to test with.
func TestManyNetworks(t *testing.T) {
	server := embedded.New(embedded.Options{})
	for range 100 {
		bulk := `{"networks": [` + strings.Repeat(`{"name": "x"},`, 99) + `{"name": "x"}]}`
		server.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v2.0/networks", strings.NewReader(bulk)))
	}
	start := time.Now()
	if n := count(t, server); n != 10_000 {
		t.Errorf("there are %d networks, want 10,000", n)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("listing them took %v", took)
	}
}

func BenchmarkList(b *testing.B) {
	server := embedded.New(embedded.Options{})
	for range 10_000 {
		server.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v2.0/networks", strings.NewReader(aNetwork)))
	}
	for _, query := range []string{"", "?description=x", "?limit=1000"} {
		b.Run(query, func(b *testing.B) {
			for b.Loop() {
				server.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v2.0/networks"+query, nil))
			}
		})
	}
}

// FuzzRequests: whatever it is asked, it answers, and in JSON.
func FuzzRequests(f *testing.F) {
	f.Add("POST", "networks", `{"network": {"name": "a", "mtu": 1400}}`)
	f.Add("POST", "subnets", `{"subnet": {"network_id": "ID", "cidr": "10.0.0.0/24", "ip_version": 4}}`)
	f.Add("POST", "subnets", `{"subnet": {"network_id": "ID", "cidr": "fd00::/64", "ip_version": "6", "gateway_ip": "fd00::5", "ipv6_ra_mode": "slaac"}}`)
	f.Add("POST", "subnets", `{"subnets": [{"network_id": "ID", "cidr": "10.0.0.0/31", "ip_version": 4, "enable_dhcp": false, "gateway_ip": null}]}`)
	f.Add("POST", "subnets", `{"subnet": {"network_id": "ID", "cidr": "10.0.0.0/24", "ip_version": 4, "dns_nameservers": ["10.0.0.1"], "host_routes": [{"destination": "10.0.0.0/8", "nexthop": "10.0.0.1"}]}}`)
	f.Add("POST", "subnets", `{"subnet": {"network_id": "ID", "cidr": "::/0", "ip_version": 6, "allocation_pools": [{"start": "::1", "end": "10.0.0.1"}]}}`)
	f.Add("POST", "ports", `{"port": {"network_id": "ID", "fixed_ips": [{"ip_address": "10.0.0.5"}, {"subnet_id": "ID"}], "mac_address": "x"}}`)
	f.Add("PUT", "networks/ID", `{"network": {"name": null}}`)
	f.Add("PUT", "subnets/ID", `{"subnet": {"gateway_ip": "255.255.255.255", "allocation_pools": []}}`)
	f.Add("PUT", "networks/ID/tags", `{"tags": ["a", "b"]}`)
	f.Add("PUT", "networks/ID/tags/x", ``)
	f.Add("PUT", "quotas/x", `{"quota": {"network": -1}}`)
	f.Add("GET", "networks?name=a&tags=b&limit=1&marker=ID&page_reverse=True&fields=id&sort_key=mtu&sort_dir=asc", ``)
	f.Add("GET", "subnets?cidr=x&ip_version=4", ``)
	f.Add("GET", "ports?fixed_ips=ip_address%3D10.0.0.5", ``)
	f.Add("DELETE", "networks/ID", ``)
	f.Add("POST", "subnetpools", `{"subnetpool": {"name": "x", "prefixes": ["10.0.0.0/8", "0.0.0.0/0"], "min_prefixlen": 0, "default_quota": 5}}`)
	f.Add("POST", "subnetpools", `{"subnetpool": {"name": "x", "prefixes": ["::/0", "255.255.255.255/32"], "default_prefixlen": "x"}}`)
	f.Add("PUT", "subnetpools/POOL", `{"subnetpool": {"prefixes": ["0.0.0.0/0"], "max_prefixlen": 30}}`)
	f.Add("POST", "subnets", `{"subnet": {"network_id": "ID", "ip_version": 4, "subnetpool_id": "POOL", "prefixlen": 32}}`)
	f.Add("POST", "subnets", `{"subnet": {"network_id": "ID", "ip_version": 4, "subnetpool_id": "POOL", "cidr": "255.255.255.255/32", "gateway_ip": null}}`)
	f.Add("POST", "subnets", `{"subnet": {"network_id": "ID", "ip_version": 4, "subnetpool_id": "POOL", "gateway_ip": "fd00::1"}}`)
	f.Add("PUT", "networks/ID/tags/..%2e%ff", ``)
	f.Add("GET", "extensions/x", ``)
	f.Fuzz(func(t *testing.T, method, path, body string) {
		server := embedded.New(embedded.Options{})
		var made struct{ Network struct{ ID string } }
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/v2.0/networks", strings.NewReader(aNetwork)))
		if err := json.Unmarshal(recorder.Body.Bytes(), &made); err != nil {
			t.Fatal(err)
		}
		var pool struct{ Subnetpool struct{ ID string } }
		recorder = httptest.NewRecorder()
		server.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/v2.0/subnetpools", strings.NewReader(`{"subnetpool": {"name": "x", "prefixes": ["128.0.0.0/1"]}}`)))
		if err := json.Unmarshal(recorder.Body.Bytes(), &pool); err != nil {
			t.Fatal(err)
		}
		subnet := `{"subnet": {"network_id": "` + made.Network.ID + `", "cidr": "10.1.0.0/16", "ip_version": 4}}`
		server.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v2.0/subnets", strings.NewReader(subnet)))
		withID := strings.NewReplacer("ID", made.Network.ID, "POOL", pool.Subnetpool.ID).Replace
		for range 2 {
			request, err := http.NewRequest(method, "http://127.0.0.1/v2.0/"+withID(path), strings.NewReader(withID(body)))
			if err != nil {
				t.Skip("not a request")
			}
			recorder := httptest.NewRecorder()
			server.ServeHTTP(recorder, request)
			// Some refusals look like failures. A panic would end the test.
			refused := recorder.Code == http.StatusInternalServerError
			if recorder.Code < 200 || recorder.Code >= 500 && !refused || recorder.Header().Get("Content-Type") == "application/json" && !json.Valid(recorder.Body.Bytes()) {
				t.Errorf("%s %s %s: %d %s", method, path, body, recorder.Code, recorder.Body)
			}
		}
	})
}

package openstack

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

func TestOperation(t *testing.T) {
	for want, requests := range map[string][]string{
		"list networks":           {"GET /v2.0/networks?limit=1000", "GET /networking/v2.0/networks"},
		"get network":             {"GET /v2.0/networks/5f"},
		"create network":          {"POST /v2.0/networks"},
		"update network":          {"PUT /v2.0/networks/5f"},
		"delete network":          {"DELETE /v2.0/networks/5f"},
		"add network tag":         {"PUT /v2.0/networks/5f/tags/blue"},
		"remove network tag":      {"DELETE /v2.0/networks/5f/tags/networks"},
		"list subnets":            {"GET /v2.0/subnets?network_id=5f"},
		"update subnet":           {"PUT /v2.0/subnets/5f"},
		"list subnetpools":        {"GET /v2.0/subnetpools?name=pool"},
		"list ports":              {"GET /v2.0/ports?fields=id"},
		"list extensions":         {"GET /v2.0/extensions"},
		"list routers":            {"GET /v2.0/routers?name=edge"},
		"add router interface":    {"PUT /v2.0/routers/5f/add_router_interface"},
		"remove router interface": {"PUT /v2.0/routers/5f/remove_router_interface"},
		"login":                   {"POST /v3/auth/tokens", "POST /identity/v3/auth/tokens"},
		"other": {
			"GET /v2.0/floatingips", "PUT /v2.0/routers/5f/other", "GET /v2.0/routers/5f/add_router_interface", "PATCH /v2.0/networks/5f", "GET /", "PUT /v2.0/networks/5f/tags", "GET /v3/auth/tokens",
			"POST /v2.0/networks/5f/tags/blue", "GET /v2.0/networks/5f/tags/blue/more", "PUT /v2.0/networks/5f/other/blue",
		},
	} {
		for _, request := range requests {
			var method, target string
			for i := range request {
				if request[i] == ' ' {
					method, target = request[:i], request[i+1:]
				}
			}
			if got := Operation(httptest.NewRequest(method, target, http.NoBody)); got != want {
				t.Errorf("Operation(%s) = %q, want %q", request, got, want)
			}
		}
	}
}

// TestFenced: a former leader must send no write. The reconciler sees that a request was
// not sent, through all layers of the client.
func TestFenced(t *testing.T) {
	for _, request := range []struct {
		method, path string
		refused      bool
	}{
		{http.MethodGet, "/v2.0/networks", false},
		{http.MethodGet, "/v3", false},
		{http.MethodPost, "/v3/auth/tokens", false},
		{http.MethodPost, "/v2.0/networks", true},
		{http.MethodPut, "/v2.0/networks/5f", true},
		{http.MethodDelete, "/v2.0/subnets/5f", true},
		{http.MethodPut, "/v2.0/routers/5f/add_router_interface", true},
		{http.MethodPut, "/v2.0/networks/5f/tags/blue", true},
		{http.MethodPatch, "/v2.0/other", true},
	} {
		if err := Fenced(httptest.NewRequest(request.method, request.path, http.NoBody)); (err != nil) != request.refused {
			t.Errorf("Fenced(%s %s) = %v", request.method, request.path, err)
		}
	}

	client, err := New("http://127.0.0.1:1", WithTransport(func(http.RoundTripper) http.RoundTripper { return fenced{} }))
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CreateNetwork(t.Context(), neutron.NewNetwork{Name: "a"})
	var failure *neutron.Error
	if !errors.As(err, &failure) || failure.Type != neutron.NotSent || !errors.Is(err, neutron.ErrUnavailable) || failure.Op != "create network" {
		t.Errorf("CreateNetwork() = %v", err)
	}
}

// fenced is a transport behind a closed fence.
type fenced struct{}

func (fenced) RoundTrip(request *http.Request) (*http.Response, error) { return nil, Fenced(request) }

package openstack

import (
	"net/http"
	"net/http/httptest"
	"testing"
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

package embedded

import (
	"net/http"
	"slices"
)

// extensions are the parts of the API that a Server has by default, as a real Neutron does.
var extensions = []string{
	"external-net", "filter-validation", "net-mtu", "net-mtu-writable", "pagination",
	"port-security", "project-id", "provider",
	"quotas", "revision-if-match", "router", "standard-attr-description", "standard-attr-revisions",
	"standard-attr-tag", "standard-attr-timestamp", "subnet_allocation",
}

// dnsIntegration is one that a real Neutron lacks by default.
const dnsIntegration = "dns-integration"

// has reports whether the Server has an extension; the empty alias stands for the
// core of the API.
func (s *Server) has(alias string) bool { return alias == "" || slices.Contains(s.extensions, alias) }

func (s *Server) handleExtensions() {
	s.handle("GET /v2.0/extensions", http.StatusOK, func(*http.Request) (object, *apiError) {
		all := []object{}
		for _, alias := range s.extensions {
			all = append(all, object{"alias": alias, "name": alias, "links": []any{}})
		}
		return object{"extensions": all}, nil
	})
}

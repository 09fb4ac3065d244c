package embedded

import (
	"fmt"
	"net/http"
	"slices"
)

// extensions are the parts of the API that not every Neutron has.
var extensions = []string{
	"dns-integration", "external-net", "filter-validation", "net-mtu", "net-mtu-writable", "pagination",
	"port-security", "project-id", "provider",
	"quotas", "revision-if-match", "router", "standard-attr-description", "standard-attr-revisions",
	"standard-attr-tag", "standard-attr-timestamp", "subnet_allocation",
}

// dnsIntegration is off by default, as in a real Neutron.
const dnsIntegration = "dns-integration"

// optional maps the extensions that Options can remove to those that need them.
var optional = map[string][]string{
	"net-mtu": {"net-mtu-writable"}, "net-mtu-writable": nil, "port-security": nil,
	"router": nil, "standard-attr-tag": nil, "subnet_allocation": nil,
}

// chooseExtensions returns the extensions that Options select. It panics on an
// unknown alias: a test without the extension would prove nothing.
func chooseExtensions(options Options) []string {
	missing := []string{dnsIntegration}
	for _, alias := range options.With {
		if alias != dnsIntegration {
			panic(fmt.Sprintf("embedded: the extension %q cannot be added", alias))
		}
		missing = nil
	}
	for _, alias := range options.Without {
		dependent, ok := optional[alias]
		if !ok {
			panic(fmt.Sprintf("embedded: the extension %q cannot be removed", alias))
		}
		missing = append(append(missing, alias), dependent...)
	}
	return slices.DeleteFunc(slices.Clone(extensions), func(alias string) bool { return slices.Contains(missing, alias) })
}

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

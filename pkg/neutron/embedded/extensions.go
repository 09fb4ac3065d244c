package embedded

import (
	"fmt"
	"io"
	"net/http"
	"slices"
)

// extension is a part of the API that some Neutrons have and others have not.
type extension struct{ alias, name, description, updated string }

func (e extension) object() object {
	return object{"alias": e.alias, "name": e.name, "description": e.description, "updated": e.updated, "links": []any{}}
}

// extensions are those of a real Neutron that this one can have, too, with what
// the real one says of them.
var extensions = []extension{
	{"binding", "Port Binding", "Expose port bindings of a virtual port to external application", "2014-02-03T10:00:00-00:00"},
	{"default-subnetpools", "Default Subnetpools", "Provides ability to mark and use a subnetpool as the default.", "2016-02-18T18:00:00-00:00"},
	{"dns-integration", "DNS Integration", "Provides integration with DNS.", "2015-08-15T18:00:00-00:00"},
	{"empty-string-filtering", "Empty String Filtering Extension", "Allow filtering by attributes with empty string value", "2018-05-01T10:00:00-00:00"},
	{"external-net", "Neutron external network", "Adds external network attribute to network resource.", "2013-01-14T10:00:00-00:00"},
	{"filter-validation", "Filter parameters validation", "Provides validation on filter parameters.", "2018-07-04T10:00:00-00:00"},
	{"net-mtu", "Network MTU", "Provides MTU attribute for a network resource.", "2015-03-25T10:00:00-00:00"},
	{"net-mtu-writable", "Network MTU (writable)", "Provides a writable MTU attribute for a network resource.", "2017-07-12T00:00:00-00:00"},
	{"network_availability_zone", "Network Availability Zone", "Availability zone support for network.", "2015-01-01T10:00:00-00:00"},
	{"pagination", "Pagination support", "Extension that indicates that pagination is enabled.", "2016-06-12T00:00:00-00:00"},
	{"port-security", "Port Security", "Provides port security", "2012-07-23T10:00:00-00:00"},
	{"project-id", "project_id field enabled", "Extension that indicates that project_id field is enabled.", "2016-09-09T09:09:09-09:09"},
	{"provider", "Provider Network", "Expose mapping of virtual networks to physical networks", "2012-09-07T10:00:00-00:00"},
	{"quotas", "Quota management support", "Expose functions for quotas management per project", "2012-07-29T10:00:00-00:00"},
	{"revision-if-match", "If-Match constraints based on revision_number", "Extension indicating that If-Match based on revision_number is supported.", "2016-12-11T00:00:00-00:00"},
	{"sorting", "Sorting support", "Extension that indicates that sorting is enabled.", "2016-06-12T00:00:00-00:00"},
	{"standard-attr-description", "standard-attr-description", "Extension to add descriptions to standard attributes", "2016-02-10T10:00:00-00:00"},
	{"standard-attr-revisions", "Resource revision numbers", "This extension will display the revision number of neutron resources.", "2016-04-11T10:00:00-00:00"},
	{"standard-attr-tag", "Tag support for resources with standard attribute: port, subnet, subnetpool, network, security_group, router, floatingip, policy, trunk, network_segment_range", "Enables to set tag on resources with standard attribute.", "2017-01-01T00:00:00-00:00"},
	{"standard-attr-timestamp", "Resource timestamps", "Adds created_at and updated_at fields to all Neutron resources that have Neutron standard attributes.", "2016-09-12T10:00:00-00:00"},
	{"subnet-service-types", "Subnet service types", "Provides ability to set the subnet service_types field", "2016-03-15T18:00:00-00:00"},
	{"subnet_allocation", "Subnet Allocation", "Enables allocation of subnets from a subnet pool", "2015-03-30T10:00:00-00:00"},
}

// dnsIntegration is off unless Options ask for it, as in a real Neutron.
const dnsIntegration = "dns-integration"

// canBeMissing are the extensions that Options can switch off, each with those
// that are nothing without it.
var canBeMissing = map[string][]string{
	"net-mtu":             {"net-mtu-writable"},
	"net-mtu-writable":    nil,
	"port-security":       nil,
	"standard-attr-tag":   nil,
	"subnet_allocation":   {"default-subnetpools"},
	"default-subnetpools": nil,
	dnsIntegration:        nil,
}

// chooseExtensions returns the extensions that Options ask for. It panics where
// they name one that cannot be chosen: a test without it would prove nothing.
func chooseExtensions(options Options) []extension {
	missing := map[string]bool{dnsIntegration: true}
	for _, alias := range options.With {
		if alias != dnsIntegration {
			panic(fmt.Sprintf("embedded: %q cannot be switched on: it is on, or is not known", alias))
		}
		delete(missing, alias)
	}
	for _, alias := range options.Without {
		needed, ok := canBeMissing[alias]
		if !ok {
			panic(fmt.Sprintf("embedded: %q cannot be switched off", alias))
		}
		missing[alias] = true
		for _, alias := range needed {
			missing[alias] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(extensions), func(e extension) bool { return missing[e.alias] })
}

// has reports whether the Server has an extension. What belongs to none is always
// there.
func (s *Server) has(alias string) bool {
	return alias == "" || slices.ContainsFunc(s.extensions, func(e extension) bool { return e.alias == alias })
}

// handleExtensions adds the paths that say which extensions there are.
func (s *Server) handleExtensions() {
	s.handle("GET /v2.0/extensions", http.StatusOK, func(*http.Request) (object, *apiError) {
		all := []object{}
		for _, e := range s.extensions {
			all = append(all, e.object())
		}
		return object{"extensions": all}, nil
	})
	s.mux.HandleFunc("POST /v2.0/extensions", func(w http.ResponseWriter, _ *http.Request) {
		writeNotFound(w, "Resource not found.")
	})
	s.mux.HandleFunc("GET /v2.0/extensions/{alias}", func(w http.ResponseWriter, r *http.Request) {
		alias := r.PathValue("alias")
		i := slices.IndexFunc(s.extensions, func(e extension) bool { return e.alias == alias })
		if i < 0 {
			writeNotFound(w, "Extension with alias "+alias+" does not exist")
			return
		}
		writeJSON(w, http.StatusOK, object{"extension": s.extensions[i].object()})
	})
}

// writeNotFound answers as the parts of Neutron do that have no JSON for errors.
func writeNotFound(w http.ResponseWriter, detail string) {
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, "404 Not Found\n\nThe resource could not be found.\n\n "+detail+"  ") //nolint:gosec // it is plain text, which no browser runs
}

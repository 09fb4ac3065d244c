package embedded

import (
	"io"
	"net/http"
)

// extensions are those of a real Neutron that this one has, too.
var extensions = []string{
	"empty-string-filtering", "filter-validation", "net-mtu", "net-mtu-writable", "pagination", "port-security",
	"project-id", "provider", "external-net", "quotas", "revision-if-match", "sorting", "standard-attr-description",
	"standard-attr-revisions", "standard-attr-tag", "standard-attr-timestamp", "binding", "network_availability_zone",
}

// handleVersions adds the paths that say what there is, and those that say that
// there is nothing.
func (s *Server) handleVersions() {
	s.handle("GET /{$}", http.StatusOK, func(r *http.Request) (object, *apiError) {
		return object{"versions": []object{{
			"id": "v2.0", "status": "CURRENT", "links": []object{{"rel": "self", "href": "http://" + r.Host + "/v2.0/"}},
		}}}, nil
	})
	s.handle("GET /v2.0/{$}", http.StatusOK, func(r *http.Request) (object, *apiError) {
		resources := []object{}
		for _, c := range s.collections() {
			resources = append(resources, object{
				"name": c.name, "collection": c.plural,
				"links": []object{{"rel": "self", "href": "http://" + r.Host + "/v2.0/" + c.plural}},
			})
		}
		return object{"resources": resources}, nil
	})
	s.handle("GET /v2.0/extensions", http.StatusOK, func(*http.Request) (object, *apiError) {
		all := []object{}
		for _, alias := range extensions {
			all = append(all, object{"alias": alias, "name": alias, "description": "", "links": []any{}})
		}
		return object{"extensions": all}, nil
	})
	nothing := func(*http.Request) (object, *apiError) { return nil, noSuchPath }
	s.handle("/v2.0", http.StatusOK, nothing)
	s.handle("/v2.0/", http.StatusOK, nothing)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "404 Not Found\n\nThe resource could not be found.\n\n   ")
	})
}

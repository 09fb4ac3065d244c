package embedded

import "net/http"

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
	nothing := func(*http.Request) (object, *apiError) { return nil, noSuchPath }
	s.handle("/v2.0", http.StatusOK, nothing)
	s.handle("/v2.0/", http.StatusOK, nothing)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { writeNotFound(w, "") })
}

package embedded

import "net/http"

// unlimited is the quota of any number of objects, and the default.
const unlimited = -1

// handleQuotas adds the path of the quotas. There is one project, with any name.
func (s *Server) handleQuotas() {
	const path = " /v2.0/quotas/{project}"
	s.handle(http.MethodPut+path, http.StatusOK, s.setQuotas)
	s.handle(http.MethodGet+path+"/details", http.StatusOK, func(*http.Request) (object, *apiError) {
		quotas := object{}
		for _, c := range s.collections() {
			quotas[c.name] = object{"limit": c.quota, "used": len(c.objects), "reserved": 0}
		}
		return object{"quota": quotas}, nil
	})
	s.handle(http.MethodDelete+path, http.StatusNoContent, func(*http.Request) (object, *apiError) {
		for _, c := range s.collections() {
			c.quota = unlimited
		}
		return nil, nil
	})
}

func (s *Server) setQuotas(r *http.Request) (object, *apiError) {
	body, failure := readObject(r)
	if failure != nil {
		return nil, failure
	}
	given, ok := body["quota"].(object)
	if !ok {
		return nil, badRequest("Unable to find 'quota' in request body")
	}
	quotas := object{}
	for _, c := range s.collections() {
		if value, set := given[c.name]; set {
			n, failure := number(c.name, value)
			if failure != nil {
				return nil, failure
			}
			c.quota = max(n.(int), unlimited)
			delete(given, c.name)
		}
		quotas[c.name] = c.quota
	}
	for name := range given {
		return nil, badRequest("Unrecognized attribute(s) '%s'", name)
	}
	return object{"quota": quotas}, nil
}

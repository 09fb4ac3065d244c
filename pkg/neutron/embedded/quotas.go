package embedded

import "net/http"

// unlimited is the quota of any number of objects, and the default.
const unlimited = -1

// handleQuotas adds the paths of the quotas. There is one project, with any name.
func (s *Server) handleQuotas() {
	const path = " /v2.0/quotas/{project}"
	s.handle(http.MethodGet+path, http.StatusOK, func(*http.Request) (object, *apiError) {
		return object{"quota": s.quotas()}, nil
	})
	s.handle(http.MethodPut+path, http.StatusOK, func(r *http.Request) (object, *apiError) {
		failure := s.setQuotas(r)
		return object{"quota": s.quotas()}, failure
	})
	s.handle(http.MethodDelete+path, http.StatusNoContent, func(*http.Request) (object, *apiError) {
		for _, c := range s.collections() {
			c.quota = unlimited
		}
		return nil, nil
	})
}

func (s *Server) quotas() object {
	quotas := object{}
	for _, c := range s.collections() {
		quotas[c.name] = c.quota
	}
	return quotas
}

func (s *Server) setQuotas(r *http.Request) *apiError {
	body, failure := readObject(r)
	if failure != nil {
		return failure
	}
	given, ok := body["quota"].(object)
	if !ok {
		return badRequest("Unable to find 'quota' in request body")
	}
	for name, value := range given {
		n, failure := number(name, value)
		_, known := s.quotas()[name]
		switch {
		case !known:
			return badRequest("Unrecognized attribute(s) '%s'", name)
		case failure != nil:
			return failure
		case n.(int) < unlimited:
			return wrong(name, "'%d' is too small - must be at least '-1'.", n)
		}
		given[name] = n
	}
	for _, c := range s.collections() {
		if n, ok := given[c.name].(int); ok {
			c.quota = n
		}
	}
	return nil
}

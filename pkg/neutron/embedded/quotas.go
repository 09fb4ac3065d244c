package embedded

import "net/http"

// unlimited is the quota of any number.
const unlimited = -1

// quotaOf returns the quota for a number of the Options.
func quotaOf(option int) int {
	if option <= 0 {
		return unlimited
	}
	return option
}

// handleQuotas adds the paths of the quotas. There is one project; requests can
// call it what they like.
func (s *Server) handleQuotas() {
	atStart := s.quotas()
	s.handle("GET /v2.0/quotas/{project}", http.StatusOK, withoutRevision(func(*http.Request) (object, *apiError) {
		return object{"quota": s.quotas()}, nil
	}))
	s.handle("PUT /v2.0/quotas/{project}", http.StatusOK, func(r *http.Request) (object, *apiError) {
		failure := s.setQuotas(r)
		return object{"quota": s.quotas()}, failure
	})
	s.handle("DELETE /v2.0/quotas/{project}", http.StatusNoContent, func(*http.Request) (object, *apiError) {
		for _, c := range s.collections() {
			c.quota = atStart[c.name].(int)
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
	wanted := map[string]int{}
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
		wanted[name] = n.(int)
	}
	for _, c := range s.collections() {
		if n, ok := wanted[c.name]; ok {
			c.quota = n
		}
	}
	return nil
}

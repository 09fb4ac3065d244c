package embedded

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"time"
)

// Fault is what goes wrong with requests. The fields that choose requests are
// those above the empty line, the others say what happens to them.
type Fault struct {
	Method string // such as POST; empty for all
	Path   string // a regular expression for the path; empty for all
	Times  int    // how many requests it happens to; 0 for all until it is removed

	// Delay is how long a request waits before anything else happens to it. It
	// ends early when the client gives up; the request is then not carried out.
	Delay time.Duration
	// Status, Header and Body are the answer, in place of carrying the request
	// out. Without a Body it is what a broken proxy would say, in HTML.
	Status int
	Header http.Header
	Body   string
	// DropRequest cuts the connection before the request is carried out. (A
	// client may send a GET again by itself then; Go's does, where the
	// connection was not a new one.)
	DropRequest bool
	// DropAnswer carries the request out and cuts the connection then: to the
	// client it looks the same as DropRequest.
	DropAnswer bool
	// Truncate carries the request out and sends half of the answer.
	Truncate bool

	path *regexp.Regexp
}

// Inject makes a fault happen from now on, and returns what removes it. Of
// several faults that fit a request, the first one happens. It panics where
// Path is no regular expression.
func (s *Server) Inject(fault Fault) (remove func()) {
	fault.path = regexp.MustCompile(fault.Path)
	s.mu.Lock()
	defer s.mu.Unlock()
	injected := &fault
	s.faults = append(s.faults, injected)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = slices.DeleteFunc(s.faults, func(f *Fault) bool { return f == injected })
	}
}

// nextFault returns the fault that happens to a request; the zero Fault where
// there is none.
func (s *Server) nextFault(r *http.Request) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.faults, func(f *Fault) bool {
		return (f.Method == "" || f.Method == r.Method) && f.path.MatchString(r.URL.Path)
	})
	if i < 0 {
		return Fault{}
	}
	fault := *s.faults[i]
	switch fault.Times {
	case 0:
	case 1:
		s.faults = slices.Delete(s.faults, i, i+1)
	default:
		s.faults[i].Times--
	}
	return fault
}

// wait waits for the delay. It returns false where the client did not.
func (f Fault) wait(r *http.Request) bool {
	if f.Delay == 0 {
		return true
	}
	timer := time.NewTimer(f.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// answer is what a request is answered with in place of being carried out.
func (f Fault) answer(w http.ResponseWriter) {
	body, contentType := f.Body, "application/json"
	if body == "" {
		text := http.StatusText(f.Status)
		contentType = "text/html; charset=UTF-8"
		body = "<html><head><title>" + text + "</title></head><body><h1>" + text + "</h1></body></html>"
	}
	w.Header().Set("Content-Type", contentType)
	for key, values := range f.Header {
		w.Header()[http.CanonicalHeaderKey(key)] = values
	}
	w.WriteHeader(f.Status)
	_, _ = io.WriteString(w, body)
}

package faults

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"time"
)

// Fault is a failure of requests. Method, Path and Times select the requests; the
// other fields take effect in their order.
type Fault struct {
	Method string // such as POST; defaults to all
	Path   string // a regular expression; defaults to all
	Times  int    // the number of requests; defaults to all

	// Delay is the time until a request arrives. If the client gives up before,
	// Neutron does not apply the request.
	Delay time.Duration
	// DropRequest closes the connection before Neutron applies the request.
	// (Go's client then repeats a GET, if the connection was not a new one.)
	DropRequest bool
	// Work is the time that Neutron needs for a request before it applies it.
	// As with a real Neutron, it does not matter if the client gives up.
	Work time.Duration
	// Status, Header and Body are the response; Neutron does not get the request.
	// Body defaults to the HTML of a broken proxy.
	Status int
	Header http.Header
	Body   string
	// DropAnswer closes the connection after Neutron has applied the request.
	// The client cannot tell it from DropRequest.
	DropAnswer bool
	// Truncate sends half of the response of Neutron.
	Truncate bool

	path *regexp.Regexp
}

// pause reports whether the time passed before the context ended.
func pause(ctx context.Context, duration time.Duration) bool {
	if duration == 0 {
		return true
	}
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// respond sends the response of the fault.
func (f Fault) respond(w http.ResponseWriter) {
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

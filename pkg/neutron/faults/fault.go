package faults

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"time"
)

// Fault is what goes wrong with requests. The fields that choose requests are
// those above the empty line, the others say what happens to them, in the order
// in which it happens.
type Fault struct {
	Method string // such as POST; empty for all
	Path   string // a regular expression for the path; empty for all
	Times  int    // how many requests it happens to; 0 for all until it is removed

	// Delay is how long a request is on its way. It ends early when the client
	// gives up; the request is then not carried out.
	Delay time.Duration
	// DropRequest cuts the connection before the request is carried out. (A
	// client may send a GET again by itself then; Go's does, where the
	// connection was not a new one.)
	DropRequest bool
	// Work is how long Neutron is at a request before it is carried out. Unlike
	// Delay it does not end when the client gives up or dies: like a real
	// Neutron, this one finishes what it has begun.
	Work time.Duration
	// Status, Header and Body are the answer, in place of carrying the request
	// out. Without a Body it is what a broken proxy would say, in HTML.
	Status int
	Header http.Header
	Body   string
	// DropAnswer carries the request out and cuts the connection then: to the
	// client it looks the same as DropRequest.
	DropAnswer bool
	// Truncate carries the request out and sends half of the answer.
	Truncate bool

	path *regexp.Regexp
}

// fits reports whether the fault happens to a request.
func (f *Fault) fits(r *http.Request) bool {
	return (f.Method == "" || f.Method == r.Method) && f.path.MatchString(r.URL.Path)
}

// onTheWay waits for the delay, and returns whether the request arrives.
func (f Fault) onTheWay(ctx context.Context) bool {
	return pause(ctx, f.Delay) && !f.DropRequest
}

// work waits for as long as Neutron works, whatever the client does.
func (f Fault) work(ctx context.Context) {
	pause(context.WithoutCancel(ctx), f.Work)
}

// pause returns false where the context ended first.
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

// Package faults makes a Neutron fail in the ways in which real ones fail: lost
// requests and responses, errors, delays. A Front is an http.Handler between the
// controller and a Neutron: the embedded one, or any other through Proxy. It passes
// requests on, records them, and applies the Faults that a test has injected.
package faults

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
)

const (
	// maxRequests limits the number of recorded requests: a server that runs for
	// months must not grow.
	maxRequests = 20_000
	// maxBody limits the size of the body of a request, in bytes.
	maxBody = 1 << 20
)

// Front is an http.Handler in front of another one.
type Front struct {
	next http.Handler

	mu       sync.Mutex
	faults   []*Fault
	requests []Request
	underWay []*Request
}

// Request is a request that is under way, or has a response or was dropped.
type Request struct {
	Method, Path, Query, UserAgent string
	// Status is the status of the response; 0 for none.
	Status int
}

// New returns a Front that lets every request pass to the next handler.
func New(next http.Handler) *Front { return &Front{next: next} }

// Inject adds a fault, and returns a function that removes it. If several faults
// select a request, the first one takes effect. Inject panics if Path is no regular
// expression.
func (f *Front) Inject(fault Fault) (remove func()) {
	fault.path = regexp.MustCompile(fault.Path)
	f.mu.Lock()
	defer f.mu.Unlock()
	injected := &fault
	f.faults = append(f.faults, injected)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.faults = slices.DeleteFunc(f.faults, func(other *Fault) bool { return other == injected })
	}
}

// Requests returns the requests that are over, the oldest first. It keeps the
// latest 20,000 at most.
func (f *Front) Requests() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// ResetRequests clears the list of requests.
func (f *Front) ResetRequests() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = nil
}

// UnderWay returns the requests without a response yet.
func (f *Front) UnderWay() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Request
	for _, request := range f.underWay {
		all = append(all, *request)
	}
	return all
}

// ServeHTTP passes a request to the next handler, and applies the fault that
// selects it.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// net/http notices that a client gives up only after the body was read.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "The request is too large.", http.StatusRequestEntityTooLarge)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	request, fault := f.begin(r)
	a := &response{header: http.Header{}}
	defer f.end(request, a) // also after a panic
	if arrived := pause(r.Context(), fault.Delay); !arrived || fault.DropRequest {
		panic(http.ErrAbortHandler) // closes the connection
	}
	pause(context.WithoutCancel(r.Context()), fault.Work)
	if fault.Status != 0 {
		fault.respond(a)
	} else {
		f.next.ServeHTTP(a, r.WithContext(context.WithoutCancel(r.Context())))
		a.complete()
	}
	if fault.DropAnswer {
		a.status = 0
		panic(http.ErrAbortHandler)
	}
	f.end(request, a) // before the client has the response
	a.send(w, fault.Truncate)
}

// begin records a request as under way, and returns the fault that selects it, or
// the zero Fault.
func (f *Front) begin(r *http.Request) (*Request, Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	request := &Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, UserAgent: r.UserAgent()}
	f.underWay = append(f.underWay, request)
	i := slices.IndexFunc(f.faults, func(fault *Fault) bool {
		return (fault.Method == "" || fault.Method == r.Method) && fault.path.MatchString(r.URL.Path)
	})
	if i < 0 {
		return request, Fault{}
	}
	fault := *f.faults[i]
	switch fault.Times {
	case 0:
	case 1:
		f.faults = slices.Delete(f.faults, i, i+1)
	default:
		f.faults[i].Times--
	}
	return request, fault
}

// end records that a request is over. A second call has no effect.
func (f *Front) end(request *Request, a *response) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.underWay, request)
	if i < 0 {
		return
	}
	f.underWay = slices.Delete(f.underWay, i, i+1)
	if len(f.requests) >= maxRequests {
		f.requests = slices.Delete(f.requests, 0, maxRequests/2)
	}
	request.Status = a.status
	f.requests = append(f.requests, *request)
}

// response is an http.ResponseWriter that holds a response until it is complete: a
// slow reader must not delay the next handler, which serves one request at a time.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *response) Header() http.Header { return a.header }

func (a *response) WriteHeader(status int) {
	if status >= http.StatusOK { // lower ones are informational
		a.status = status
	}
}

func (a *response) Write(p []byte) (int, error) {
	a.complete()
	return a.body.Write(p)
}

// complete sets the default status.
func (a *response) complete() {
	if a.status == 0 {
		a.status = http.StatusOK
	}
}

// send sends the response, or half of it, and then closes the connection.
func (a *response) send(w http.ResponseWriter, truncate bool) {
	maps.Copy(w.Header(), a.header)
	if a.status != http.StatusNoContent {
		w.Header().Set("Content-Length", strconv.Itoa(a.body.Len()))
	}
	w.WriteHeader(a.status)
	body := a.body.Bytes()
	if truncate {
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body)
}

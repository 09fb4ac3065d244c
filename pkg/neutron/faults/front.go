// Package faults makes a Neutron fail in the ways that real ones do. A Front
// stands between the controller and a Neutron – the embedded one, or through
// Proxy any other – lets requests pass, keeps a list of them, and has those go
// wrong that it is asked to.
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
	// maxRequests is how many requests are remembered at most, the latest
	// ones: a server that runs for months must not grow.
	maxRequests = 20_000
	// maxBody is the size of a request's body at most, in bytes.
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

// Request is a request that was answered, or cut off, or is under way.
type Request struct {
	Method, Path, Query, UserAgent string
	// Status is the one of the answer; 0 where there was none.
	Status int
}

// New returns a Front that lets every request pass to the next handler.
func New(next http.Handler) *Front { return &Front{next: next} }

// Inject makes a fault happen from now on, and returns what removes it. Of
// several faults that fit a request, the first one happens. It panics where
// Path is no regular expression.
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

// Requests returns the requests so far, the oldest first, without those under
// way. There are no more than 20,000; older ones are forgotten.
func (f *Front) Requests() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// ResetRequests forgets the requests so far.
func (f *Front) ResetRequests() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = nil
}

// UnderWay returns the requests that have come and have no answer yet.
func (f *Front) UnderWay() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Request
	for _, request := range f.underWay {
		all = append(all, *request)
	}
	return all
}

// ServeHTTP has the next handler answer a request, unless a fault gets in its
// way.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The body is read first: only then can be seen that a client gives up.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), endOf(err)))
	request, fault := f.begin(r)
	a := &answer{header: http.Header{}}
	defer f.end(request, a) // whatever happens
	if !fault.onTheWay(r.Context()) {
		panic(http.ErrAbortHandler) // cuts the connection
	}
	fault.work(r.Context())
	if fault.Status != 0 {
		fault.answer(a)
	} else {
		f.next.ServeHTTP(a, r.WithContext(context.WithoutCancel(r.Context())))
		a.complete()
	}
	if fault.DropAnswer {
		a.status = 0
		panic(http.ErrAbortHandler)
	}
	f.end(request, a) // whoever has the answer finds its request among the requests
	a.send(w, fault.Truncate)
}

// begin notes a request as under way, and returns the fault that happens to it;
// the zero Fault where there is none.
func (f *Front) begin(r *http.Request) (*Request, Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	request := &Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, UserAgent: r.UserAgent()}
	f.underWay = append(f.underWay, request)
	i := slices.IndexFunc(f.faults, func(fault *Fault) bool { return fault.fits(r) })
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

// end notes that a request is over, if that is not noted yet.
func (f *Front) end(request *Request, a *answer) {
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

// endOf returns a reader that has nothing, and ends with the error, if any.
func endOf(err error) io.Reader {
	reader, writer := io.Pipe()
	_ = writer.CloseWithError(err) // never fails
	return reader
}

// answer holds an answer until it is complete: nobody who reads slowly keeps
// the others waiting. It is an http.ResponseWriter.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if status >= http.StatusOK { // what is below only comes on top of the answer
		a.status = status
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.complete()
	return a.body.Write(p)
}

// complete takes the status for OK where nobody has said which it is.
func (a *answer) complete() {
	if a.status == 0 {
		a.status = http.StatusOK
	}
}

// send sends the answer; where it is to be truncated, half of it, and cuts the
// connection.
func (a *answer) send(w http.ResponseWriter, truncate bool) {
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

package faults_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron/faults"
)

// neutron counts the requests that it applies.
type neutron struct{ applied atomic.Int32 }

func (n *neutron) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Context().Err() == nil {
		n.applied.Add(1)
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, "created by Neutron")
}

// exchange returns the response of a handler to a POST, as net/http would send it;
// aborted reports whether the handler closed the connection.
func exchange(ctx context.Context, handler http.Handler) (response *httptest.ResponseRecorder, aborted bool) {
	response = httptest.NewRecorder()
	defer func() {
		if err, _ := recover().(error); err != nil {
			if aborted = errors.Is(err, http.ErrAbortHandler); !aborted {
				panic(err)
			}
		}
	}()
	handler.ServeHTTP(response, httptest.NewRequestWithContext(ctx, http.MethodPost, "/v2.0/networks?x", strings.NewReader("a body")))
	return response, false
}

// TestFaults: each fault has its effect on the response, the list of requests, and
// Neutron.
func TestFaults(t *testing.T) {
	const created = "created by Neutron"
	for name, test := range map[string]struct {
		fault   faults.Fault
		status  int // in the list of requests; 0 for no response
		body    string
		aborted bool
		applied int
		took    time.Duration
	}{
		"none":                {faults.Fault{}, 201, created, false, 1, 0},
		"another method":      {faults.Fault{Method: http.MethodGet, Status: 500}, 201, created, false, 1, 0},
		"another path":        {faults.Fault{Path: "^/v2.0/subnets", Status: 500}, 201, created, false, 1, 0},
		"a status":            {faults.Fault{Method: http.MethodPost, Path: "^/v2.0/networks$", Status: 503}, 503, "<html><head><title>Service Unavailable</title></head><body><h1>Service Unavailable</h1></body></html>", false, 0, 0},
		"a body":              {faults.Fault{Status: 409, Body: "{}"}, 409, "{}", false, 0, 0},
		"a lost request":      {faults.Fault{DropRequest: true}, 0, "", true, 0, 0},
		"a lost response":     {faults.Fault{DropAnswer: true}, 0, "", true, 1, 0},
		"half a response":     {faults.Fault{Truncate: true}, 201, created[:len(created)/2], true, 1, 0},
		"half of a body":      {faults.Fault{Status: 200, Body: "0123456789", Truncate: true}, 200, "01234", true, 0, 0},
		"a delay":             {faults.Fault{Delay: time.Hour}, 201, created, false, 1, time.Hour},
		"a delay, and a loss": {faults.Fault{Delay: time.Hour, DropRequest: true}, 0, "", true, 0, time.Hour},
		"work":                {faults.Fault{Work: time.Hour}, 201, created, false, 1, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var neutron neutron
				front := faults.New(&neutron)
				front.Inject(test.fault)
				began := time.Now()
				response, aborted := exchange(t.Context(), front)
				if response.Body.String() != test.body || aborted != test.aborted || !aborted && response.Code != test.status {
					t.Errorf("the response is %d %q, aborted: %v", response.Code, response.Body, aborted)
				}
				if took := time.Since(began); int(neutron.applied.Load()) != test.applied || took != test.took {
					t.Errorf("applied %d times after %v", neutron.applied.Load(), took)
				}
				want := faults.Request{Method: http.MethodPost, Path: "/v2.0/networks", Query: "x", Status: test.status}
				if got := front.Requests(); len(got) != 1 || got[0] != want || len(front.UnderWay()) != 0 {
					t.Errorf("the requests are %+v and %+v, want %+v", got, front.UnderWay(), want)
				}
			})
		})
	}
}

// TestClientGivesUp: Neutron applies a request that it works on, even if the
// client has given up, but none that has not arrived.
func TestClientGivesUp(t *testing.T) {
	for name, test := range map[string]struct {
		fault    faults.Fault
		underWay int // when the client gives up
		applied  int
	}{
		"while Neutron works":       {faults.Fault{Work: time.Hour}, 1, 1},
		"while the request is sent": {faults.Fault{Delay: time.Hour}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var neutron neutron
				front := faults.New(&neutron)
				front.Inject(test.fault)
				ctx, giveUp := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					exchange(ctx, front)
				}()
				synctest.Wait()
				giveUp()
				synctest.Wait()
				if got := front.UnderWay(); len(got) != test.underWay || neutron.applied.Load() != 0 {
					t.Errorf("under way: %+v, applied %d times", got, neutron.applied.Load())
				}
				<-done
				if got := front.Requests(); len(got) != 1 || int(neutron.applied.Load()) != test.applied {
					t.Errorf("the requests are %+v, applied %d times", got, neutron.applied.Load())
				}
			})
		})
	}
}

func TestFaultTimes(t *testing.T) {
	front := faults.New(&neutron{})
	front.Inject(faults.Fault{Status: 503, Times: 2})
	remove := front.Inject(faults.Fault{Status: 500})
	for i, want := range []int{503, 503, 500, 500, 201, 201} {
		if i >= 4 {
			remove() // also a second time
		}
		if response, _ := exchange(t.Context(), front); response.Code != want {
			t.Errorf("request %d: %d, want %d", i, response.Code, want)
		}
	}
}

// TestAbort: a request that the next handler aborts is over, too.
func TestAbort(t *testing.T) {
	front := faults.New(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	if _, aborted := exchange(t.Context(), front); !aborted {
		t.Error("there was a response")
	}
	if got := front.Requests(); len(front.UnderWay()) != 0 || len(got) != 1 || got[0].Status != 0 {
		t.Errorf("under way %+v, over %+v", front.UnderWay(), got)
	}
}

func TestRequestsAreBounded(t *testing.T) {
	front := faults.New(&neutron{})
	large, response := strings.NewReader(strings.Repeat("x", 2<<20)), httptest.NewRecorder()
	front.ServeHTTP(response, httptest.NewRequest(http.MethodPost, "/", large))
	if response.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("the status of a large request is %d, want 413", response.Code)
	}
	for i := range 50_000 {
		front.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, fmt.Sprintf("/?%d", i), nil))
	}
	if got := front.Requests(); len(got) > 20_000 || got[len(got)-1].Query != "49999" {
		t.Errorf("%d requests are kept, the last one is %+v", len(got), got[len(got)-1])
	}
	front.ResetRequests()
	if got := front.Requests(); len(got) != 0 {
		t.Errorf("%d requests are left after ResetRequests", len(got))
	}
}

// TestProxy: through a Proxy, requests reach any server.
func TestProxy(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusConflict)
		_, _ = fmt.Fprintf(w, "%s %s for %s: %s", r.Method, r.URL, r.Host, body)
	}))
	defer target.Close()
	proxy, err := faults.Proxy(target.URL)
	if err != nil {
		t.Fatal(err)
	}
	response, _ := exchange(t.Context(), faults.New(proxy))
	if want := "POST /v2.0/networks?x for example.com: a body"; response.Code != http.StatusConflict || response.Body.String() != want {
		t.Errorf("the response is %d %s, want %s", response.Code, response.Body, want)
	}
	for _, endpoint := range []string{"", "neutron", "http://", "::"} {
		if _, err := faults.Proxy(endpoint); err == nil {
			t.Errorf("Proxy(%q) succeeds", endpoint)
		}
	}
}

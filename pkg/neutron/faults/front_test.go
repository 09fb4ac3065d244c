package faults_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron/faults"
)

// neutron counts the requests that it applies.
type neutron struct {
	front    *faults.Front
	applied  int
	underWay int // requests, meanwhile
}

func (n *neutron) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	n.applied++
	n.underWay = len(n.front.UnderWay())
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, "created by Neutron")
}

func start() *neutron {
	n := &neutron{}
	n.front = faults.New(n)
	return n
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

// TestFaults: each fault has its effect on the response, the list of requests, and Neutron. If
// the client gives up after two hours, Neutron applies a request that it works on, but none
// that has not arrived.
func TestFaults(t *testing.T) {
	const created = "201 created by Neutron"
	for name, test := range map[string]struct {
		fault   faults.Fault
		want    string // the response
		status  int    // in the list of requests; 0 for no response
		applied int
		took    time.Duration
	}{
		"none":                   {faults.Fault{}, created, 201, 1, 0},
		"another method":         {faults.Fault{Method: http.MethodGet, Status: 500}, created, 201, 1, 0},
		"another path":           {faults.Fault{Path: "^/v2.0/subnets", Status: 500}, created, 201, 1, 0},
		"a status":               {faults.Fault{Method: http.MethodPost, Path: "^/v2.0/networks$", Status: 503}, "503 <html><head><title>Service Unavailable</title></head><body><h1>Service Unavailable</h1></body></html>", 503, 0, 0},
		"a body":                 {faults.Fault{Status: 409, Body: "{}"}, "409 {}", 409, 0, 0},
		"a lost request":         {faults.Fault{DropRequest: true}, "aborted: ", 0, 0, 0},
		"a lost response":        {faults.Fault{DropAnswer: true}, "aborted: ", 0, 1, 0},
		"half a response":        {faults.Fault{Truncate: true}, "aborted: created b", 201, 1, 0},
		"half of a body":         {faults.Fault{Status: 200, Body: "0123456789", Truncate: true}, "aborted: 01234", 200, 0, 0},
		"a delay":                {faults.Fault{Delay: time.Hour}, created, 201, 1, time.Hour},
		"a delay, and a loss":    {faults.Fault{Delay: time.Hour, DropRequest: true}, "aborted: ", 0, 0, time.Hour},
		"work":                   {faults.Fault{Work: time.Hour}, created, 201, 1, time.Hour},
		"a delay that is longer": {faults.Fault{Delay: 9 * time.Hour}, "aborted: ", 0, 0, 2 * time.Hour},
		"work that is longer":    {faults.Fault{Work: 9 * time.Hour}, created, 201, 1, 9 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
				defer cancel()
				neutron, began := start(), time.Now()
				neutron.front.Inject(test.fault)
				response, aborted := exchange(ctx, neutron.front)
				got := fmt.Sprint(response.Code, " ", response.Body)
				if aborted {
					got = fmt.Sprint("aborted: ", response.Body)
				}
				if took := time.Since(began); got != test.want || took != test.took {
					t.Errorf("the response after %v is %q, want %q after %v", took, got, test.want, test.took)
				}
				if neutron.applied != test.applied || neutron.underWay != test.applied {
					t.Errorf("applied %d times, while %d were under way", neutron.applied, neutron.underWay)
				}
				want := faults.Request{Method: http.MethodPost, Path: "/v2.0/networks", Query: "x", Status: test.status}
				if got := neutron.front.Requests(); len(got) != 1 || got[0] != want || len(neutron.front.UnderWay()) != 0 {
					t.Errorf("the requests are %+v and %+v, want %+v", got, neutron.front.UnderWay(), want)
				}
			})
		})
	}
}

func TestFaultTimes(t *testing.T) {
	front := start().front
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
	front := start().front
	large, response := strings.NewReader(strings.Repeat("x", 2<<20)), httptest.NewRecorder()
	front.ServeHTTP(response, httptest.NewRequest(http.MethodPost, "/", large))
	if response.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("the status of a large request is %d, want 413", response.Code)
	}
	for i := range 25_000 {
		front.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, fmt.Sprintf("/?%d", i), nil))
	}
	if got := front.Requests(); len(got) > 20_000 || got[len(got)-1].Query != "24999" {
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

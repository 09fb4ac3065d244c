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
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron/faults"
)

// The faults one by one are tested in package embedded, with a Neutron.

// TestWork: what Neutron works at is carried out though the client has gone.
func TestWork(t *testing.T) {
	var carriedOut atomic.Int32
	front := faults.New(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Context().Err() == nil {
			carriedOut.Add(1)
		}
	}))
	front.Inject(faults.Fault{Work: 100 * time.Millisecond})
	server := httptest.NewServer(front)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()

	_, err := get(ctx, server.URL)

	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the client got %v, want its own deadline", err)
	}
	if len(front.UnderWay()) != 1 || carriedOut.Load() != 0 {
		t.Errorf("carried out %d times already, and under way are %+v", carriedOut.Load(), front.UnderWay())
	}
	server.Close() // waits
	if got := front.Requests(); carriedOut.Load() != 1 || len(got) != 1 || got[0].Status != http.StatusOK {
		t.Errorf("carried out %d times, and the requests are %+v", carriedOut.Load(), got)
	}
}

// TestCutOff: a request that makes the next handler give up is over, too.
func TestCutOff(t *testing.T) {
	front := faults.New(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	server := httptest.NewServer(front)
	defer server.Close()

	if _, err := get(t.Context(), server.URL); err == nil {
		t.Error("there was an answer")
	}

	if got := front.Requests(); len(front.UnderWay()) != 0 || len(got) == 0 || got[0].Status != 0 {
		t.Errorf("under way %+v, over %+v", front.UnderWay(), got)
	}
}

// TestProxy: through a Proxy, faults happen in front of any server.
func TestProxy(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusConflict)
		_, _ = fmt.Fprintf(w, "%s %s for %s: %s, %s", r.Method, r.URL, r.Host, body, r.Header.Get("If-Match"))
	}))
	defer target.Close()
	proxy, err := faults.Proxy(target.URL)
	if err != nil {
		t.Fatal(err)
	}
	front := faults.New(proxy)
	server := httptest.NewServer(front)
	defer server.Close()

	got, err := get(t.Context(), server.URL+"/v2.0/networks?limit=2")

	want := "409 GET /v2.0/networks?limit=2 for " + strings.TrimPrefix(server.URL, "http://") + ": a body, revision_number=1"
	if got != want || err != nil {
		t.Errorf("the answer is %q, %v; want %q", got, err, want)
	}
	front.Inject(faults.Fault{Status: http.StatusServiceUnavailable, Body: "{}"})
	if got, err := get(t.Context(), server.URL); got != "503 {}" || err != nil {
		t.Errorf("with a fault the answer is %q, %v", got, err)
	}
}

func TestProxyOfNothing(t *testing.T) {
	for _, endpoint := range []string{"", "neutron", "http://", "::"} {
		if _, err := faults.Proxy(endpoint); err == nil {
			t.Errorf("Proxy(%q) succeeds", endpoint)
		}
	}
}

// get makes a request over a connection of its own, and returns the answer.
func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, strings.NewReader("a body"))
	if err != nil {
		return "", err
	}
	request.Close = true
	request.Header.Set("If-Match", "revision_number=1")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return fmt.Sprintf("%d %s", response.StatusCode, body), err
}

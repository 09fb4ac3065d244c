package queue

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// slowServer takes a time for each request.
type slowServer struct {
	takes          time.Duration
	inFlight, most atomic.Int32
	mu             sync.Mutex
	paths          []string // of the requests, in their order
}

func (s *slowServer) RoundTrip(r *http.Request) (*http.Response, error) {
	inFlight := s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	s.mu.Lock()
	s.most.Store(max(s.most.Load(), inFlight))
	s.paths = append(s.paths, r.URL.Path)
	s.mu.Unlock()
	select {
	case <-time.After(s.takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// send sends a request, and returns how long that took.
func send(ctx context.Context, t *testing.T, transport http.RoundTripper, path string) (took time.Duration, err error) {
	t.Helper()
	began := time.Now()
	r, err := http.NewRequestWithContext(ctx, http.MethodPatch, "https://server.invalid"+path, http.NoBody)
	if err != nil {
		t.Error(err)
		return 0, err
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return time.Since(began), err
	}
	return time.Since(began), response.Body.Close()
}

var errNotSent = errors.New("not sent")

// newTestGate returns a Gate that only the path /login passes.
func newTestGate(places int) *Gate {
	return NewGate(GateOptions{
		Places: places, Passes: func(r *http.Request) bool { return r.URL.Path == "/login" },
		NotSent: func(*http.Request) error { return errNotSent },
	})
}

// TestGate: requests are bounded, urgent ones and namespaces take turns, one that is
// canceled takes no place, and some pass.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, server := newTestGate(2), &slowServer{takes: time.Second}
		transport := gate.Transport(server)
		var running sync.WaitGroup
		begin := func(ctx context.Context, path string, want error) {
			running.Go(func() {
				if _, err := send(ctx, t, transport, path); !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", path, err, want)
				}
			})
			synctest.Wait()
		}
		many, one := withTurn(t.Context(), "many", true), withTurn(t.Context(), "one", true)
		canceled, cancel := context.WithCancel(many)
		begin(many, "/1", nil)
		begin(many, "/2", nil)
		begin(t.Context(), "/outside of a sync", nil)
		begin(withTurn(t.Context(), "many", false), "/background", nil)
		begin(canceled, "/canceled", context.Canceled)
		begin(many, "/3", nil)
		begin(many, "/4", nil)
		begin(one, "/of another namespace", nil)
		if inFlight, waiting := gate.Load(); inFlight != 2 || waiting != 6 {
			t.Errorf("%d requests are in flight and %d wait, want 2 and 6", inFlight, waiting)
		}
		cancel()
		begin(t.Context(), "/login", nil)
		running.Wait()
		// Requests of one time are sent in any order.
		for first := range slices.Chunk(server.paths[3:], 2) {
			slices.Sort(first)
		}
		want := []string{"/1", "/2", "/login", "/3", "/of another namespace", "/4", "/outside of a sync", "/background"}
		if diff := cmp.Diff(want, server.paths); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if inFlight, waiting := gate.Load(); inFlight != 0 || waiting != 0 {
			t.Errorf("%d requests are in flight and %d wait at the end", inFlight, waiting)
		}
	})
}

// TestNotSent: a request waits for at most half of its time. Then it is not sent, and its
// error proves that.
func TestNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &slowServer{takes: 25 * time.Second}
		transport := newTestGate(1).Transport(server)
		var running sync.WaitGroup
		running.Go(func() { _, _ = send(t.Context(), t, transport, "/slow") })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if took, err := send(ctx, t, transport, "/waits"); !errors.Is(err, errNotSent) || took != 15*time.Second {
			t.Errorf("the error is %v after %v, want that it was not sent after 15s", err, took)
		}
		running.Wait()
		if _, err := send(t.Context(), t, transport, "/next"); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"/slow", "/next"}, server.paths); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

// TestGateGivesUp: a place that is given at the moment at which the context ends is not
// lost.
func TestGateGivesUp(t *testing.T) {
	for range 200 {
		gate := newTestGate(1)
		leave, err := gate.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if leave, err := gate.enter(ctx); err == nil {
				leave()
			}
		}()
		go cancel()
		leave()
		<-ended
		cancel()
		if leave, err = gate.enter(t.Context()); err != nil { // or waits forever
			t.Fatal(err)
		}
		leave()
	}
}

// TestKubernetesGate: requests of syncs are limited, and those of one namespace do not
// delay the ones of another, unless an admission webhook does not respond. Requests
// outside of a sync, such as those for the Lease, never wait.
func TestKubernetesGate(t *testing.T) {
	const many = 100
	for name, test := range map[string]struct {
		takes time.Duration // a request
		most  int32         // at a time
		one   time.Duration // until another namespace has a response
		other time.Duration // until there is a response to a request outside of a sync
	}{
		"fast":              {10 * time.Millisecond, kubernetesPlaces, 20 * time.Millisecond, 10 * time.Millisecond},
		"slower":            {900 * time.Millisecond, kubernetesPlaces, 1800 * time.Millisecond, 900 * time.Millisecond},
		"of a slow webhook": {10 * time.Second, 11 * kubernetesPlaces, 11 * time.Second, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				server := &slowServer{takes: test.takes}
				gate := NewKubernetesGate()
				clients := []http.RoundTripper{gate.Transport(server), gate.Transport(server)} // share the places
				for i := range many {
					go func() { _, _ = send(withTurn(ctx, "many", true), t, clients[i%2], "/") }()
				}
				synctest.Wait()
				one := make(chan time.Duration)
				go func() {
					took, _ := send(withTurn(ctx, "one", true), t, clients[0], "/")
					one <- took
				}()
				if took, _ := send(ctx, t, clients[1], "/"); took != test.other {
					t.Errorf("a request outside of a sync took %v, want %v", took, test.other)
				}
				if took := <-one; took != test.one {
					t.Errorf("a request of another namespace took %v, want %v", took, test.one)
				}
				synctest.Wait()
				if most := server.most.Load() - 1; most > test.most { // one is outside of a sync
					t.Errorf("%d requests at a time, want at most %d", most, test.most)
				}
			})
		})
	}
}

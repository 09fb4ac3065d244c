package kube_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/samplecrd/network-controller/pkg/kube"
	"github.com/samplecrd/network-controller/pkg/turns"
)

// slowServer answers each request after a time.
type slowServer struct {
	takes          time.Duration
	inFlight, most atomic.Int32
}

func (s *slowServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.most.Store(max(s.most.Load(), s.inFlight.Add(1)))
	defer s.inFlight.Add(-1)
	select {
	case <-time.After(s.takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// TestWithTurns: requests of syncs are limited, and those of one namespace do not delay
// the ones of another, unless an admission webhook does not answer. Requests without a
// turn, such as those for the Lease, never wait.
func TestWithTurns(t *testing.T) {
	const limit, many = 8, 100
	for name, test := range map[string]struct {
		takes time.Duration // a request
		most  int32         // at a time
		one   time.Duration // until another namespace has a response
		other time.Duration // until there is a response to a request without a turn
	}{
		"fast":              {10 * time.Millisecond, limit, 20 * time.Millisecond, 10 * time.Millisecond},
		"slower":            {900 * time.Millisecond, limit, 1800 * time.Millisecond, 900 * time.Millisecond},
		"of a slow webhook": {10 * time.Second, 11 * limit, 11 * time.Second, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				server := &slowServer{takes: test.takes}
				config := kube.WithTurns(&rest.Config{})
				// Two clients share the places.
				clients := []http.RoundTripper{config.WrapTransport(server), config.WrapTransport(server)}
				send := func(ctx context.Context, i int) (took time.Duration) {
					began := time.Now()
					r, err := http.NewRequestWithContext(ctx, http.MethodPatch, "https://kubernetes.invalid", http.NoBody)
					if err != nil {
						t.Error(err)
					}
					if response, err := clients[i%2].RoundTrip(r); err == nil {
						_ = response.Body.Close()
						took = time.Since(began)
					}
					return took
				}
				for i := range many {
					go send(turns.NewContext(ctx, "many", true), i)
				}
				synctest.Wait()
				one := make(chan time.Duration)
				go func() { one <- send(turns.NewContext(ctx, "one", true), 0) }()
				if took := send(ctx, 1); took != test.other {
					t.Errorf("a request without a turn took %v, want %v", took, test.other)
				}
				if took := <-one; took != test.one {
					t.Errorf("a request of another namespace took %v, want %v", took, test.one)
				}
				synctest.Wait()
				if most := server.most.Load() - 1; most > test.most { // one has no turn
					t.Errorf("%d requests at a time, want at most %d", most, test.most)
				}
			})
		})
	}
}

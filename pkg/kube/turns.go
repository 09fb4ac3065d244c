package kube

import (
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/samplecrd/network-controller/pkg/turns"
)

const (
	// maxSyncRequests is how many requests of syncs the API server gets at a time. Twice
	// as many are hardly faster on two cores, and delay everybody else.
	maxSyncRequests = 8
	// maxTurn is how long a request keeps its place: one that takes longer waits for
	// something else than the CPU of the API server, such as the admission webhook of
	// a namespace, and must not hold up the others.
	maxTurn = time.Second
)

// WithTurns returns a configuration whose requests with a turn (see [turns.NewContext])
// are sent a few at a time. So many changes of one namespace delay neither those of
// another one nor the API server's other clients by much. Clients with the same
// configuration share the places. Other requests do not wait, and a wait is part of the
// timeout.
func WithTurns(config *rest.Config) *rest.Config {
	limited, gate := rest.CopyConfig(config), turns.NewGate(maxSyncRequests)
	limited.Wrap(func(next http.RoundTripper) http.RoundTripper { return inTurn{gate, next} })
	return limited
}

type inTurn struct {
	gate *turns.Gate
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t inTurn) RoundTrip(r *http.Request) (*http.Response, error) {
	if !turns.InContext(r.Context()) {
		return t.next.RoundTrip(r)
	}
	leave, err := t.gate.Enter(r.Context())
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	timer := time.AfterFunc(maxTurn, leave)
	defer timer.Stop()
	defer leave()
	return t.next.RoundTrip(r)
}

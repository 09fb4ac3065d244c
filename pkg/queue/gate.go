package queue

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// Gate bounds how many requests a server gets at a time. The others wait for their turn,
// in the order of the queue: what a person waits for goes first, and each namespace has
// its turn. It is safe for concurrent use.
type Gate struct {
	GateOptions

	mu       sync.Mutex
	line     *line[chan struct{}]
	inFlight int
}

// GateOptions configure a Gate.
type GateOptions struct {
	// Places is the number of requests at a time.
	Places int
	// KeepsPlace is how long a request keeps its place. If it is 0, the request keeps it
	// until there is a response.
	KeepsPlace time.Duration
	// Passes reports whether a request is sent at once, without a place.
	Passes func(*http.Request) bool
	// NotSent returns the error of a request that has waited for too long. It proves that
	// nothing has changed in the server.
	NotSent func(*http.Request) error
}

const (
	// kubernetesPlaces is how many requests of syncs the API server gets at a time. Twice
	// as many are hardly faster on two cores, and delay everybody else.
	kubernetesPlaces = 8
	// kubernetesKeeps is how long such a request keeps its place: one that takes longer
	// waits for something else than the CPU of the API server, such as the admission
	// webhook of a namespace, and must not hold up the others.
	kubernetesKeeps = time.Second
)

// NewKubernetesGate returns a Gate for the requests of syncs to the API server. So many
// changes of one namespace delay neither those of another one nor the API server's other
// clients by much. Requests outside of a sync, such as those for the Lease, never wait.
func NewKubernetesGate() *Gate {
	return NewGate(GateOptions{
		Places: kubernetesPlaces, KeepsPlace: kubernetesKeeps,
		Passes:  func(request *http.Request) bool { return request.Context().Value(turnKey{}) == nil },
		NotSent: func(*http.Request) error { return errors.New("not sent, because too many requests wait") },
	})
}

// NewGate returns a Gate.
func NewGate(options GateOptions) *Gate {
	return &Gate{GateOptions: options, line: newLine[chan struct{}]()}
}

// Load returns how many requests have a place, and how many wait for one.
func (g *Gate) Load() (inFlight, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inFlight, g.line.len
}

// Transport returns a transport whose requests wait for a place before they are sent.
func (g *Gate) Transport(next http.RoundTripper) http.RoundTripper { return throughGate{g, next} }

type throughGate struct {
	gate *Gate
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t throughGate) RoundTrip(request *http.Request) (*http.Response, error) {
	if t.gate.Passes(request) {
		return t.next.RoundTrip(request)
	}
	leave, err := t.gate.enter(request.Context())
	if err != nil && request.Body != nil {
		_ = request.Body.Close()
	}
	switch {
	case errors.Is(err, errTooLong):
		return nil, t.gate.NotSent(request)
	case err != nil:
		return nil, err
	}
	defer leave()
	if keeps := t.gate.KeepsPlace; keeps > 0 {
		defer time.AfterFunc(keeps, leave).Stop()
	}
	return t.next.RoundTrip(request)
}

var errTooLong = errors.New("half of the time of the request is over")

// enter waits for a place, in the turn of the context. The function that it returns gives
// the place back. If there is no place in time, there is nothing to give back. Waiting takes
// at most half of the time that the context has: a request that is sent too late would time
// out, and the server might have executed it.
func (g *Gate) enter(ctx context.Context) (leave func(), err error) {
	patience := ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		patience, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	turn, place := turnOf(ctx), make(chan struct{})
	g.mu.Lock()
	g.line.push(turn.namespace, place, turn.urgent)
	g.admit()
	g.mu.Unlock()
	select {
	case <-place:
	case <-patience.Done():
	}
	if patience.Err() == nil {
		return sync.OnceFunc(g.leave), nil
	}
	g.mu.Lock()
	waits := g.line.remove(turn.namespace, place)
	g.mu.Unlock()
	if !waits { // there was a place meanwhile
		g.leave()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, errTooLong
}

func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inFlight--
	g.admit()
}

// admit gives the free places to those whose turn it is.
func (g *Gate) admit() {
	for g.inFlight < g.Places && g.line.len > 0 {
		next, _ := g.line.pop()
		g.inFlight++
		close(next)
	}
}

// turn says whose request it is, and whether a person waits for it.
type turn struct {
	namespace string
	urgent    bool
}

type turnKey struct{}

// withTurn returns a context whose requests have a turn.
func withTurn(ctx context.Context, namespace string, urgent bool) context.Context {
	return context.WithValue(ctx, turnKey{}, turn{namespace, urgent})
}

// turnOf returns the turn of a context. Requests outside of a sync are in the background,
// and of one namespace without a name.
func turnOf(ctx context.Context) turn {
	turn, _ := ctx.Value(turnKey{}).(turn)
	return turn
}

package turns

import (
	"context"
	"sync"
)

// Gate bounds how many do something at a time. The others wait for their turn, as in a
// Line. It is safe for concurrent use.
type Gate struct {
	mu   sync.Mutex
	free int
	line *Line[chan struct{}]
}

// NewGate returns a Gate with a number of places.
func NewGate(places int) *Gate { return &Gate{free: places, line: New[chan struct{}]()} }

// Enter waits for a place, in the turn of the context. Leave gives it back. If the context
// ends first, Enter returns its error, and there is nothing to give back.
func (g *Gate) Enter(ctx context.Context) (leave func(), err error) {
	tenant, urgent := FromContext(ctx)
	admitted := make(chan struct{})
	g.mu.Lock()
	g.line.Push(tenant, admitted, urgent)
	g.admit()
	g.mu.Unlock()
	select {
	case <-admitted:
		return sync.OnceFunc(g.leave), nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	waits := g.line.Remove(tenant, admitted)
	g.mu.Unlock()
	if !waits { // it was admitted meanwhile
		g.leave()
	}
	return nil, ctx.Err()
}

func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free++
	g.admit()
}

// admit gives the free places to those whose turn it is.
func (g *Gate) admit() {
	for g.free > 0 && g.line.Len() > 0 {
		next, _ := g.line.Pop()
		g.free--
		close(next)
	}
}

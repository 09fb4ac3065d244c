// Package budget limits the number of requests that Neutron gets at a time. The
// limit adapts: it grows while responses stay fast, and shrinks when they become slow
// or Neutron rejects requests because of its load. What a person waits for is sent
// first, and each tenant has its turn.
package budget

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/turns"
)

// Options configure a Budget.
type Options struct {
	// Max is the largest number of requests at a time.
	Max int
	// Describe returns the operation of a request, for errors, and its kind: requests
	// of one kind take about as long if Neutron is idle. An empty kind is not
	// measured. A request that is not limited is sent at once.
	Describe func(*http.Request) (operation, kind string, limited bool)
	// Observe is called when one of the numbers has changed, with a lock held.
	Observe func(limit, inFlight, waiting int)
	// Waited is called with the time that a request has waited.
	Waited func(time.Duration)
	Now    func() time.Time
}

// Budget is a limit for all requests that are sent through its transports.
type Budget struct {
	options Options

	mu       sync.Mutex
	line     *turns.Line[*request]
	inFlight int
	limit    limit
}

// request is a request that waits or is in flight.
type request struct {
	kind     string
	admitted chan struct{}
	epoch    int // of the limit, when it was sent
	sent     time.Time
}

// New returns a Budget.
func New(options Options) *Budget {
	return &Budget{options: options, line: turns.New[*request](), limit: newLimit(options.Max)}
}

// Transport returns a transport that waits for its turn before it sends a request.
func (b *Budget) Transport(next http.RoundTripper) http.RoundTripper { return transport{b, next} }

type transport struct {
	budget *Budget
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper. Waiting takes at most half of the time that
// the request has: one that is sent too late would time out, and might have been
// executed.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	operation, kind, limited := t.budget.options.Describe(r)
	if !limited {
		return t.next.RoundTrip(r)
	}
	sent, ok := t.budget.wait(r.Context(), kind)
	if !ok {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		return nil, &neutron.Error{Op: operation, Class: neutron.ErrUnavailable, Type: neutron.NotSent, Message: "not sent, because Neutron answers too slowly for all requests that wait; the controller tries again"}
	}
	response, err := t.next.RoundTrip(r)
	t.budget.end(sent, outcomeOf(response, err))
	return response, err
}

// wait waits until a request may be sent. It returns false if that takes too long.
func (b *Budget) wait(ctx context.Context, kind string) (*request, bool) {
	begun := b.options.Now()
	if deadline, ok := ctx.Deadline(); ok {
		bounded, cancel := context.WithTimeout(ctx, deadline.Sub(begun)/2)
		defer cancel()
		ctx = bounded
	}
	waiting := &request{kind: kind, admitted: make(chan struct{})}
	tenant, urgent := turns.FromContext(ctx)
	b.mu.Lock()
	b.line.Push(tenant, waiting, urgent)
	b.admit()
	b.mu.Unlock()
	select {
	case <-waiting.admitted:
	case <-ctx.Done():
	}
	b.options.Waited(b.options.Now().Sub(begun))
	if ctx.Err() == nil {
		return waiting, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.line.Remove(tenant, waiting) { // it was admitted too late
		b.inFlight--
	}
	b.admit()
	return nil, false
}

// admit lets as many requests be sent as the limit allows.
func (b *Budget) admit() {
	for b.line.Len() > 0 && b.inFlight < b.limit.places() {
		next, _ := b.line.Pop()
		b.inFlight++
		next.epoch, next.sent = b.limit.epoch, b.options.Now()
		b.limit.noteInFlight(b.inFlight)
		close(next.admitted)
	}
	b.options.Observe(b.limit.places(), b.inFlight, b.line.Len())
}

// end ends a request, and learns from its outcome.
func (b *Budget) end(ended *request, outcome outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight--
	if now := b.options.Now(); ended.epoch == b.limit.epoch { // others were sent under another limit
		switch {
		case outcome == overloaded:
			b.limit.shrink(0.5, now)
		case outcome == succeeded && ended.kind != "":
			if b.limit.note(ended.kind, now.Sub(ended.sent), now) {
				time.AfterFunc(maxProbe, b.endProbe(b.limit.epoch))
			}
		}
	}
	b.admit()
}

// endProbe returns a function that ends the probe of an epoch.
func (b *Budget) endProbe(epoch int) func() {
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.limit.epoch == epoch {
			b.limit.endProbe(b.options.Now())
			b.admit()
		}
	}
}

// outcome is what a response says about the load of Neutron.
type outcome int

const (
	other outcome = iota
	succeeded
	overloaded
)

// outcomeOf classifies a response. Other failures are fast or slow for reasons of
// their own.
func outcomeOf(response *http.Response, err error) outcome {
	var timeout net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout():
		return overloaded
	case err != nil:
		return other
	case response.StatusCode < 300:
		return succeeded
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return overloaded
	}
	return other
}

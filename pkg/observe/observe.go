// Package observe is the door through which a controller is seen from outside: traces,
// metrics, the watchdog and the debug page are behind it. The queue, the informers, the
// connections and the stages of a sync call an Observer, and know nothing of them.
package observe

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"
)

// Observer sees the keys of a controller and the work that is done for them. It is safe
// for concurrent use.
type Observer interface {
	// Happened is called when something happens to a key outside of its sync.
	Happened(key cache.ObjectName, event Event)
	// Begin is called when work begins. It returns the context of the work, and a function
	// to call at its end.
	Begin(ctx context.Context, work Work) (context.Context, func(Result))
	// Reach is called when a sync reaches a stage, with its context. The text describes what
	// the stage has found; it costs something.
	Reach(ctx context.Context, stage Stage, text func() string, err error)
}

// Event is what happens to a key.
type Event struct {
	Type EventType
	// Cause is what has changed, for Handling, or why the key is added, for Added. For
	// example: added, updated, deleted; event, start, drift.
	Cause string
	// ResourceVersion is that of the object, for Received and Handling.
	ResourceVersion string
	// Changed names the part of the object that an update has changed, for Handling.
	Changed string
	// Delay is the time until the key is added, for Delayed.
	Delay time.Duration
	// Failures are those in a row because of which the key is delayed, for Delayed.
	Failures int
}

// EventType is a kind of event.
type EventType int

// The events in their order.
const (
	Received EventType = iota // the API server sent the object
	Handling                  // an event handler begins
	Added                     // the key is added to the queue
	Delayed                   // the key is added to the queue after a delay
	Due                       // the delay is over, and the key is added
	Handled                   // the event handler ends, in the goroutine in which it began
)

// Work is something that takes time.
type Work struct {
	Kind Kind
	// Key is the key of a sync.
	Key cache.ObjectName
	// ID distinguishes the syncs.
	ID string
	// Name names a step, a task, or the operation of a request.
	Name string
	// Text describes a step.
	Text fmt.Stringer
	// Server is where a request goes to.
	Server string
	// Request is a request before it is sent.
	Request *http.Request
}

// Kind is a kind of work.
type Kind int

// The kinds of work.
const (
	Sync    Kind = iota // of one key, by a worker
	Step                // of a sync
	Task                // something else that must make progress
	Request             // a request, until the headers of the response arrive
)

// Result is the end of work.
type Result struct {
	// Code is the HTTP status code of a response, or 0.
	Code int
	Err  error
}

// Stage is a stage of a sync, beside its steps.
type Stage string

// The stages of a sync.
const (
	Desired Stage = "desired" // the desired state is known
	Actual  Stage = "actual"  // the actual state is known
	Report  Stage = "report"  // the outcome is about to be written
)

// Nothing observes nothing.
type Nothing struct{}

func (Nothing) Happened(cache.ObjectName, Event) {}

func (Nothing) Begin(ctx context.Context, _ Work) (context.Context, func(Result)) {
	return ctx, func(Result) {}
}

func (Nothing) Reach(context.Context, Stage, func() string, error) {}

// All are several observers. Work ends for the last one first.
type All []Observer

func (a All) Happened(key cache.ObjectName, event Event) {
	for _, observer := range a {
		observer.Happened(key, event)
	}
}

func (a All) Begin(ctx context.Context, work Work) (context.Context, func(Result)) {
	ends := make([]func(Result), len(a))
	for i, observer := range a {
		ctx, ends[i] = observer.Begin(ctx, work)
	}
	return ctx, func(result Result) {
		for _, end := range slices.Backward(ends) {
			end(result)
		}
	}
}

func (a All) Reach(ctx context.Context, stage Stage, text func() string, err error) {
	for _, observer := range a {
		observer.Reach(ctx, stage, text, err)
	}
}

type contextKey struct{}

// NewContext returns the context of a sync that an observer sees.
func NewContext(ctx context.Context, observer Observer) context.Context {
	return context.WithValue(ctx, contextKey{}, observer)
}

func fromContext(ctx context.Context) Observer {
	if observer, ok := ctx.Value(contextKey{}).(Observer); ok {
		return observer
	}
	return Nothing{}
}

// BeginStep begins a step of the sync of a context. The function that it returns ends it.
func BeginStep(ctx context.Context, name string, text fmt.Stringer) (context.Context, func(error)) {
	ctx, end := fromContext(ctx).Begin(ctx, Work{Kind: Step, Name: name, Text: text})
	return ctx, func(err error) { end(Result{Err: err}) }
}

// Reach passes a stage to the observer of the sync of a context.
func Reach(ctx context.Context, stage Stage, text func() string, err error) {
	fromContext(ctx).Reach(ctx, stage, text, err)
}

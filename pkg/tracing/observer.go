package tracing

import "context"

// Observer observes one sync from inside this process, whether or not it is traced.
type Observer interface {
	// Compares is called with the desired and the actual state, in words.
	Compares(ctx context.Context, desired, actual string)
	// Starts is called when a step starts, by [Start]. The function that it returns is
	// called at the end.
	Starts(ctx context.Context, step string) (context.Context, func(error))
	// Reports is called before the outcome is reported. Success is the word for no
	// error.
	Reports(ctx context.Context, outcome error, success string)
}

type observerKey struct{}

// WithObserver returns the context of a sync that is observed.
func WithObserver(ctx context.Context, observer Observer) context.Context {
	return context.WithValue(ctx, observerKey{}, observer)
}

// ObserverOf returns the observer of a sync. Most syncs have none.
func ObserverOf(ctx context.Context) (observer Observer, observed bool) {
	observer, observed = ctx.Value(observerKey{}).(Observer)
	return observer, observed
}

// Package watchdog finds work that is stuck. It knows only the names of the work.
package watchdog

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Watchdog watches work that is expected to make progress: each request that
// passes through [Transport] counts.
type Watchdog struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	working map[*work]struct{}
}

type work struct {
	watchdog *Watchdog
	name     string
	progress time.Time // the last one
}

// New returns a Watchdog.
func New(clock clock.PassiveClock) *Watchdog {
	return &Watchdog{clock: clock, working: map[*work]struct{}{}}
}

type contextKey struct{}

// Watch begins to watch work, which is done with the context that it returns. The
// function that it returns ends the work.
func (w *Watchdog) Watch(ctx context.Context, name string) (context.Context, func()) {
	begun := &work{watchdog: w, name: name, progress: w.clock.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.working[begun] = struct{}{}
	return context.WithValue(ctx, contextKey{}, begun), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.working, begun)
	}
}

// Progress records progress of the work that a context belongs to, if any.
func Progress(ctx context.Context) {
	if working, ok := ctx.Value(contextKey{}).(*work); ok {
		working.watchdog.mu.Lock()
		defer working.watchdog.mu.Unlock()
		working.progress = working.watchdog.clock.Now()
	}
}

// Transport records progress for each request.
func Transport(next http.RoundTripper) http.RoundTripper { return transport{next} }

type transport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	Progress(request.Context())
	return t.next.RoundTrip(request)
}

// Check returns an error if work has made no progress for longer than a limit.
func (w *Watchdog) Check(limit time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for working := range w.working {
		if silent := w.clock.Since(working.progress); silent > limit {
			return fmt.Errorf("%s is stuck: no progress for %v", working.name, silent.Round(time.Second))
		}
	}
	return nil
}

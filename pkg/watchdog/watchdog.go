// Package watchdog finds work that is stuck. It knows only the names of the work.
package watchdog

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/samplecrd/network-controller/pkg/observe"
)

// Watchdog is an observer of syncs and tasks, which are expected to make progress: each
// request with their context counts.
type Watchdog struct {
	observe.Nothing
	clock clock.PassiveClock

	mu       sync.Mutex
	progress map[*work]time.Time // the last one of the work that has not ended
}

type work struct{ name string }

// New returns a Watchdog.
func New(clock clock.PassiveClock) *Watchdog {
	return &Watchdog{clock: clock, progress: map[*work]time.Time{}}
}

type contextKey struct{}

func (w *Watchdog) Begin(ctx context.Context, begun observe.Work) (context.Context, func(observe.Result)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	watched := &work{begun.Name}
	switch begun.Kind {
	case observe.Sync:
		watched.name = "the sync of " + begun.Key.String()
	case observe.Request:
		of, _ := ctx.Value(contextKey{}).(*work)
		if _, working := w.progress[of]; working { // and has not ended
			w.progress[of] = w.clock.Now()
		}
		return w.Nothing.Begin(ctx, begun)
	case observe.Step:
		return w.Nothing.Begin(ctx, begun)
	case observe.Task: // has its name
	}
	w.progress[watched] = w.clock.Now()
	return context.WithValue(ctx, contextKey{}, watched), func(observe.Result) {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.progress, watched)
	}
}

// Check returns an error if work has made no progress for longer than a limit.
func (w *Watchdog) Check(limit time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for working, at := range w.progress {
		if silent := w.clock.Since(at); silent > limit {
			return fmt.Errorf("%s is stuck: no progress for %v", working.name, silent.Round(time.Second))
		}
	}
	return nil
}

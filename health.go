package main

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// Two questions are asked of a process in a cluster. /livez: would a restart
// help? It would where a worker hangs, or where the lease should have been
// renewed; not where Kubernetes or Neutron is away. /readyz: are the caches
// filled, so that it could take the lead at once?

// pulse tells workers that are getting on from those that hang.
type pulse struct {
	mu      sync.Mutex
	working map[cache.ObjectName]time.Time // when a sync was last seen to get on
}

func newPulse() *pulse { return &pulse{working: map[cache.ObjectName]time.Time{}} }

// beat notes that the sync of a Network gets on.
func (p *pulse) beat(key cache.ObjectName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.working[key] = time.Now()
}

// end notes that it has come to its end.
func (p *pulse) end(key cache.ObjectName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.working, key)
}

// hangs returns an error where a sync has not got on for longer than that.
func (p *pulse) hangs(limit time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, last := range p.working {
		if silent := time.Since(last); silent > limit {
			return fmt.Errorf("the sync of %s hangs: it has not got on for %v", key, silent.Round(time.Second))
		}
	}
	return nil
}

// Hangs returns an error where a worker is at one step for longer than limit,
// which is to be more than the requests of a step may take.
func (c *Controller) Hangs(limit time.Duration) error { return c.pulse.hangs(limit) }

// health answers the questions.
type health struct {
	mu sync.Mutex
	// waitingFor is what is missing to be ready; empty when it is.
	waitingFor string
	live       []check
}

// check is a part of the answer to /livez.
type check struct {
	name string
	err  func(*http.Request) error
}

func newHealth() *health { return &health{waitingFor: "the program has just started"} }

// waitFor says what is missing to be ready; nothing where it is empty.
func (h *health) waitFor(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waitingFor = what
}

// mustHold adds a check to /livez.
func (h *health) mustHold(name string, err func(*http.Request) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live = append(h.live, check{name, err})
}

// handler serves /livez and /readyz: "ok" with 200, or with 503 what is wrong.
func (h *health) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		checks := h.live
		h.mu.Unlock()
		for _, check := range checks {
			if err := check.err(r); err != nil {
				http.Error(w, check.name+": "+err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.waitingFor != "" {
			http.Error(w, "waiting: "+h.waitingFor, http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	return mux
}

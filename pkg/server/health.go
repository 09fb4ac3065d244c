package server

import (
	"fmt"
	"net/http"
	"sync"
)

// Health serves the two probes of a cluster. /livez fails if a restart would help:
// if a worker is stuck or the Lease should have been renewed, but not if Kubernetes
// or Neutron is unavailable. /readyz succeeds if the caches are filled, so that the
// process could start leading at once.
type Health struct {
	mu sync.Mutex
	// waitingFor is what is missing for /readyz, or empty.
	waitingFor string
	role       string // of a process that is ready, or empty
	live       []check
}

// check is a part of /livez.
type check struct {
	name string
	err  func(*http.Request) error
}

// NewHealth returns the Health of a process that is starting.
func NewHealth() *Health { return &Health{waitingFor: "the controller is starting"} }

// WaitFor sets what is missing for /readyz.
func (h *Health) WaitFor(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waitingFor = what
}

// ReadyAs declares that nothing is missing for /readyz. The role of this process, if
// it is not empty, is part of the response.
func (h *Health) ReadyAs(role string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waitingFor, h.role = "", role
}

// AddLiveCheck adds a check to /livez.
func (h *Health) AddLiveCheck(name string, err func(*http.Request) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live = append(h.live, check{name, err})
}

// handler serves /livez and /readyz: "ok" with status 200, or the reason with 503.
func (h *Health) handler() http.Handler {
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
		if h.role != "" {
			_, _ = fmt.Fprintln(w, "ok: "+h.role)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	return mux
}

package main

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/samplecrd/network-controller/pkg/instrument"
	"github.com/samplecrd/network-controller/pkg/reconcile"
)

// The tests in this file have a user who takes more than a fair share.

// TestSecondTenant: a tenant that creates many Networks does not delay the only one
// of another tenant, which a queue in the order of arrival does.
//
// TENANT_NETWORKS=300 NEUTRON_DELAY=100ms measures a larger case.
func TestSecondTenant(t *testing.T) {
	networks, delay := 30, 5*time.Millisecond
	if value := os.Getenv("TENANT_NETWORKS"); value != "" {
		networks, _ = strconv.Atoi(value)
		delay, _ = time.ParseDuration(os.Getenv("NEUTRON_DELAY"))
	}
	const workers = 5
	for name, test := range map[string]struct {
		arrival     bool
		least, most int // Networks of the first tenant that precede that of the second one
	}{
		"order of arrival": {true, networks - 2*workers, networks},
		"turns":            {false, 0, 2 * workers},
	} {
		t.Run(name, func(t *testing.T) {
			first := newHarness(t)
			second := first.beside()
			first.watched = []string{second.namespace}
			for i := range networks {
				first.create(fmt.Sprintf("n%d", i), fmt.Sprintf("10.%d.%d.0/24", i/256, i%256), "")
			}
			hold := make(chan struct{})
			slow := func(r *http.Request) {
				if r.URL.RawQuery != listEverything {
					first.untilTestEnds(hold)
					<-time.After(delay)
				}
			}
			first.hold.Store(&slow)
			if test.arrival {
				first.prepare = func(c *Controller) {
					c.queue = instrument.NewQueue(workqueue.NewTypedRateLimitingQueue(reconcile.Backoff()), first.watchdog)
				}
			}
			first.startWorkers(workers)
			first.eventually(func() error { return first.hasQueued(networks - workers) })
			second.create("only", "10.0.0.0/24", "")
			first.eventually(func() error { return first.hasQueued(networks - workers + 1) })
			begun := time.Now()
			close(hold)
			second.waitReady("only")
			waited := time.Since(begun)

			created := first.inNeutron().Networks // in the order of their creation
			before := slices.IndexFunc(created, func(n neutronNetwork) bool { return strings.HasPrefix(n.Name, second.namespace) })
			t.Logf("the Network of the second tenant waited %v; %d of %d Networks of the first tenant were created before it", waited.Round(10*time.Millisecond), before, networks)
			if before < test.least || before > test.most {
				t.Errorf("%d Networks were created before that of the second tenant, want %d to %d", before, test.least, test.most)
			}
		})
	}
}

// hasQueued reports whether the queue holds this number of keys.
func (h *harness) hasQueued(want int) error {
	if got := h.controller.queue.Len(); got != want {
		return fmt.Errorf("%d keys are in the queue, want %d", got, want)
	}
	return nil
}

package main

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
)

// cost is what one Network may cost: requests to Neutron, writes of the Network to
// Kubernetes, and Events. docs/benchmarks.md has the same goals.
type cost struct{ neutron, writes, events int }

// The costs of the controller. A change that needs more must say why.
var (
	costOfCreate = cost{neutron: 2, writes: 2, events: 1}
	costOfEdit   = cost{neutron: 1, writes: 1, events: 1}
	costOfDelete = cost{neutron: 1, writes: 1, events: 1}
)

// maxAllocations limits the objects that are allocated to create, edit and delete a
// Network: by the controller, by Neutron and by the test itself, which share the
// process. It is about twice what was measured.
const maxAllocations = 12_000

// TestCost counts what Networks cost, and at rest. It guards the figures of the
// benchmark: counts do not depend on the machine. It is not parallel, because it
// counts allocations.
func TestCost(t *testing.T) {
	const many = 40
	h := newSequentialHarness(t)
	stop := h.startController()
	h.create("warm-up", "10.1.0.0/24", "")
	h.waitReady("warm-up")
	h.waitCost("the first Network", 1, costOfCreate)
	name := func(i int) string { return fmt.Sprintf("n%d", i) }
	h.postRouter("edge")
	h.createRouted()
	h.eventually(func() error { return errors.Join(h.hasRouter("edge"), h.hasSentEvents(1)) })
	h.forgetRequests()
	before := allocations()

	h.forEach(many, 1, func(i int) { h.create(name(i), fmt.Sprintf("10.0.%d.0/24", i), "") })
	h.waitCost("creating", many, costOfCreate)
	h.forEach(many, 2, func(i int) { h.patch(name(i), fmt.Sprintf(`{"spec":{"gateway":"10.0.%d.9"}}`, i)) })
	h.waitCost("editing", many, costOfEdit)

	allocated := allocations() - before
	h.patch("example", `{"metadata":{"labels":{"touched":"yes"}}}`)
	h.controller.queue.Add(h.key())
	h.eventually(h.isIdle)
	h.waitCost("a label, and a sync at rest", 0, cost{})
	if err := h.hasLogged("has written the status"); err == nil {
		t.Error("the controller has taken its own write for that of another client")
	}
	stop()
	h.settings.drift.ResyncPeriod = shortResync
	stop = h.startController()
	h.waitLists(2 + 4) // of the start, and of two drift checks
	h.waitCost("a restart and drift checks", many, cost{})
	stop()
	h.settings.drift.ResyncPeriod = time.Hour
	h.startController()
	h.waitLists(2)
	h.waitCost("a second restart", many, cost{})
	before = allocations()

	h.forEach(many, deleted, func(i int) { h.delete(name(i)) })
	h.waitCost("deleting", many, costOfDelete)

	allocated += allocations() - before
	t.Logf("%d objects were allocated for each Network", allocated/many)
	if allocated/many > maxAllocations {
		t.Errorf("creating, editing and deleting a Network allocated %d objects, want at most %d", allocated/many, maxAllocations)
	}
}

// deleted is the generation of a Network that no longer exists.
const deleted = -1

// forEach calls a function with 0 to n-1, and waits until n Networks were ready with a
// generation, or deleted. It does not poll, since that would allocate.
func (h *harness) forEach(n int, generation int64, do func(i int)) {
	h.Helper()
	done := make(chan string, 100*n)
	handlers := cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, after any) {
			network := after.(*samplecrdv1.Network)
			if network.Generation == generation && network.Status.ObservedGeneration == generation && meta.IsStatusConditionTrue(network.Status.Conditions, samplecrdv1.ConditionReady) {
				done <- network.Name
			}
		},
		DeleteFunc: func(any) {
			if generation == deleted {
				done <- "deleted"
			}
		},
	}
	registration, err := h.informer.AddEventHandler(handlers)
	if err != nil {
		h.Fatal(err)
	}
	defer func() { _ = h.informer.RemoveEventHandler(registration) }()
	for i := range n {
		do(i)
	}
	patience, ready := time.After(2*patience), map[string]bool{}
	for left := n; left > 0; {
		select {
		case name := <-done:
			if !ready[name] {
				left--
			}
			ready[name] = name != "deleted"
		case <-patience:
			h.Fatalf("%d of %d Networks did not reach generation %d", left, n, generation)
		}
	}
}

// allocations returns the number of objects that this process has allocated.
func allocations() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.Mallocs
}

// waitCost waits until all Events were sent, and checks what a number of Networks
// cost since the last call.
func (h *harness) waitCost(doing string, networks int, each cost) {
	h.Helper()
	h.eventually(func() error { return h.hasSentEvents(networks * each.events) })
	h.wantRequests(doing, networks*each.neutron, networks*each.writes)
}

// waitLists waits until Neutron has received further lists of everything.
func (h *harness) waitLists(further int) {
	h.Helper()
	count := func() int {
		return len(slices.DeleteFunc(h.neutron.Requests(), func(r embedded.Request) bool { return !listsAll(r.Path, r.Query) }))
	}
	before := count()
	h.eventually(func() error {
		if got := count() - before; got < further {
			return fmt.Errorf("Neutron has received %d lists, want %d", got, further)
		}
		return nil
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
)

// The tests of this file show the whole controller at its ordinary work: what a Network
// costs, and how the controller stops. Begin with TestWalkthrough.

// TestWalkthrough creates, edits and deletes a Network as new users do, and counts
// every request.
func TestWalkthrough(t *testing.T) {
	h := newHarness(t)
	h.startController()

	h.create("example", "192.168.0.0/16", "192.168.0.1")
	created := h.waitReady("example")
	h.wantExample("192.168.0.0/16", "192.168.0.1")
	h.wantRequests("creating", 2, 2)
	if diff := cmp.Diff([]string{samplecrdv1.Finalizer}, created.Finalizers); diff != "" {
		t.Errorf("finalizers differ (-want +got):\n%s", diff)
	}
	networkID, subnetID := h.idsInNeutron("example")
	if created.Status.NetworkID != networkID || created.Status.SubnetID != subnetID {
		t.Errorf("status names network %q and subnet %q, Neutron has %q and %q", created.Status.NetworkID, created.Status.SubnetID, networkID, subnetID)
	}

	h.edit("192.168.1.0/16", "192.168.1.1")
	edited := h.waitReady("example")
	h.wantExample("192.168.0.0/16", "192.168.1.1")
	h.wantRequests("editing the gateway", 1, 1)
	if edited.Status.NetworkID != networkID || edited.Status.SubnetID != subnetID {
		t.Errorf("the edit replaced network %q or subnet %q: the status is %+v", networkID, subnetID, edited.Status)
	}

	h.delete("example")
	h.waitGone("example")
	h.wantCounts(0, 0)
	h.wantRequests("deleting", 1, 1)

	h.waitEventNote("NetworkCreated", "Created network "+networkID+" with subnet 192.168.0.0/16, gateway 192.168.0.1.")
	h.waitEventNote("SubnetUpdated", "Changed gateway 192.168.0.1 → 192.168.1.1.")
	h.waitEventNote("NetworkDeleted", "Deleted network "+networkID+" with subnet 192.168.0.0/16.")
}

// TestShutdown: the request in flight finishes, no other request follows, and the
// next start completes the work.
func TestShutdown(t *testing.T) {
	h := newHarness(t)
	reached := h.holdCreateNetwork()
	stop := h.startController()
	h.create("example", "10.0.0.0/24", "")
	release := <-reached

	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	h.eventually(func() error {
		if !h.controller.queue.ShuttingDown() {
			return errors.New("the queue is not shutting down yet")
		}
		return nil
	})
	close(release)
	<-stopped
	h.wantCounts(1, 0)

	h.startController()
	h.waitReady("example")
	h.wantCounts(1, 1)
}

// TestOwnWritesAreRead: a sync uses the controller's own writes before the watch
// returns them.
func TestOwnWritesAreRead(t *testing.T) {
	h := newHarness(t)
	h.create("example", "10.0.0.0/24", "")
	c, _ := h.newController(t.Context()) // its informer is not started: only the test changes the cache
	old := h.get("example")
	if err := h.informer.GetStore().Add(old); err != nil {
		t.Fatal(err)
	}
	newer, err := h.client.SamplecrdV1().Networks(h.namespace).Patch(t.Context(), "example", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.networks.Written(newer)

	got, err := c.networks.Get(h.key())

	if err != nil || got.ResourceVersion != newer.ResourceVersion {
		t.Errorf("Get() has version %v (%v), want that of the own write, %v", got.ResourceVersion, err, newer.ResourceVersion)
	}
}

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

// TestRunEnds: Run returns when its own context ends, although the informers and the
// lists of Neutron's state continue. Nor is it a failure if the informers end first.
func TestRunEnds(t *testing.T) {
	for name, informersEnd := range map[string]bool{"informers continue": false, "informers have ended": true} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			ctx, cancel := context.WithCancel(t.Context())
			ofInformers := t.Context()
			if informersEnd {
				ofInformers = ctx
			}
			c, start := h.newController(ofInformers)
			start()
			if !c.WarmUp(ofInformers) {
				t.Fatal("WarmUp() = false")
			}
			cancel()
			h.eventually(func() error {
				if informersEnd && !h.informer.IsStopped() {
					return errors.New("the informer has not stopped")
				}
				return nil
			})
			ended := make(chan error, 1)
			go func() { ended <- c.Run(ctx, 1, time.Minute) }()
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(patience):
				t.Error("Run did not return")
			}
		})
	}
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/test/neutronapi"
	"github.com/samplecrd/network-controller/test/running"
)

// The first tests of this file show the whole controller at its ordinary work: what a Network
// costs, and how the controller stops. Begin with TestWalkthrough.

// TestWalkthrough creates, edits and deletes a Network as new users do, and counts
// every request.
func TestWalkthrough(t *testing.T) {
	h := newHarness(t)
	h.startController()

	h.create("example", "192.168.0.0/16", "192.168.0.1")
	created := h.waitReady("example")
	h.want(h.hasExample("192.168.0.0/16", "192.168.0.1"))
	h.wantRequests("creating", 2, 2)
	if diff := cmp.Diff([]string{samplecrdv1.Finalizer}, created.Finalizers); diff != "" {
		t.Errorf("finalizers differ (-want +got):\n%s", diff)
	}
	networkID, subnetID := h.ids()

	h.edit(`{"cidr":"192.168.1.0/16","gateway":"192.168.1.1"}`)
	h.waitReady("example")
	h.want(h.hasExample("192.168.0.0/16", "192.168.1.1"))
	h.wantRequests("editing the gateway", 1, 1)
	if network, subnet := h.ids(); network != networkID || subnet != subnetID {
		t.Errorf("the edit replaced network %s by %s, or subnet %s by %s", networkID, network, subnetID, subnet)
	}

	h.delete("example")
	h.waitGone("example")
	h.want(h.hasCounts(0, 0))
	h.wantRequests("deleting", 1, 1)

	h.waitEvent("NetworkCreated", "Created network "+networkID+" with subnet 192.168.0.0/16, gateway 192.168.0.1.")
	h.waitEvent("SubnetUpdated", "Changed gateway 192.168.0.1 → 192.168.1.1.")
	h.waitEvent("NetworkDeleted", "Deleted network "+networkID+" with subnet 192.168.0.0/16.")
}

// TestShutdown: the request in flight finishes, no other request follows, and the
// next start completes the work.
func TestShutdown(t *testing.T) {
	h := newHarness(t)
	create := h.holdFirst(creates("networks"))
	stop := h.startController()
	h.create("example", "10.0.0.0/24", "")
	<-create.reached

	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	h.eventually(func() error {
		if !h.queue.ShuttingDown() {
			return errors.New("the queue is not shutting down yet")
		}
		return nil
	})
	create.release()
	<-stopped
	h.want(h.hasCounts(1, 0))

	h.startController()
	h.waitReady("example")
	h.want(h.hasCounts(1, 1))
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

	h.forEach(many, 1, func(i int) { h.create(name(i), fmt.Sprintf("10.2.%d.0/24", i), "") })
	h.waitCost("creating", many, costOfCreate)
	h.forEach(many, 2, func(i int) { h.patch(name(i), fmt.Sprintf(`{"spec":{"gateway":"10.2.%d.9"}}`, i)) })
	h.waitCost("editing", many, costOfEdit)

	allocated := allocations() - before
	h.patch("example", `{"metadata":{"labels":{"touched":"yes"}}}`)
	h.queue.Add(h.key())
	h.eventually(h.isIdle)
	h.waitCost("a label, and a sync at rest", 0, cost{})
	if err := h.hasLogged("has written the status"); err == nil {
		t.Error("the controller has taken its own write for that of another client")
	}
	stop()
	h.flags(shortResync)
	stop = h.startController()
	h.waitLists(2 + 4) // of the start, and of two drift checks
	h.waitCost("a restart and drift checks", many, cost{})
	stop()
	h.flags("-resync-period=1h")
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

// forEach calls a function with 0 to n-1, and waits until the Networks n0, n1, … are ready
// with a generation, or deleted. It looks only in the cache, since requests allocate.
func (h *harness) forEach(n int, generation int64, do func(i int)) {
	h.Helper()
	for i := range n {
		do(i)
	}
	h.eventually(func() error {
		exist, ready := 0, 0
		for _, network := range h.networks.List() {
			if !strings.HasPrefix(network.Name, "n") {
				continue
			}
			exist++
			if network.Generation == generation && network.Status.ObservedGeneration == generation &&
				meta.IsStatusConditionTrue(network.Status.Conditions, samplecrdv1.ConditionReady) {
				ready++
			}
		}
		if done := generation == deleted && exist == 0 || ready == n; !done {
			return fmt.Errorf("%d Networks exist, and %d of %d are ready with generation %d", exist, ready, n, generation)
		}
		return nil
	})
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

// TestRunEnds: Run returns when its context ends, also if the informers end first.
func TestRunEnds(t *testing.T) {
	h := newHarness(t)
	ctx, cancel := context.WithCancel(t.Context())
	p := h.newController(ctx)
	p.informers.start(ctx)
	if !p.WarmUp(ctx) {
		t.Fatal("WarmUp() = false")
	}
	cancel()
	p.informers.stop()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx, 1, time.Minute) }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(running.Patience):
		t.Error("Run did not return")
	}
}

// In the next tests, several tenants share a controller, and one of them takes more
// than a fair share; or several controllers share a project of OpenStack.

// TestSecondTenant: many Networks that need work after a start do not delay a new one,
// of another tenant or of the same one.
func TestSecondTenant(t *testing.T) {
	const networks, workers = 30, 5
	for name, same := range map[string]bool{"of another tenant": false, "of the same tenant": true} {
		t.Run(name, func(t *testing.T) {
			first := newHarness(t)
			second := first.beside()
			first.flags("-namespaces=" + first.namespace + "," + second.namespace)
			if same {
				second = first
			}
			for i := range networks {
				first.create(fmt.Sprintf("n%d", i), fmt.Sprintf("10.0.%d.0/24", i), "")
			}
			hold := make(chan struct{})
			slow := func(r *http.Request) {
				if r.Method != http.MethodGet || !listsAll(r.URL.Path, r.URL.RawQuery) {
					first.untilTestEnds(hold)
					<-time.After(5 * time.Millisecond)
				}
			}
			first.hold.Store(&slow)
			first.startWorkers(workers)
			first.eventually(func() error { return first.hasQueued(networks - workers) })
			second.create("only", "10.0.0.0/24", "")
			first.eventually(func() error { return first.hasQueued(networks - workers + 1) })
			close(hold)
			second.waitReady("only")

			created := first.inNeutron().Networks // in the order of their creation
			before := slices.IndexFunc(created, func(n neutronapi.Network) bool { return strings.Contains(n.Name, "only") })
			if before < 0 || before > 2*workers {
				t.Errorf("%d of %d Networks of the first tenant were created before the new one, want at most %d", before, networks, 2*workers)
			}
		})
	}
}

// hasQueued reports whether the queue holds this number of keys.
func (h *harness) hasQueued(want int) error {
	if got := h.queue.Len(); got != want {
		return fmt.Errorf("%d keys are in the queue, want %d", got, want)
	}
	return nil
}

// TestSyncRequests: many workers send the API server only a few requests at a time.
func TestSyncRequests(t *testing.T) {
	const networks, limit = 60, 8
	h := newHarness(t)
	var sent, inFlight, most atomic.Int64
	h.failRequests(func(r *http.Request) bool {
		if r.Method != http.MethodPatch {
			return false
		}
		most.Store(max(most.Load(), inFlight.Add(1)))
		<-time.After(50 * time.Millisecond) // within a second, a request keeps its place
		inFlight.Add(-1)
		sent.Add(1)
		return true
	})
	for i := range networks {
		h.create(fmt.Sprintf("n%d", i), fmt.Sprintf("10.0.%d.0/24", i), "")
	}
	h.startWorkers(networks)
	h.eventually(func() error {
		if n := sent.Load(); n < networks {
			return fmt.Errorf("the controller has sent %d requests", n)
		}
		return nil
	})
	if n := most.Load(); n > limit || n < 2 {
		t.Errorf("the API server got %d requests of syncs at a time, want at most %d, but several", n, limit)
	}
}

// TestNamespaceLimitWithManyWorkers: workers that create networks at once do not exceed
// the limit, and a Network that has its network is not affected by it.
func TestNamespaceLimitWithManyWorkers(t *testing.T) {
	h := newHarness(t)
	h.flags("-max-networks-per-namespace=3")
	const networks = 12
	for i := range networks {
		h.create(fmt.Sprintf("n%d", i), "10.0.0.0/24", "")
	}
	arrived := make(chan struct{}, networks)
	release := make(chan struct{})
	hold := func(r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/v2.0/networks" {
			arrived <- struct{}{}
			h.untilTestEnds(release)
		}
	}
	h.hold.Store(&hold)
	h.startWorkers(networks)
	for range 3 {
		<-arrived
	}
	h.eventually(func() error { return h.hasReasons("NamespaceLimit", networks-3) })
	close(release)
	h.eventually(func() error { return h.hasReasons("Provisioned", 3) })
	h.want(h.hasCounts(3, 3))
	if n := len(arrived); n > 0 {
		t.Errorf("%d more requests to create a network arrived", n)
	}
}

// hasReasons reports whether this number of Networks has a reason.
func (h *harness) hasReasons(reason string, want int) error {
	all, err := h.list()
	if err != nil {
		return err
	}
	got := 0
	for _, network := range all {
		if ready := meta.FindStatusCondition(network.Status.Conditions, samplecrdv1.ConditionReady); ready != nil && ready.Reason == reason {
			got++
		}
	}
	if got != want {
		return fmt.Errorf("%d Networks have the reason %s, want %d", got, reason, want)
	}
	return nil
}

// TestLargeMetadata: the cache holds no metadata that the controller does not read, and
// no write of the controller removes it from the object.
func TestLargeMetadata(t *testing.T) {
	h := newDeploymentHarness(t)
	h.startController()
	web := h.deploy("web", "cidr=10.0.0.0/24")
	h.waitOwned(web, "10.0.0.0/24")
	large := strings.Repeat("x", 200<<10)
	h.patch("web", `{"metadata":{"annotations":{"example.com/large":"`+large+`","samplecrd.k8s.io/large":"y","kubectl.kubernetes.io/last-applied-configuration":"{}"},
		"labels":{"example.com/label":"kept"},"finalizers":["example.com/kept","`+samplecrdv1.Finalizer+`"]}}`)
	h.annotate("web", "cidr=10.0.1.0/24", "gateway=10.0.1.9")
	h.waitOwned(web, "10.0.1.0/24")
	h.annotate("web", "gateway") // removes a field of the spec
	h.eventually(func() error { return h.hasNeutron("web", "10.0.1.0/24", "10.0.1.1") })
	h.waitReady("web")
	h.patch("web", `{"status":{"networkID":"overwritten"}}`, "status")
	h.eventually(func() error {
		if h.get("web").Status.NetworkID == "overwritten" {
			return errors.New("the status was not corrected")
		}
		return nil
	})

	network := h.get("web")
	for name, want := range map[string]string{"example.com/large": large, "samplecrd.k8s.io/large": "y", "kubectl.kubernetes.io/last-applied-configuration": "{}"} {
		if network.Annotations[name] != want {
			t.Errorf("the annotation %s was removed or changed", name)
		}
	}
	if network.Labels["example.com/label"] != "kept" || network.Labels[samplecrdv1.LabelSource] != samplecrdv1.SourceAnnotation || !slices.Contains(network.Finalizers, "example.com/kept") {
		t.Errorf("the labels are %v and the finalizers %v, want those of the user, too", network.Labels, network.Finalizers)
	}
	h.eventually(func() error {
		received := h.networks.List()
		written, err := h.networks.Get(cache.MetaObjectToName(network)) // may be the controller's own write
		if err != nil || len(received) != 1 || received[0].ResourceVersion != network.ResourceVersion {
			return fmt.Errorf("the cache has %v, %w", received, err)
		}
		for _, cached := range []any{received[0], written} {
			if text, err := json.Marshal(cached); err != nil || len(text) > 4<<10 {
				return fmt.Errorf("the cached object has %d bytes: %.1000s (%w)", len(text), text, err)
			}
		}
		return nil
	})
	h.patch("web", `{"metadata":{"finalizers":["`+samplecrdv1.Finalizer+`"]}}`)
}

// TestRapidEdits: a Network that is edited without end causes few events and few
// changes in Neutron. The last edit takes effect, and the deletion does not wait.
func TestRapidEdits(t *testing.T) {
	h := newHarness(t)
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")
	h.eventually(func() error { return h.hasSentEvents(1) })
	h.forgetRequests()
	const edits = 100
	begun := time.Now()
	for i := range edits {
		h.edit(fmt.Sprintf(`{"gateway":"10.0.0.%d"}`, 10+i))
	}
	h.waitReady("example")
	h.want(h.hasNeutron("example", "10.0.0.0/24", "10.0.0.109"))
	changes := h.neutronRequests(writeMethods...)
	seconds := int(time.Since(begun).Seconds())
	// The retry after an outdated write does not wait for the limit.
	if most := 2 * (10 + seconds); len(changes) > most {
		t.Errorf("%d edits caused %d changes in Neutron within %d s, want at most %d", edits, len(changes), seconds, most)
	}
	events := h.writes.get()
	if n := len(events) - len(h.writes.networks()); n > 25+seconds/300 { // the limit of client-go's recorder
		t.Errorf("%d edits caused %d events, want at most 25: %v", edits, n, events)
	}
	t.Logf("%d edits: %d changes in Neutron, %d writes to Kubernetes, %d of them of the Network",
		edits, len(changes), len(events), len(h.writes.networks()))
	h.edit(`{"gateway":"10.0.0.9"}`) // is delayed
	h.delete("example")
	h.waitGone("example")
	h.want(h.hasCounts(0, 0))
}

// TestTwoControllers: two controllers of one cluster and one project, with different
// namespaces, reconcile at the same time. Each of them lists all networks of the project,
// but changes only those of its namespaces.
func TestTwoControllers(t *testing.T) {
	a := newHarness(t)
	b, unwatched := a.beside(), a.beside()
	for _, h := range []*harness{a, b, unwatched} {
		h.postNetwork("orphan of "+h.namespace, h.marker("gone"))
	}
	a.postNetwork("foreign", "")
	unwatched.create("example", "10.0.0.0/24", "")
	for _, h := range []*harness{a, b} {
		h.flags("-namespaces="+h.namespace, shortResync, "-delete-orphans", "-orphan-grace-period=1ms")
	}
	stop := a.startController()
	b.startController()
	names := []string{"one", "two", "three"}
	for _, name := range names {
		a.create(name, "10.0.0.0/24", "")
		b.create(name, "10.0.0.0/24", "")
	}
	for _, name := range names {
		a.waitReady(name)
		b.waitReady(name)
	}
	a.eventually(func() error { return a.hasCounts(2*len(names)+2, 2*len(names)) }) // the orphans of both are gone
	if posts := a.neutronRequests(http.MethodPost); len(posts) != 4*len(names) {
		t.Errorf("Neutron received %d POSTs, want two for each Network: %+v", len(posts), posts)
	}
	if network := unwatched.get("example"); len(network.Finalizers) > 0 {
		t.Errorf("the Network in another namespace was changed: %+v", network)
	}
	stop()
	for _, name := range names {
		b.delete(name)
		b.waitGone(name)
	}
	a.want(a.hasCounts(len(names)+2, len(names)))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/reconcile"
)

// TestWalkthrough creates, edits and deletes a Network as new users do, and counts
// every request.
func TestWalkthrough(t *testing.T) {
	h := newHarness(t)
	h.startController()

	h.create("example", "192.168.0.0/16", "192.168.0.1")
	created := h.waitReady("example")
	h.wantNeutron("example", "192.168.0.0/16", "192.168.0.1")
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
	h.wantNeutron("example", "192.168.0.0/16", "192.168.1.1")
	h.wantRequests("editing the gateway", 1, 1)
	if edited.Status.NetworkID != networkID || edited.Status.SubnetID != subnetID {
		t.Errorf("the edit replaced network %q or subnet %q: the status is %+v", networkID, subnetID, edited.Status)
	}

	h.delete("example")
	h.waitGone("example")
	h.wantCounts(0, 0)
	h.wantRequests("deleting", 1, 1)

	h.waitEvents("NetworkCreated", "SubnetUpdated", "NetworkDeleted")
	h.waitEventNote("NetworkCreated", "Created network "+networkID+" with subnet 192.168.0.0/16, gateway 192.168.0.1.")
	h.waitEventNote("SubnetUpdated", "Changed gateway 192.168.0.1 → 192.168.1.1.")
	h.waitEventNote("NetworkDeleted", "Deleted network "+networkID+" with subnet 192.168.0.0/16.")
}

// TestRest: a healthy Network causes no request and no write, whatever events the
// informers receive.
func TestRest(t *testing.T) {
	h := newHarness(t)
	h.startController()
	h.create("a", "10.0.0.0/24", "")
	h.waitReady("a")
	h.eventually(func() error { return h.hasSentEvents(1) })
	h.forgetRequests()

	// The label is an update that requests nothing. It has been processed when b is
	// ready.
	h.patch("a", `{"metadata":{"labels":{"touched":"yes"}}}`)
	h.create("b", "10.0.1.0/24", "")
	h.waitReady("b")

	h.eventually(func() error { return h.hasSentEvents(1) })
	if got := h.writes.get(); len(got) != 3 {
		t.Errorf("creating b took the writes %v, want 2 of the Network and an event", got)
	}
	h.wantRequests("creating b", 2, 2)
}

// TestRestart: a controller that starts lists Neutron's state. For healthy
// Networks, it sends no other request and writes nothing.
func TestRestart(t *testing.T) {
	h := newHarness(t)
	stop := h.startController()
	for i := range 5 {
		h.create(fmt.Sprintf("n%d", i), fmt.Sprintf("10.0.%d.0/24", i), "")
	}
	for i := range 5 {
		h.waitReady(fmt.Sprintf("n%d", i))
	}
	stop()
	h.forgetRequests()

	h.startController()
	h.create("last", "10.0.9.0/24", "") // when it is ready, the others have been synced
	h.waitReady("last")

	if got := len(h.neutron.Requests()); got < 2+2 {
		t.Errorf("%d requests to Neutron in all, want at least two lists and two for the last Network", got)
	}
	h.wantRequests("starting with 5 Networks, and creating one", 2, 2)
}

// TestNeutronRestartsEmpty: the embedded Neutron is empty after a restart, and the
// controller creates the networks again.
func TestNeutronRestartsEmpty(t *testing.T) {
	h := newHarness(t)
	stop := h.startController()
	h.create("example", "10.0.0.0/24", "")
	before := h.waitReady("example").Status.NetworkID
	stop()
	h.restartNeutron()

	h.startController()

	h.eventually(func() error {
		if got := h.get("example").Status.NetworkID; got == before {
			return fmt.Errorf("status.networkID is still %s", got)
		}
		return nil
	})
	h.waitReady("example")
	h.wantNeutron("example", "10.0.0.0/24", "10.0.0.1")
}

// TestOutages: whichever request fails, an event names it, and one network exists
// in the end.
func TestOutages(t *testing.T) {
	const networks, subnets = "^/v2.0/networks", "^/v2.0/subnets"
	for name, test := range map[string]struct {
		fault   embedded.Fault
		message string
	}{
		"503 on listing networks":           {embedded.Fault{Method: http.MethodGet, Path: networks, Status: 503}, "Cannot look up the Neutron network: Neutron is unavailable (503"},
		"500 on creating the network":       {embedded.Fault{Method: http.MethodPost, Path: networks, Status: 500}, "Cannot create the Neutron network: Neutron is unavailable (500"},
		"network created, response lost":    {embedded.Fault{Method: http.MethodPost, Path: networks, DropAnswer: true}, "Cannot create the Neutron network: Neutron is unavailable"},
		"subnet created, response lost":     {embedded.Fault{Method: http.MethodPost, Path: subnets, DropAnswer: true}, "Cannot create the subnet 10.0.0.0/24, gateway 10.0.0.1: Neutron is unavailable"},
		"request to create the subnet lost": {embedded.Fault{Method: http.MethodPost, Path: subnets, DropRequest: true}, "Cannot create the subnet 10.0.0.0/24, gateway 10.0.0.1: Neutron is unavailable"},
		"truncated list of networks":        {embedded.Fault{Method: http.MethodGet, Path: networks, Truncate: true}, "Cannot look up the Neutron network: Neutron is unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			heal := h.neutron.Inject(test.fault)
			h.startController()
			h.create("example", "10.0.0.0/24", "")
			h.waitEventNote("NeutronUnavailable", test.message)

			heal()

			h.waitReady("example")
			h.wantNeutron("example", "10.0.0.0/24", "10.0.0.1")
			h.wantCounts(1, 1)
		})
	}
}

// TestRefused: the condition quotes Neutron's error. The request is not repeated
// in a hot loop, and a new spec is tried at once.
func TestRefused(t *testing.T) {
	h := newHarness(t)
	allow := h.neutron.Inject(embedded.Fault{
		Method: http.MethodPost, Path: "^/v2.0/subnets", Status: http.StatusConflict,
		Body: `{"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['subnet'].", "detail": ""}}`,
	})
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitCondition("example", metav1.ConditionFalse, "Refused", "Quota exceeded for resources: ['subnet'].")
	h.wantRequests("a rejected request", 2, 2)

	// The label requests nothing. It has been processed when the other Network is
	// rejected.
	h.patch("example", `{"metadata":{"labels":{"touched":"yes"}}}`)
	h.create("other", "10.0.1.0/24", "")
	h.waitCondition("other", metav1.ConditionFalse, "Refused", "Quota")
	h.wantRequests("a rejected request for another Network", 2, 2)

	allow()
	h.edit("10.0.0.0/25", "")
	h.waitReady("example")
	h.wantCounts(2, 1)
}

// TestLateResponse: Neutron applies a request to create a network after the client
// has given up. One network exists in the end.
func TestLateResponse(t *testing.T) {
	h := newHarness(t)
	h.timeout, h.settings.reconcile.MaxInFlight = 100*time.Millisecond, time.Second
	reached := h.holdCreateNetwork()
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	release := <-reached

	h.waitCondition("example", metav1.ConditionFalse, "NeutronUnavailable", "no response to an earlier create request arrived")
	close(release)

	h.waitReady("example")
	h.wantCounts(1, 1)
}

// TestDeletedBeforeTheResponse: the Network is deleted while Neutron still applies
// the request to create its network.
func TestDeletedBeforeTheResponse(t *testing.T) {
	h := newHarness(t)
	h.timeout, h.settings.reconcile.MaxInFlight = 100*time.Millisecond, time.Second
	reached := h.holdCreateNetwork()
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	release := <-reached

	h.delete("example")
	h.waitCondition("example", metav1.ConditionFalse, "NeutronUnavailable", "no response to an earlier create request arrived")
	close(release)

	h.waitGone("example")
	h.wantCounts(0, 0)
}

// TestStatusWriteFails: a sync whose status write fails is retried, even if its
// outcome alone requires no retry.
func TestStatusWriteFails(t *testing.T) {
	h := newHarness(t)
	h.create("example", "192.168.0.0/16", "192.168.255.255")
	c, _ := h.newController(t.Context())
	if err := h.informer.GetStore().Add(h.get("example")); err != nil { // the cache is outdated from now on
		t.Fatal(err)
	}
	h.patch("example", `{"metadata":{"labels":{"touched":"yes"}}}`)

	err := c.syncHandler(t.Context(), h.key())

	if retry, _ := c.reconciler.Retry(err); retry == reconcile.RetryNever {
		t.Errorf("syncHandler() = %v, want an error that is retried", err)
	}
}

// TestInvalid: the condition reports an invalid spec that the API server accepts.
// The spec causes no request and does not block deletion.
func TestInvalid(t *testing.T) {
	h := newHarness(t)
	h.startController()
	h.create("example", "192.168.0.0/16", "192.168.255.255") // a broadcast address: the CRD accepts it

	h.waitCondition("example", metav1.ConditionFalse, "InvalidSpec", "broadcast")
	h.wantRequests("an invalid spec", 0, 1)

	h.delete("example")
	h.waitGone("example")
}

// TestInvalidEdit: a network stays unchanged when the spec becomes invalid, and is
// deleted with its Network.
func TestInvalidEdit(t *testing.T) {
	h := newHarness(t)
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")

	h.edit("10.0.0.0/24", "10.0.0.255")
	h.waitCondition("example", metav1.ConditionFalse, "InvalidSpec", "broadcast")
	h.wantNeutron("example", "10.0.0.0/24", "10.0.0.1")

	h.delete("example")
	h.waitGone("example")
	h.wantCounts(0, 0)
}

// TestAmbiguousOwnerMarker: two networks with the same owner marker are reported;
// neither is used or deleted.
func TestAmbiguousOwnerMarker(t *testing.T) {
	h := newHarness(t)
	for range 2 {
		h.post("/v2.0/networks", `{"network":{"name":"`+h.namespace+`/example","description":"samplecrd.k8s.io owner: `+testCluster+"/"+h.namespace+`/example"}}`)
	}
	h.startController()
	h.create("example", "10.0.0.0/24", "")

	h.waitCondition("example", metav1.ConditionFalse, "Ambiguous", "2 networks")
	h.wantCounts(2, 0)
}

// TestRecreatedNetwork: a Network that is deleted and created again at once is a
// new object.
func TestRecreatedNetwork(t *testing.T) {
	h := newHarness(t)
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")

	h.delete("example")
	h.waitGone("example")
	h.create("example", "10.0.0.0/24", "10.0.0.9")

	h.waitReady("example")
	h.wantNeutron("example", "10.0.0.0/24", "10.0.0.9")
	h.wantCounts(1, 1)
}

// TestFinalizerIsRestored: without the finalizer, the network in Neutron would
// outlive its Network.
func TestFinalizerIsRestored(t *testing.T) {
	h := newHarness(t)
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")

	h.patch("example", `{"metadata":{"finalizers":["example.com/theirs"]}}`)

	h.eventually(func() error {
		if got := h.get("example").Finalizers; !slices.Contains(got, samplecrdv1.Finalizer) || !slices.Contains(got, "example.com/theirs") {
			return fmt.Errorf("finalizers are %v", got)
		}
		return nil
	})
	h.delete("example")
	h.eventually(func() error {
		if got := h.get("example").Finalizers; !slices.Equal(got, []string{"example.com/theirs"}) {
			return fmt.Errorf("finalizers are %v, want only theirs", got)
		}
		return nil
	})
	h.wantCounts(0, 0)
	h.patch("example", `{"metadata":{"finalizers":null}}`)
	h.waitGone("example")
}

// TestStatusOfDeletedNetwork: the status of a deleted Network is not written to a
// new one with the same name, and creates no object.
func TestStatusOfDeletedNetwork(t *testing.T) {
	h := newHarness(t)
	h.create("example", "10.0.0.0/24", "")
	old := h.get("example")
	h.delete("example")
	c, _ := h.newController(t.Context())
	if err := h.informer.GetStore().Add(old); err != nil { // the cache does not contain the deletion yet
		t.Fatal(err)
	}
	desired, actual := c.reconciler.Desired(h.key(), old), plan.Actual{Record: plan.Record{NetworkID: "created"}}

	if err := c.reconciler.Report(t.Context(), h.key(), old, desired, actual, nil, nil); err != nil {
		t.Errorf("reporting on a deleted object: %v", err)
	}
	h.waitGone("example")

	h.create("example", "10.0.1.0/24", "")
	if err := c.reconciler.Report(t.Context(), h.key(), old, desired, actual, nil, nil); err == nil {
		t.Error("the status was written to another object with the same name")
	}
	if got := h.get("example").Status.NetworkID; got != "" {
		t.Errorf("status.networkID is %q, want none", got)
	}
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

// TestShutdownTimeout: requests that do not finish in time are canceled.
func TestShutdownTimeout(t *testing.T) {
	h := newHarness(t)
	reached := h.holdCreateNetwork()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, start := h.newController(ctx)
	start()
	ended := make(chan error, 1)
	go func() { ended <- warmUpAndRun(ctx, c, 1, time.Millisecond) }()
	h.create("example", "10.0.0.0/24", "")
	release := <-reached
	defer close(release)

	cancel()

	if err := <-ended; err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("Run() = %v, want an error about canceled requests", err)
	}
}

// TestStopWhileStarting: a stop before the event handlers are registered is a normal
// end.
func TestStopWhileStarting(t *testing.T) {
	h := newHarness(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, start := h.newController(ctx)
	start()
	if !c.WarmUp(ctx) {
		t.Fatal("WarmUp() = false")
	}
	cancel()
	h.eventually(func() error {
		if !h.informer.IsStopped() {
			return errors.New("the informer has not stopped")
		}
		return nil
	})

	if err := c.Run(ctx, 1, time.Minute); err != nil {
		t.Errorf("Run() = %v", err)
	}
}

// TestManyNetworks creates and deletes hundreds of Networks at the same time.
func TestManyNetworks(t *testing.T) {
	const many = 200
	h := newHarness(t)
	h.startController()
	name := func(i int) string { return fmt.Sprintf("n%d", i) }
	for i := range many {
		h.create(name(i), fmt.Sprintf("10.0.%d.0/24", i), "")
	}
	for i := range many {
		h.waitReady(name(i))
	}
	h.wantCounts(many, many)
	h.wantRequests("creating many", 2*many, 2*many)

	for i := range many {
		h.delete(name(i))
	}
	for i := range many {
		h.waitGone(name(i))
	}
	h.wantCounts(0, 0)
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

// TestUpgrade: a status of an older version lacks fields. They are completed from
// the lists alone, and Neutron is not changed.
func TestUpgrade(t *testing.T) {
	h := newHarness(t)
	stop := h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")
	stop()
	h.patchStatus("example", `{"status":{"cidr":null,"gateway":null,"mtu":null,"defaultMTU":null}}`, "")
	h.forgetRequests()
	h.startController()
	h.eventually(func() error {
		if s := h.get("example").Status; s.CIDR != "10.0.0.0/24" || s.Gateway != "10.0.0.1" || s.MTU != 1450 || s.DefaultMTU != 1450 {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
	h.wantRequests("completing a status", 0, 1)
}

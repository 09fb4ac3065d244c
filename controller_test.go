package main

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/plan"
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

	h.waitEventNote("NetworkCreated", "Created network "+networkID+" with subnet 192.168.0.0/16, gateway 192.168.0.1.")
	h.waitEventNote("SubnetUpdated", "Changed gateway 192.168.0.1 → 192.168.1.1.")
	h.waitEventNote("NetworkDeleted", "Deleted network "+networkID+" with subnet 192.168.0.0/16.")
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

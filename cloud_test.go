package main

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
)

// TestOtherCloud: a controller that is connected to another cloud by mistake
// changes nothing there, forgets nothing, and lets no Network disappear.
func TestOtherCloud(t *testing.T) {
	h := newHarness(t)
	h.create("example", "192.168.0.0/16", "")
	h.create("deleted", "192.168.0.0/16", "")
	h.createWith("retained", samplecrdv1.NetworkSpec{CIDR: "192.168.0.0/16", DeletionPolicy: samplecrdv1.DeletionPolicyRetain})
	stop := h.startController()
	before := h.waitReady("example")
	h.waitReady("deleted")
	h.waitReady("retained")
	if got := before.Annotations[samplecrdv1.AnnotationCloud]; got != "RegionOne/test" {
		t.Errorf("the Network records the cloud %q", got)
	}
	stop()

	first := h.neutron
	h.connectTo("RegionTwo/test", embedded.New(embedded.Options{}))
	h.delete("deleted")
	h.delete("retained")
	h.edit("10.0.0.0/24", "")
	stop = h.startController()
	message := `the network is in the cloud "RegionOne/test", but the controller is connected to "RegionTwo/test"`
	for _, name := range []string{"example", "deleted", "retained"} {
		network := h.waitCondition(name, metav1.ConditionFalse, "OtherCloud", message)
		if network.Status.NetworkID == "" || len(network.Finalizers) == 0 {
			t.Errorf("%s lost its network %q or its finalizers %q", name, network.Status.NetworkID, network.Finalizers)
		}
	}
	h.waitEventNote("OtherCloud", message)

	// Who may write Networks cannot move them.
	h.patch("example", `{"metadata":{"annotations":null}}`)
	h.patch("deleted", `{"metadata":{"annotations":{"samplecrd.k8s.io/cloud":"RegionTwo/test"}}}`)
	h.patch("example", `{"metadata":{"finalizers":null,"annotations":{"samplecrd.k8s.io/cloud":"RegionTwo/test"}}}`)
	h.eventually(h.isIdle)
	for _, name := range []string{"example", "deleted", "retained"} {
		if err := h.hasCondition(name, metav1.ConditionFalse, "OtherCloud", message); err != nil {
			t.Error(err)
		}
	}
	h.wantCounts(0, 0)
	stop()

	h.connectTo("RegionOne/test", first)
	h.startController()
	h.waitGone("deleted")
	h.waitGone("retained")
	if after := h.waitReady("example"); after.Status.NetworkID != before.Status.NetworkID {
		t.Errorf("the network changed from %s to %s", before.Status.NetworkID, after.Status.NetworkID)
	}
	h.wantNeutron("example", "10.0.0.0/24", "10.0.0.1")
	h.wantCounts(2, 2)
}

// TestLeaveCloud: Networks move to another cloud if the administrator names the one
// to leave. What is there stays. That is no drift.
func TestLeaveCloud(t *testing.T) {
	h := newHarness(t)
	h.settings.reconcile.ReportDrift = true
	h.create("example", "192.168.0.0/16", "")
	h.create("deleted", "192.168.0.0/16", "")
	stop := h.startController()
	before := h.waitReady("example")
	h.waitReady("deleted")
	stop()

	first := h.neutron
	h.connectTo("RegionTwo/test", embedded.New(embedded.Options{}))
	h.settings.reconcile.LeaveCloud = "RegionOne/test"
	h.delete("deleted")
	h.startController()
	h.waitGone("deleted")
	after := h.waitReady("example")
	if after.Status.NetworkID == before.Status.NetworkID || after.Annotations[samplecrdv1.AnnotationCloud] != "RegionTwo/test" {
		t.Errorf("the Network has the network %s in the cloud %q", after.Status.NetworkID, after.Annotations[samplecrdv1.AnnotationCloud])
	}
	h.wantNeutron("example", "192.168.0.0/16", "192.168.0.1")
	h.wantCounts(1, 1)
	h.neutron = first
	h.wantCounts(2, 2)
}

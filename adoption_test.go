package main

import (
	"net/http"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
)

// TestSubnetInFlightOnAdopted: a Network is not removed while Neutron may still
// create a subnet for it, because the adopted network stays.
func TestSubnetInFlightOnAdopted(t *testing.T) {
	h := newHarness(t)
	h.settings.reconcile.AllowAdoption = true
	h.timeout, h.settings.reconcile.MaxInFlight = 300*time.Millisecond, 2*time.Second
	id := h.postNetwork("theirs", "")
	reached, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	hold := func(r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/v2.0/subnets" {
			once.Do(func() { close(reached); h.untilTestEnds(release) })
		}
	}
	h.hold.Store(&hold)
	h.startController()
	h.createAdopting("example", "10.0.0.0/24", id)
	<-reached
	h.delete("example")
	h.waitCondition("example", metav1.ConditionFalse, "NeutronUnavailable", "no response to an earlier create request arrived")
	close(release)
	h.waitGone("example")
	h.wantCounts(1, 0)
}

func (h *harness) createAdopting(name, cidr, networkID string) {
	h.Helper()
	h.createWith(name, samplecrdv1.NetworkSpec{CIDR: cidr, NetworkID: networkID})
}

// TestOlderNetwork: a network that had the owner marker of a Network before the
// Network was created is not taken over, unless a user confirms it.
func TestOlderNetwork(t *testing.T) {
	h := newHarness(t)
	older := h.postNetwork("planted", h.marker("example"))
	port := h.createPort(older)
	stop := h.startController()
	h.create("example", "10.0.0.0/24", "")
	cure := "kubectl annotate network -n " + h.namespace + " example samplecrd.k8s.io/cloud=RegionOne/test"
	h.waitCondition("example", metav1.ConditionFalse, "Ambiguous", cure)
	h.waitRequests(len(h.neutron.Requests()) + 3) // some retries
	stop()
	h.forgetRequests()
	h.startController()
	h.waitRequests(5)
	if err := h.hasCondition("example", metav1.ConditionFalse, "Ambiguous", cure); err != nil {
		t.Error(err)
	}
	if got := h.get("example").Status.NetworkID; got != "" {
		t.Errorf("the status records the network %s", got)
	}
	h.wantCounts(1, 0)

	h.patch("example", `{"metadata":{"annotations":{"samplecrd.k8s.io/cloud":"RegionOne/test"}}}`)
	if got := h.waitReady("example").Status.NetworkID; got != older {
		t.Errorf("the network is %s, want %s", got, older)
	}
	h.wantCounts(1, 1)
	h.deletePort(port)
}

package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
)

// TestAdopt: an existing network is used and not renamed. No other Network can
// adopt it, and deletionPolicy decides whether it is deleted with its Network.
func TestAdopt(t *testing.T) {
	h := newHarness(t)
	h.settings.reconcile.AllowAdoption = true
	id := h.postNetwork("theirs", "for the printers")
	h.startController()
	h.createAdopting("example", "10.0.0.0/24", id)

	if got := h.waitReady("example").Status.NetworkID; got != id {
		t.Errorf("status.networkID = %s, want %s", got, id)
	}
	if n := h.inNeutron().Networks; len(n) != 1 || n[0].Name != "theirs" || n[0].Description != "for the printers" {
		t.Errorf("Neutron has %+v", n)
	}

	h.createAdopting("second", "10.0.1.0/24", id)
	h.waitCondition("second", metav1.ConditionFalse, "NotOurs", "adopted by the Network "+h.namespace+"/example")
	h.delete("second")
	h.waitGone("second")
	h.wantCounts(1, 1)

	h.patch("example", `{"spec":{"deletionPolicy":"Delete"}}`)
	h.delete("example")
	h.waitGone("example")
	h.wantCounts(0, 0)
}

// TestAdoptWithItsSubnet: an existing subnet with the requested range is adopted,
// too, and not deleted.
func TestAdoptWithItsSubnet(t *testing.T) {
	h := newHarness(t)
	h.settings.reconcile.AllowAdoption = true
	id := h.postNetwork("theirs", "")
	h.post("/v2.0/subnets", `{"subnet":{"network_id":"`+id+`","name":"theirs","cidr":"10.0.0.0/24","ip_version":4,"gateway_ip":"10.0.0.254"}}`)
	h.startController()
	h.createAdopting("example", "10.0.0.0/24", id)

	h.waitReady("example")
	if s := h.inNeutron().Subnets; len(s) != 1 || s[0].Gateway != "10.0.0.254" || s[0].Description != "" {
		t.Errorf("Neutron has %+v", s)
	}
	h.edit("10.0.0.0/24", "10.0.0.1")
	h.eventually(func() error {
		if s := h.inNeutron().Subnets; len(s) != 1 || s[0].Gateway != "10.0.0.1" {
			return fmt.Errorf("Neutron has %+v", s)
		}
		return nil
	})
	h.delete("example")
	h.waitGone("example")
	h.wantCounts(1, 1)
}

// TestAdoptNotAllowed: without -allow-adoption, nothing is changed in Neutron, and
// the Network can be deleted.
func TestAdoptNotAllowed(t *testing.T) {
	h := newHarness(t)
	id := h.postNetwork("theirs", "")
	h.startController()
	h.createAdopting("example", "10.0.0.0/24", id)

	h.waitCondition("example", metav1.ConditionFalse, "AdoptionNotAllowed", "-allow-adoption")
	h.patch("example", `{"spec":{"deletionPolicy":"Delete"}}`)
	h.waitCondition("example", metav1.ConditionFalse, "AdoptionNotAllowed", "-allow-adoption")
	h.delete("example")
	h.waitGone("example")
	h.wantRequests("not adopting", 0, 2)
	h.wantCounts(1, 0)
}

// TestAdoptOwnedNetwork: a network that another Network of any cluster owns cannot
// be adopted.
func TestAdoptOwnedNetwork(t *testing.T) {
	h := newHarness(t)
	h.settings.reconcile.AllowAdoption = true
	id := h.postNetwork("x", neutron.Owner{Cluster: "other", Namespace: "default", Name: "x"}.Marker())
	h.startController()
	h.createAdopting("example", "10.0.0.0/24", id)
	h.createAdopting("missing", "10.0.0.0/24", "0b6c9c48-0000-0000-0000-000000000000")

	h.waitCondition("example", metav1.ConditionFalse, "NotOurs", "owner marker of another Network")
	h.waitCondition("missing", metav1.ConditionFalse, "NotFound", "does not exist")
	h.wantCounts(1, 0)
}

// TestAdoptedDeleteBeforeStatus: a subnet that the controller created on an
// adopted network is deleted with its Network, even if no status was ever written.
func TestAdoptedDeleteBeforeStatus(t *testing.T) {
	h := newHarness(t)
	h.settings.reconcile.AllowAdoption = true
	id := h.postNetwork("theirs", "")
	h.failRequests(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/status") })
	h.startController()
	h.createAdopting("example", "10.0.0.0/24", id)
	h.patch("example", `{"spec":{"deletionPolicy":"Delete"}}`)
	h.eventually(func() error { return h.hasCounts(1, 1) })
	h.delete("example")
	h.waitGone("example")
	h.wantCounts(1, 0)
}

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

// TestOlderNetworkDeleted: a Network that never took over an older network
// disappears without it.
func TestOlderNetworkDeleted(t *testing.T) {
	h := newHarness(t)
	h.postNetwork("planted", h.marker("example"))
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitCondition("example", metav1.ConditionFalse, "Ambiguous", "before this Network was created")
	h.delete("example")
	h.waitGone("example")
	h.wantCounts(1, 0)
}

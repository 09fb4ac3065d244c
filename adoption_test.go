package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// TestAdopt: a network that was there is used, is nobody else's then, and stays
// when the object goes.
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
	h.wantNothingInNeutron()
}

// TestAdoptWithItsSubnet: a subnet of the range asked for is used as well, and
// stays as well.
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
	h.edit("example", "10.0.0.0/24", "10.0.0.1")
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

// TestAdoptNotAllowed: nothing is touched, and the object can go.
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

// TestAdoptOwnedNetwork: a network that a Network has already, in whatever cluster,
// cannot be adopted.
func TestAdoptOwnedNetwork(t *testing.T) {
	h := newHarness(t)
	h.settings.reconcile.AllowAdoption = true
	id := h.postNetwork("x", neutron.Owner{Cluster: "other", Namespace: "default", Name: "x"}.Marker())
	h.startController()
	h.createAdopting("example", "10.0.0.0/24", id)
	h.createAdopting("nowhere", "10.0.0.0/24", "0b6c9c48-0000-0000-0000-000000000000")

	h.waitCondition("example", metav1.ConditionFalse, "NotOurs", "owner marker of another Network")
	h.waitCondition("nowhere", metav1.ConditionFalse, "NotFound", "does not exist")
	h.wantCounts(1, 0)
}

// TestAdoptedDeleteBeforeStatus: a subnet that was made on an adopted network
// goes with its object, though no status ever spoke of it.
func TestAdoptedDeleteBeforeStatus(t *testing.T) {
	h := newHarness(t)
	h.settings.reconcile.AllowAdoption = true
	id := h.postNetwork("theirs", "")
	h.transport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/status") {
				return nil, errAway
			}
			return next.RoundTrip(r)
		})
	}
	h.startController()
	h.createAdopting("example", "10.0.0.0/24", id)
	h.patch("example", `{"spec":{"deletionPolicy":"Delete"}}`)
	h.eventually(func() error { return h.countsAre(1, 1) })
	h.delete("example")
	h.waitGone("example")
	h.wantCounts(1, 0)
}

// TestSubnetInFlightOnAdopted: an object is held while Neutron may still be
// making a subnet for it that would not go with its network.
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

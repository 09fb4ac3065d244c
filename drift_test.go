package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
)

// shortResync is a resync period for tests that wait for a resync.
const shortResync = 50 * time.Millisecond

// TestDrift: a change of a network in Neutron is reverted within a resync period,
// and an event describes the change and the correction.
func TestDrift(t *testing.T) {
	for name, test := range map[string]struct {
		path, change string // DELETE if change is empty
		events       []string
		note         string
	}{
		"the network is deleted": {path: "/v2.0/networks/NETWORK", events: []string{"Drifted"}, note: "Corrected a difference in Neutron: network NETWORK did not exist; created network "},
		"the subnet is deleted":  {path: "/v2.0/subnets/SUBNET", events: []string{"Drifted"}, note: "Corrected a difference in Neutron: the subnet did not exist; created subnet 10.0.0.0/24"},
		"another gateway": {
			path: "/v2.0/subnets/SUBNET", change: `{"subnet":{"gateway_ip":"10.0.0.99","allocation_pools":[{"start":"10.0.0.1","end":"10.0.0.9"}]}}`,
			events: []string{"Drifted"}, note: "Corrected a difference in Neutron: changed gateway 10.0.0.99 → 10.0.0.1",
		},
		"no gateway": {
			path: "/v2.0/subnets/SUBNET", change: `{"subnet":{"gateway_ip":null}}`,
			events: []string{"Drifted"}, note: "Corrected a difference in Neutron: changed gateway none → 10.0.0.1",
		},
		"the network has another name": {
			path: "/v2.0/networks/NETWORK", change: `{"network":{"name":"mine"}}`,
			events: []string{"Drifted"}, note: `Corrected a difference in Neutron: changed name "mine"`,
		},
		"the network has lost its owner marker": {
			path: "/v2.0/networks/NETWORK", change: `{"network":{"description":""}}`,
			events: []string{"Drifted"}, note: `description "" → "samplecrd.k8s.io network owner`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.settings.drift.ResyncPeriod = shortResync
			h.startController()
			h.create("example", "10.0.0.0/24", "")
			h.waitReady("example")
			h.waitEvents("NetworkCreated")
			networkID, subnetID := h.idsInNeutron("example")
			ids := strings.NewReplacer("NETWORK", networkID, "SUBNET", subnetID)

			method := http.MethodPut
			if test.change == "" {
				method = http.MethodDelete
			}
			h.do(method, ids.Replace(test.path), test.change, nil)

			h.waitEvents(append([]string{"NetworkCreated"}, test.events...)...)
			h.waitEventNote("Drifted", ids.Replace(test.note))
			h.eventually(func() error { return h.hasExample("10.0.0.0/24", "10.0.0.1") })
		})
	}
}

// TestSubnetWithoutMarker: a subnet that has lost its owner marker is neither changed
// nor deleted, although the status names it, until its marker is restored.
func TestSubnetWithoutMarker(t *testing.T) {
	h := newHarness(t)
	h.settings.drift.ResyncPeriod = shortResync
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")
	_, subnetID := h.idsInNeutron("example")
	h.do(http.MethodPut, "/v2.0/subnets/"+subnetID, `{"subnet":{"description":"mine"}}`, nil)
	cure := "set its description to " + strconv.Quote(h.marker("example"))
	h.waitCondition("example", metav1.ConditionFalse, "NotOurs", cure)

	h.edit("10.0.1.0/24", "")
	h.waitCondition("example", metav1.ConditionFalse, "NotOurs", cure)
	h.wantCounts(1, 1)

	h.do(http.MethodPut, "/v2.0/subnets/"+subnetID, `{"subnet":{"description":"`+h.marker("example")+`"}}`, nil)
	h.waitReady("example")
	h.wantNeutron("example", "10.0.1.0/24", "10.0.1.1")

	_, subnetID = h.idsInNeutron("example")
	h.do(http.MethodPut, "/v2.0/subnets/"+subnetID, `{"subnet":{"description":"mine"}}`, nil)
	h.waitCondition("example", metav1.ConditionFalse, "NotOurs", cure)
	h.delete("example")
	h.waitCondition("example", metav1.ConditionFalse, "InUse", "subnets that do not belong to this Network are on it ("+subnetID+")")
	h.wantCounts(1, 1)
}

// TestReportDrift: with the policy Report, a change in Neutron stays and is reported,
// also after a restart and an outage, until the policy or the spec changes.
func TestReportDrift(t *testing.T) {
	h := newHarness(t)
	h.settings.drift.ResyncPeriod = shortResync
	h.settings.reconcile.ReportDrift = true
	stop := h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.createWith("corrected", samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", DriftPolicy: samplecrdv1.DriftPolicyCorrect})
	h.waitReady("example")
	h.waitReady("corrected")
	for _, name := range []string{"example", "corrected"} {
		networkID, _ := h.idsInNeutron(name)
		h.do(http.MethodPut, "/v2.0/networks/"+networkID, `{"network":{"name":"mine"}}`, nil)
	}
	h.eventually(func() error { return h.hasNeutron("corrected", "10.0.0.0/24", "10.0.0.1") })
	message := `name "mine" → "` + h.namespace + `/example"`
	h.waitCondition("example", metav1.ConditionFalse, "Drifted", message)
	h.waitEventNote("Drifted", message)
	stop()

	h.forgetRequests()
	stop = h.startController()
	h.eventually(h.isIdle)
	h.waitRequests(10)
	h.wantRequests("resyncing", 0, 0)
	if err := h.hasCondition("example", metav1.ConditionFalse, "Drifted", message); err != nil {
		t.Error(err)
	}
	stop()

	networkID, _ := h.idsInNeutron("example")
	h.do(http.MethodDelete, "/v2.0/networks/"+networkID, "", nil)
	h.startController()
	h.waitCondition("example", metav1.ConditionFalse, "Drifted", "create network")
	h.wantCounts(1, 1)

	h.patch("example", `{"spec":{"driftPolicy":"Correct"}}`)
	h.waitReady("example")
	h.wantNeutron("example", "10.0.0.0/24", "10.0.0.1")

	h.patch("example", `{"spec":{"driftPolicy":"Report"}}`)
	h.waitReady("example")
	_, subnetID := h.idsInNeutron("example")
	h.do(http.MethodPut, "/v2.0/subnets/"+subnetID, `{"subnet":{"gateway_ip":null}}`, nil)
	h.waitCondition("example", metav1.ConditionFalse, "Drifted", "gateway none → 10.0.0.1")
	h.edit("10.0.0.0/24", "10.0.0.9")
	h.waitReady("example")
	h.wantNeutron("example", "10.0.0.0/24", "10.0.0.9")
}

// TestResyncOfHealthyNetworks: a resync costs two lists, and no write.
func TestResyncOfHealthyNetworks(t *testing.T) {
	const many = 50
	h := newHarness(t)
	h.settings.drift.ResyncPeriod = shortResync
	h.startController()
	for i := range many {
		h.create(fmt.Sprintf("n%d", i), fmt.Sprintf("10.0.%d.0/24", i), "")
	}
	for i := range many {
		h.waitReady(fmt.Sprintf("n%d", i))
	}
	h.forgetRequests()

	h.waitRequests(20)
	h.wantRequests("resyncing ten times", 0, 0)
}

// TestListFails: a list that fails or is incomplete changes nothing, neither in
// Neutron nor in the status.
func TestListFails(t *testing.T) {
	for name, fault := range map[string]embedded.Fault{
		"the list of networks fails": {Method: http.MethodGet, Path: "^/v2.0/networks", Status: 503},
		"the list of subnets fails":  {Method: http.MethodGet, Path: "^/v2.0/subnets", Status: 500},
		"a list is truncated":        {Method: http.MethodGet, Path: "^/v2.0/(networks|subnets)", Truncate: true},
		"a list of other objects":    {Method: http.MethodGet, Path: "^/v2.0/networks", Status: 200, Body: `{"ports": []}`},
		"a null list":                {Method: http.MethodGet, Path: "^/v2.0/networks", Status: 200, Body: `{"networks": null}`},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.settings.drift.ResyncPeriod = shortResync
			h.startController()
			h.create("example", "10.0.0.0/24", "")
			before := h.waitReady("example")
			h.neutron.Inject(fault)
			h.forgetRequests()

			h.waitRequests(6)

			h.wantRequests("resyncing without a list", 0, 0)
			if after := h.get("example"); after.ResourceVersion != before.ResourceVersion {
				t.Errorf("the Network was changed to %+v", after)
			}
		})
	}
}

// TestDriftDuringOutage: Neutron is unavailable when the controller starts.
// Earlier drift is found when Neutron is available again.
func TestDriftDuringOutage(t *testing.T) {
	h := newHarness(t)
	stop := h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.create("drifted", "10.0.1.0/24", "")
	h.waitReady("example")
	h.waitReady("drifted")
	stop()
	networkID, _ := h.idsInNeutron("drifted")
	h.do(http.MethodDelete, "/v2.0/networks/"+networkID, "", nil)
	heal := h.neutron.Inject(embedded.Fault{Status: 503})
	h.settings.drift.ResyncPeriod = shortResync
	h.startController()

	h.waitCondition("drifted", metav1.ConditionFalse, "NeutronUnavailable", "503")
	heal()

	h.waitReady("drifted")
	h.waitReady("example")
	h.wantCounts(2, 2)
}

// TestOrphans: a network of this cluster whose Network does not exist is an
// orphan. It is deleted only with -delete-orphans; networks of other owners never
// are.
func TestOrphans(t *testing.T) {
	for name, grace := range map[string]time.Duration{"kept": 0, "deleted": shortResync} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.settings.drift.ResyncPeriod = shortResync
			h.settings.drift.OrphanGracePeriod = grace
			h.setCluster(h.namespace) // a name that no other test uses
			stop := h.startController()
			h.create("example", "10.0.0.0/24", "")
			h.waitReady("example")
			stop()
			h.patch("example", `{"metadata":{"finalizers":null}}`)
			h.delete("example")
			h.waitGone("example")
			h.postNetwork("mine", "samplecrd.k8s.io owner: other-cluster/"+h.namespace+"/example")
			h.postNetwork("mine", "samplecrd.k8s.io retained: "+h.namespace+"/"+h.namespace+"/example")
			h.postNetwork("mine", "samplecrd.k8s.io owner: "+h.namespace+"/nonsense")
			h.wantCounts(4, 1)

			h.startController()
			h.eventually(func() error { return h.hasLogged("Found an orphan") })
			if grace > 0 {
				h.eventually(func() error { return h.hasCounts(3, 0) })
				return
			}
			h.forgetRequests()
			h.waitRequests(10)
			h.wantRequests("keeping an orphan", 0, 0)
			h.wantCounts(4, 1)
		})
	}
}

// TestTooManyOrphans: more orphans than the limit are not deleted, and an event names
// the flag. They are deleted when somebody has raised the limit.
func TestTooManyOrphans(t *testing.T) {
	h := newHarness(t)
	h.settings.drift.ResyncPeriod, h.settings.drift.OrphanGracePeriod = shortResync, shortResync
	h.settings.drift.MaxOrphanDeletions = 1
	h.postNetwork("mine", h.marker("gone-a"))
	h.postNetwork("mine", h.marker("gone-b"))
	stop := h.startController()
	h.waitEvent("gone-a", "OrphanDeletionsPaused", "-max-orphan-deletions=2.")
	stop()
	h.wantCounts(2, 0)

	h.settings.drift.MaxOrphanDeletions = 2
	h.startController()
	h.eventually(func() error { return h.hasCounts(0, 0) })
}

// TestOrphanInUse: an orphan that ports use is not deleted.
func TestOrphanInUse(t *testing.T) {
	h := newHarness(t)
	h.settings.drift.ResyncPeriod, h.settings.drift.OrphanGracePeriod = shortResync, shortResync
	port := h.createPort(h.postNetwork("mine", h.marker("gone")))
	h.startController()

	h.eventually(func() error { return h.hasRejected(http.MethodDelete, "/v2.0/networks/") })
	h.wantCounts(1, 0)

	h.deletePort(port)
	h.eventually(func() error { return h.hasCounts(0, 0) })
}

// TestRebuiltCluster: Networks that are restored without their status, under
// another cluster name, wait. They get a second network only if the administrator
// confirms that both clusters exist. With the old name, they use the
// first one again, and the second one is not changed.
func TestRebuiltCluster(t *testing.T) {
	h := newHarness(t)
	stop := h.startController()
	h.create("example", "10.0.0.0/24", "")
	first := h.waitReady("example").Status.NetworkID
	stop()
	h.patch("example", `{"metadata":{"finalizers":null}}`)
	h.delete("example")
	h.waitGone("example")

	h.setCluster("rebuilt")
	stop = h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitCondition("example", metav1.ConditionFalse, "OtherCluster", `belongs to the cluster "`+testCluster+`", but this cluster is "rebuilt"`)
	h.wantCounts(1, 1)
	stop()

	h.settings.reconcile.OtherClusters = []string{testCluster}
	stop = h.startController()
	if second := h.waitReady("example").Status.NetworkID; second == first {
		t.Errorf("the network is still %s, want another one", second)
	}
	h.wantCounts(2, 2)
	stop()

	h.setCluster(testCluster)
	h.startController()
	h.edit("10.0.0.0/24", "10.0.0.9")
	if third := h.waitReady("example").Status.NetworkID; third != first {
		t.Errorf("with the old name, the network is %s, want %s", third, first)
	}
	h.wantCounts(2, 2)
}

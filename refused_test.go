package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
)

// rejectNetworks makes Neutron reject new networks.
func (h *harness) rejectNetworks() {
	h.neutron.Inject(embedded.Fault{
		Method: http.MethodPost, Path: "^/v2.0/networks", Status: http.StatusConflict,
		Body: `{"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['network'].", "detail": ""}}`,
	})
}

// wantRequestsTo checks how many such requests controllers sent to Neutron.
func (h *harness) wantRequestsTo(method, path string, want int) {
	h.Helper()
	n := 0
	for _, r := range h.neutronRequests() {
		if r.Method == method && strings.HasPrefix(r.Path, path) {
			n++
		}
	}
	if n != want {
		h.Errorf("Neutron received %d requests %s %s, want %d", n, method, path, want)
	}
}

// TestRefusedWithoutStatus: a request that Neutron rejected is not repeated although
// the status could not be written. The status is written as soon as it can be.
func TestRefusedWithoutStatus(t *testing.T) {
	h := newHarness(t)
	failures := 0
	h.failRequests(func(r *http.Request) bool {
		if fails := strings.HasSuffix(r.URL.Path, "/status") && failures < 4; fails {
			failures++
			return true
		}
		return false
	})
	h.rejectNetworks()
	h.startWorkers(1)
	h.create("example", "10.0.0.0/24", "")
	h.waitCondition("example", metav1.ConditionFalse, "Refused", "Quota exceeded for resources: ['network'].")
	h.wantRequestsTo(http.MethodPost, "/v2.0/networks", 1)
}

// TestRefusedWithDeployment: nor is it repeated because of an error of the
// Deployment.
func TestRefusedWithDeployment(t *testing.T) {
	h := newDeploymentHarness(t)
	h.rejectNetworks()
	h.startController()
	deployment := h.deploy("example", "cidr=10.0.0.0/24")
	h.waitCondition("example", metav1.ConditionFalse, "Refused", "Quota")
	h.annotate("example", "cidr=nonsense")
	h.waitDeploymentEvent(deployment, "Warning", "NetworkNotMade", "nonsense")
	h.eventually(h.isIdle)
	h.wantRequestsTo(http.MethodPost, "/v2.0/networks", 1)
}

// TestRefusedOrphan: an orphan that ports use is not deleted, and the request that Neutron
// rejects is not repeated with every resync.
func TestRefusedOrphan(t *testing.T) {
	h := newHarness(t)
	h.settings.drift.ResyncPeriod, h.settings.drift.OrphanGracePeriod = shortResync, shortResync
	h.settings.reconcile.Retry.InUse = time.Hour
	h.createPort(h.postNetwork("mine", h.marker("gone")))
	h.startController()
	h.eventually(func() error { return h.hasRejected(http.MethodDelete, "/v2.0/networks/") })
	h.waitRequests(len(h.neutron.Requests()) + 20) // some resyncs
	h.wantRequestsTo(http.MethodDelete, "/v2.0/networks/", 1)
}

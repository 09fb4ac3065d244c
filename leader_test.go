package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// In the tests of this file, several replicas of the controller compete for a Lease, each in
// its own process.

// TestHandOver: of two replicas, one reconciles. When it ends, cleanly or not, the
// other one takes over, and changes nothing for healthy Networks.
func TestHandOver(t *testing.T) {
	for name, test := range map[string]struct {
		signal   syscall.Signal
		atMost   time.Duration // 30 seconds more than required, for slow machines
		released bool
	}{
		"a clean stop releases the Lease": {syscall.SIGTERM, 30 * time.Second, true},
		"after a kill, the Lease expires": {syscall.SIGKILL, 36 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			first := h.startReplica()
			first.waitFor(t, `"Starting workers"`)
			second := h.startReplica()
			h.create("example", "10.0.0.0/24", "")
			before := h.waitReady("example")
			if second.isWorking() {
				t.Fatal("both replicas are leading")
			}
			wasHolder := h.holder()
			h.forgetRequests()

			stopped := time.Now()
			first.signal(t, test.signal)
			_ = first.Wait()
			if released := h.holder() != wasHolder; released != test.released {
				t.Errorf("after the process ended, the Lease was released: %v, want %v", released, test.released)
			}
			second.waitFor(t, `"Starting workers"`)
			took := time.Since(stopped)
			t.Logf("the handover took %v", took)
			if took > test.atMost {
				t.Errorf("the handover took %v, want at most %v", took, test.atMost)
			}

			h.create("another", "10.0.1.0/24", "")
			h.waitReady("another")
			if after := h.get("example"); after.ResourceVersion != before.ResourceVersion {
				t.Errorf("the status of the healthy Network was written: %v → %v", before.Status, after.Status)
			}
			var writes []string
			for _, request := range h.neutronRequests() {
				if request.Method != http.MethodGet {
					writes = append(writes, request.Method+" "+request.Path)
				}
			}
			if diff := cmp.Diff([]string{"POST /v2.0/networks", "POST /v2.0/subnets"}, writes); diff != "" {
				t.Errorf("writes to Neutron differ (-for the new Network +got):\n%s", diff)
			}
			h.wantCounts(2, 2)
		})
	}
}

// TestLostLease: a leader is paused between its decision to create a network and the
// request to Neutron, and another replica takes over. When the first one continues, it
// sends nothing to Neutron any more, although it has not read the Lease yet. Then it
// exits.
func TestLostLease(t *testing.T) {
	h := newHarness(t)
	kubernetes := h.proxyKubernetes()
	first := h.startReplica("-master="+kubernetes.URL, "-v=5", "-leader-elect-renew-deadline=3s", "-leader-elect-retry-period=1s")
	first.waitFor(t, `"Starting workers"`)
	second := h.startReplica()

	// The first one has set the finalizer and waits for the response. Its Lease was just
	// renewed, so after the pause, client-go begins a new attempt to renew it.
	decided := kubernetes.hold(isPatch)
	h.create("example", "10.0.0.0/24", "")
	respond := <-decided
	renewals := strings.Count(first.log.String(), renewed)
	h.eventually(func() error {
		if strings.Count(first.log.String(), renewed) == renewals {
			return errors.New("the Lease was not renewed")
		}
		return nil
	})
	first.signal(t, syscall.SIGSTOP)
	close(respond)
	second.waitFor(t, `"Starting workers"`)
	h.waitReady("example")

	reads := kubernetes.hold(isLeaseRequest)
	h.forgetRequests()
	first.signal(t, syscall.SIGCONT)
	first.waitFor(t, `"Added finalizer"(.|\n)*"Sync ended early`)
	close(<-reads)
	first.wantExit(t, 1)
	if !strings.Contains(first.log.String(), "Lost the lease") {
		t.Error("the lost Lease was not logged")
	}
	for _, request := range h.neutronRequests() {
		if request.Method != http.MethodGet {
			t.Errorf("Neutron received %s %s", request.Method, request.Path)
		}
	}
	h.wantCounts(1, 1)
}

// renewed is what client-go logs with -v=5.
const renewed = "Successfully renewed lease"

func isPatch(r *http.Request) bool { return r.Method == http.MethodPatch }

func isLeaseRequest(r *http.Request) bool { return strings.Contains(r.URL.Path, "/leases/") }

// TestStandbyStops: a replica that waits for the Lease stops cleanly after
// SIGTERM.
func TestStandbyStops(t *testing.T) {
	h := newHarness(t)
	first := h.startReplica()
	first.waitFor(t, `"Starting workers"`)
	second := h.startReplica()
	wasHolder := h.holder()
	second.signal(t, syscall.SIGTERM)
	second.wantExit(t, 0)
	if h.holder() != wasHolder || second.isWorking() {
		t.Error("the standby has started leading")
	}
}

// TestShutdownTimeoutKeepsLease: a replica that canceled a request at shutdown
// does not release the Lease, which expires.
func TestShutdownTimeoutKeepsLease(t *testing.T) {
	h := newHarness(t)
	reached := h.holdCreateNetwork()
	first := h.startReplica("-shutdown-timeout=100ms")
	first.waitFor(t, `"Starting workers"`)
	h.create("example", "10.0.0.0/24", "")
	release := <-reached
	defer close(release)
	holder := h.holder()
	first.signal(t, syscall.SIGTERM)
	first.wantExit(t, 1)
	if h.holder() != holder {
		t.Errorf("the Lease is held by %q, want %q", h.holder(), holder)
	}
}

// TestStandbyRefreshesCache: a replica that starts leading does not rely on what
// its cache of Neutron's state contained before the former leader's changes.
func TestStandbyRefreshesCache(t *testing.T) {
	h := newHarness(t)
	stop := h.startController()
	h.create("example", "10.0.0.0/24", "10.0.0.1")
	h.waitReady("example")
	ctx, cancel := context.WithCancel(t.Context())
	h.settings.reconcile.Alone = false
	standby, start := h.newController(ctx)
	start()
	if !standby.WarmUp(ctx) {
		t.Fatal("the informers have not synced")
	}
	h.edit("10.0.0.0/24", "10.0.0.2")
	h.waitReady("example")
	stop()
	h.edit("10.0.0.0/24", "10.0.0.1")

	ended := make(chan error, 1)
	go func() { ended <- standby.Run(ctx, 1, time.Minute) }()
	h.waitReady("example")
	h.wantExample("10.0.0.0/24", "10.0.0.1")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestSecondControllerWaits: without any flag for it, of two controllers of a cluster
// one reconciles. The other one names it in its log and in /readyz, and starts when
// the first one stops.
func TestSecondControllerWaits(t *testing.T) {
	t.Parallel()
	own := ownCluster(t)
	start := func() *program {
		p := newDefaultProgram(t, "-kubeconfig="+own.Kubeconfig(), "-health-probe-bind-address=127.0.0.1:0")
		p.start(t)
		return p
	}
	first := start()
	first.waitFor(t, `"Starting workers"`)
	lease := leaseOf(t, own, controllerName)
	if lease == nil {
		t.Fatal("the first controller leads without a Lease in kube-system")
	}
	holder := *lease.Spec.HolderIdentity
	if host, _ := os.Hostname(); !strings.HasPrefix(holder, host+"_") {
		t.Errorf("the holder is %s, want the name of this host in it", holder)
	}
	second := start()
	second.waitFor(t, `"Waiting: another controller holds the Lease and reconciles.*kill -9.*holder="`+holder+`" expiresWithin="17s"`)
	if err := responds(second.readyz(), "ok: waiting for the Lease kube-system/samplecrd-controller, which "+holder+" holds"); err != nil {
		t.Error(err)
	}
	if err := responds(first.readyz(), "ok\n"); err != nil {
		t.Error(err)
	}
	if strings.Contains(second.log.String(), `"Starting workers"`) {
		t.Error("both controllers reconcile")
	}
	first.signal(t, syscall.SIGTERM)
	first.wantExit(t, 0)
	second.waitFor(t, `"Starting workers"`)
	if err := responds(second.readyz(), "ok\n"); err != nil {
		t.Error(err)
	}
}

// TestLeaseFlags: controllers with different names of the Lease reconcile at the same
// time, and -leader-elect=false needs no Lease.
func TestLeaseFlags(t *testing.T) {
	t.Parallel()
	own := ownCluster(t)
	for _, name := range []string{"of-a", "of-b"} {
		p := newDefaultProgram(t, "-kubeconfig="+own.Kubeconfig(), "-namespaces=default", "-leader-elect-resource-name="+name)
		p.start(t)
		p.waitFor(t, `"Starting workers"`)
		if leaseOf(t, own, name) == nil {
			t.Errorf("there is no Lease %s", name)
		}
	}
	p := newDefaultProgram(t, "-kubeconfig="+own.Kubeconfig(), "-namespaces=default", "-leader-elect=false")
	p.start(t)
	p.waitFor(t, `"Starting workers"`)
	if leaseOf(t, own, controllerName) != nil {
		t.Error("a controller without leader election has a Lease")
	}
}

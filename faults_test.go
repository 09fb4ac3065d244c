package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
)

// In the tests of this file, Neutron is slow, broken or hostile, or the cache of its state
// is outdated. What a user sees of that is in test/stories (outages, refused, drift).

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

// TestLateRequest: a process is killed while its request to create is in flight, and
// the next process starts at once. Neutron takes any time to execute the request:
// it is executed before each request of the next process in turn, or after the last one.
// In the end there is one network with one subnet, and the Network is ready.
//
// TestCrashes has the other cases: Neutron executes the request before the next
// process starts, or never.
func TestLateRequest(t *testing.T) {
	t.Parallel()
	for _, request := range []string{"POST /v2.0/networks", "POST /v2.0/subnets"} {
		t.Run(request, func(t *testing.T) {
			for n := range newHarness(t).finishLate(request, 0) {
				t.Run(fmt.Sprintf("before request %d", n+1), func(t *testing.T) { newHarness(t).finishLate(request, n+1) })
			}
		})
	}
}

// finishLate kills a process at its first such request, and starts another one. Neutron executes
// the request of the first process before the n-th request that it receives from the
// second one, or, if n is 0, when the second one has finished. finishLate returns
// the number of requests that the second process sent before.
func (h *harness) finishLate(request string, n int) (requests int) {
	h.Helper()
	story := crashStories["create"]
	story.begin(h)
	first := &mortal{h: h, first: request, death: farAfter}
	first.run(func(*harness) error { return errors.New("the process has not died") })

	var sent atomic.Int32
	var executed atomic.Bool
	execute := func() { first.late(); executed.Store(true) }
	hold := func(*http.Request) {
		if int(sent.Add(1)) == n {
			execute()
		}
	}
	h.hold.Store(&hold)
	h.settings.drift.ResyncPeriod = shortResync
	h.startController()
	if n == 0 {
		h.eventually(func() error { return errors.Join(story.check(h), h.isIdle()) })
		requests = int(sent.Load())
		execute()
	}
	h.eventually(func() error {
		if !executed.Load() {
			return fmt.Errorf("the second process has sent %d requests", sent.Load())
		}
		return errors.Join(story.check(h), h.isIdle())
	})
	return requests
}

// TestLateRequestBeforeDeletion: the request of the killed process is executed after the
// second process has created the network, and no list shows that. A deletion leaves
// neither of the two networks behind.
func TestLateRequestBeforeDeletion(t *testing.T) {
	h := newHarness(t)
	first := &mortal{h: h, first: "POST /v2.0/networks", death: farAfter}
	crashStories["create"].begin(h)
	first.run(func(*harness) error { return errors.New("the process has not died") })
	started := time.Now()
	h.startController()
	h.waitReady("example")
	first.late()
	h.wantCounts(2, 1)
	h.eventually(func() error {
		if left := 2*h.settings.reconcile.MaxInFlight - time.Since(started); left > 0 {
			return fmt.Errorf("Neutron may still execute requests of the first process for %v", left)
		}
		return nil
	})

	h.delete("example")
	h.waitGone("example")
	h.wantCounts(0, 0)
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

// TestRouterAttachedLate: Neutron executes the request of a killed process after the
// router was removed from the spec. The status names the router until no request can be
// pending, so that the next process detaches it.
func TestRouterAttachedLate(t *testing.T) {
	story := crashStories["create with a router"]
	h := newHarness(t)
	attach := slices.IndexFunc(story.lives(h), func(r string) bool { return strings.HasSuffix(r, "/add_router_interface") })
	h.delete("example")
	stop := h.startController()
	h.waitGone("example")
	stop()

	h.settings.reconcile.MaxInFlight = time.Second
	h.createRouted()
	first := &mortal{h: h, at: attach + 1, death: farAfter}
	first.run(func(*harness) error { return errors.New("the process has not died") })
	h.patch("example", `{"spec":{"router":null}}`)
	h.startController()
	h.waitCondition("example", metav1.ConditionFalse, "NeutronUnavailable", "Neutron may still execute an earlier create request")
	first.late()
	h.eventually(func() error { return h.hasRouter("") })
	h.eventually(h.isIdle)
	if routers := h.attachedTo(h.get("example").Status.NetworkID); routers != nil {
		t.Errorf("the network is attached to %v", routers)
	}
}

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

// TestOutdatedCache: another client changes something in Neutron after the last list.
// The request that follows from the cache is rejected. Then the controller looks, and
// does the right thing.
func TestOutdatedCache(t *testing.T) {
	edit := func(h *harness) { h.edit("10.0.0.0/24", "10.0.0.9") }
	isEdited := func(h *harness) { h.waitReady("example"); h.wantExample("10.0.0.0/24", "10.0.0.9") }
	remove := func(h *harness) { h.delete("example") }
	for name, test := range map[string]struct {
		change   func(h *harness, networkID, subnetID string)
		act      func(*harness)
		check    func(*harness)
		rejected string // the request that follows from the cache, or empty for none
	}{
		"a subnet was created on the network to delete": {
			func(h *harness, networkID, _ string) {
				h.post("/v2.0/subnets", `{"subnet": {"network_id": "`+networkID+`", "cidr": "10.9.0.0/24", "ip_version": 4}}`)
			},
			remove,
			func(h *harness) {
				h.waitCondition("example", metav1.ConditionFalse, "InUse", "subnets that do not belong to this Network")
				h.wantCounts(1, 2)
			},
			"DELETE 412",
		},
		"the network to delete is gone": {
			func(h *harness, networkID, _ string) { h.do(http.MethodDelete, "/v2.0/networks/"+networkID, "", nil) },
			remove,
			func(h *harness) { h.waitGone("example"); h.wantCounts(0, 0) },
			"DELETE 404",
		},
		"the subnet to edit was changed": {
			func(h *harness, _, subnetID string) {
				h.do(http.MethodPut, "/v2.0/subnets/"+subnetID, `{"subnet": {"enable_dhcp": false}}`, nil)
			},
			edit, isEdited, "PUT 412",
		},
		"the edit is possible only together with the correction of a change": {
			func(h *harness, _, subnetID string) {
				h.patch("example", `{"spec":{"allocationPools":[{"start":"10.0.0.50","end":"10.0.0.99"}]}}`)
				h.waitReady("example")
				h.do(http.MethodPut, "/v2.0/subnets/"+subnetID, `{"subnet": {"allocation_pools": [{"start": "10.0.0.2", "end": "10.0.0.99"}]}}`, nil)
			},
			edit, isEdited, "PUT 409",
		},
		"the subnet to edit is gone": {
			func(h *harness, _, subnetID string) { h.do(http.MethodDelete, "/v2.0/subnets/"+subnetID, "", nil) },
			edit, isEdited, "PUT 404",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.startController()
			h.create("example", "10.0.0.0/24", "")
			h.waitReady("example")
			networkID, subnetID := h.idsInNeutron("example")
			test.change(h, networkID, subnetID)
			h.forgetRequests()
			test.act(h)
			test.check(h)
			var writes []string
			for _, request := range h.neutronRequests() {
				if request.Method != http.MethodGet {
					writes = append(writes, fmt.Sprintf("%s %d", request.Method, request.Status))
				}
			}
			if first := append(writes, "")[0]; first != test.rejected {
				t.Errorf("writes to Neutron (-first +got):\n%s", cmp.Diff([]string{test.rejected}, writes))
			}
		})
	}
}

// TestOutdatedCacheKeepsRecord: a list lacks the subnet, and the look that follows
// fails. Then the status still records the subnet.
func TestOutdatedCacheKeepsRecord(t *testing.T) {
	h := newHarness(t)
	stop := h.startController()
	h.create("example", "10.0.0.0/24", "")
	before := h.waitReady("example").Status
	stop()
	h.do(http.MethodDelete, "/v2.0/subnets/"+before.SubnetID, "", nil)
	h.neutronTransport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet && r.URL.Path == "/v2.0/networks" && !listsAll(r.URL.Path, r.URL.RawQuery) {
				return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody, Request: r}, nil
			}
			return next.RoundTrip(r)
		})
	}
	h.startController()

	after := h.waitCondition("example", metav1.ConditionFalse, "NeutronUnavailable", "").Status
	if after.SubnetID != before.SubnetID || after.CIDR != before.CIDR || after.Gateway != before.Gateway {
		t.Errorf("the status records the subnet %q with %q and %q, want %q with %q and %q",
			after.SubnetID, after.CIDR, after.Gateway, before.SubnetID, before.CIDR, before.Gateway)
	}
}

// rewriteAnswers lets the controllers that start later see other answers of
// Neutron.
func (h *harness) rewriteAnswers(rewrite func(r *http.Request, body string) string) {
	h.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		h.neutron.ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		w.Header().Del("Content-Length")
		w.WriteHeader(answer.Code)
		if answer.Code != http.StatusNoContent {
			_, _ = io.WriteString(w, rewrite(r, answer.Body.String()))
		}
	}))
	h.Cleanup(server.Close)
	h.neutronURL = server.URL
}

// TestEndlessList: a list of Neutron's state that does not end delays neither the
// start of the controller nor its end.
func TestEndlessList(t *testing.T) {
	h := newHarness(t)
	hold := func(r *http.Request) {
		if r.Method == http.MethodGet && listsAll(r.URL.Path, r.URL.RawQuery) {
			h.untilTestEnds(r.Context().Done())
		}
	}
	h.hold.Store(&hold)
	h.settings.drift.StartTimeout = 50 * time.Millisecond
	stop := h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")
	if err := h.hasLogged("starting without it"); err != nil {
		t.Error(err)
	}
	if err := h.watchdog.Check(0); err == nil {
		t.Error("the watchdog does not watch the list")
	}
	began := time.Now()
	stop()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the controller took %v to stop", took)
	}
}

// TestNotConverging: a Neutron whose answers never match the requests does not keep
// the controller busy.
func TestNotConverging(t *testing.T) {
	h := newHarness(t)
	h.rewriteAnswers(func(_ *http.Request, body string) string {
		return strings.ReplaceAll(body, `"name":"`+h.namespace+`/example"`, `"name":"another"`)
	})
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitCondition("example", metav1.ConditionFalse, "NotConverging", "Neutron's responses do not match the requests")
	h.eventually(func() error { return errors.Join(h.isIdle(), h.hasLogged("Sync failed; retrying later")) })
	updates := 0
	for _, request := range h.neutronRequests() {
		if request.Method == http.MethodPut {
			updates++
		}
	}
	if updates == 0 || updates > 60 {
		t.Errorf("Neutron received %d updates, want 1 to 60", updates)
	}
	h.wantCounts(1, 0)
}

// TestStuckWorker: the watchdog finds a worker whose request gets no response.
func TestStuckWorker(t *testing.T) {
	h := newHarness(t)
	reached := h.holdCreateNetwork()
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	release := <-reached
	if err := h.watchdog.Check(0); err == nil || !strings.Contains(err.Error(), h.namespace+"/example") {
		t.Errorf("Check() = %v, want the Network whose request has no response", err)
	}
	close(release)
	h.waitReady("example")
	h.eventually(func() error { return h.watchdog.Check(0) })
}

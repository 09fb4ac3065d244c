package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
)

// The tests of this file have what happens between two mechanisms: an object that vanishes
// in spite of its finalizer, a response that is lost, a controller that was paused, and
// another one that still runs. In the end, Neutron has what the objects need, what
// somebody retained, and nothing else of ours.

// proxy is the connection of one controller to Neutron. Both functions are optional. Neutron
// executes a request even if its client has given up.
type proxy struct {
	h      *harness
	before func(*http.Request) // called before Neutron gets a request
	after  func(*http.Request) // called before the controller gets the response
}

// connectThrough makes the next controllers use a proxy.
func (h *harness) connectThrough(p *proxy) {
	p.h = h
	server := httptest.NewServer(p)
	h.Cleanup(server.Close)
	h.neutronURL = server.URL
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if p.before != nil {
		p.before(r)
	}
	request := r.Clone(context.Background())
	request.Body = io.NopCloser(strings.NewReader(string(body)))
	response := httptest.NewRecorder()
	p.h.neutron.ServeHTTP(response, request)
	if p.after != nil {
		p.after(r)
	}
	maps.Copy(w.Header(), response.Header())
	w.WriteHeader(response.Code)
	_, _ = w.Write(response.Body.Bytes())
}

// stop holds the first request that matches. Reached is closed when it arrives, and a
// call of release lets it go on.
type stop struct {
	matches func(*http.Request) bool
	reached chan struct{}
	going   chan struct{}
	once    sync.Once
}

func stopAt(matches func(*http.Request) bool) *stop {
	return &stop{matches: matches, reached: make(chan struct{}), going: make(chan struct{})}
}

func (s *stop) hold(h *harness) func(*http.Request) {
	return func(r *http.Request) {
		if s.matches(r) {
			s.once.Do(func() { close(s.reached); h.untilTestEnds(s.going) })
		}
	}
}

func (s *stop) release() { close(s.going) }

func creates(kind string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Path == "/v2.0/"+kind }
}

// vanish removes example in spite of its finalizer, as the API server does if a deletion
// is concurrent with the patch that sets the finalizer (kubernetes/kubernetes#77988).
func (h *harness) vanish() {
	h.Helper()
	h.patch("example", `{"metadata":{"finalizers":null}}`)
	h.delete("example")
	h.waitGone("example")
}

// stays waits until a condition is true and the controller has made several lists since.
func (h *harness) stays(check func() error) {
	h.Helper()
	h.eventually(check)
	h.waitLists(10) // each of networks and subnets
	if err := check(); err != nil {
		h.Error(err)
	}
}

// TestVanishedTakeOver: a Network takes over a retained network, and vanishes. The network
// is retained again, also with -delete-orphans.
func TestVanishedTakeOver(t *testing.T) {
	h := newHarness(t)
	h.settings.drift.ResyncPeriod, h.settings.drift.OrphanGracePeriod = shortResync, shortResync
	retain := samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", DeletionPolicy: samplecrdv1.DeletionPolicyRetain}
	end := h.startController()
	h.createWith("example", retain)
	id := h.waitReady("example").Status.NetworkID
	h.delete("example")
	h.waitGone("example")
	end()

	takeOver := stopAt(func(r *http.Request) bool { return r.Method == http.MethodPut })
	h.connectThrough(&proxy{after: takeOver.hold(h)})
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	<-takeOver.reached
	h.vanish()
	takeOver.release()
	h.stays(func() error {
		all := h.inNeutron()
		if len(all.Networks) != 1 || all.Networks[0].ID != id || all.Networks[0].Description != h.owner("example").RetainedMarker() {
			return fmt.Errorf("Neutron has %+v, want the retained network %s", all, id)
		}
		return nil
	})
	h.create("example", "10.0.0.0/24", "")
	if got := h.waitReady("example").Status.NetworkID; got != id {
		t.Errorf("the next Network uses %s, want %s", got, id)
	}
}

// TestVanishedBeforeResponse: the response to the create request is lost, and the Network
// vanishes meanwhile.
func TestVanishedBeforeResponse(t *testing.T) {
	h := newHarness(t)
	h.settings.drift.ResyncPeriod = shortResync
	create := stopAt(creates("networks"))
	h.connectThrough(&proxy{after: func(r *http.Request) {
		if create.hold(h)(r); create.matches(r) {
			panic(http.ErrAbortHandler) // the response is lost
		}
	}})
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	<-create.reached
	h.vanish()
	create.release()
	h.stays(func() error { return h.hasCounts(0, 0) })
}

// TestVanishedThenLate: the request is executed long after the Network has vanished and
// the controller has stopped waiting for the response.
func TestVanishedThenLate(t *testing.T) {
	h := newHarness(t)
	h.settings.drift.ResyncPeriod = shortResync
	h.timeout = 50 * time.Millisecond
	create := stopAt(creates("networks"))
	h.connectThrough(&proxy{before: create.hold(h)})
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	<-create.reached
	h.vanish()
	h.stays(func() error { return h.hasCounts(0, 0) })
	executed := h.waitExecuted(creates("networks"))
	create.release()
	executed()
	h.stays(func() error { return h.hasCounts(0, 0) })
}

// waitExecuted returns a function that waits until Neutron has executed such a request
// since.
func (h *harness) waitExecuted(matches func(*http.Request) bool) (wait func()) {
	count := func() (n int) {
		for _, r := range h.neutron.Requests() {
			if matches(httptest.NewRequest(r.Method, r.Path, nil)) && r.Status < 300 {
				n++
			}
		}
		return n
	}
	before := count()
	return func() {
		h.Helper()
		h.eventually(func() error {
			if count() == before {
				return errors.New("the request was not executed")
			}
			return nil
		})
	}
}

// TestLateCreate: a process is killed while its create request is in flight, and the next
// one deletes the Network. Neutron executes the request long after that.
func TestLateCreate(t *testing.T) {
	h := newHarness(t)
	first := &mortal{h: h, first: "POST /v2.0/networks", death: farAfter}
	crashStories["create"].begin(h)
	first.run(func(*harness) error { return errors.New("the process has not died") })
	h.settings.drift.ResyncPeriod = shortResync
	h.delete("example")
	h.startController()
	h.waitGone("example")
	h.waitLists(6)
	first.late()
	h.stays(func() error { return h.hasCounts(0, 0) })
}

// TestLateSubnetOnAdopted: a process is killed while it creates a subnet on an adopted
// network, and the next one deletes the Network. Neutron executes the request long after
// that. The network, which is somebody else's, is left without the subnet.
func TestLateSubnetOnAdopted(t *testing.T) {
	h := newHarness(t)
	h.settings.reconcile.AllowAdoption = true
	id := h.postNetwork("mine", "mine")
	h.createAdopting("example", "10.0.0.0/24", id)
	first := &mortal{h: h, first: "POST /v2.0/subnets", death: farAfter}
	first.run(func(*harness) error { return errors.New("the process has not died") })
	h.settings.drift.ResyncPeriod = shortResync
	h.delete("example")
	h.startController()
	h.waitGone("example")
	h.waitLists(6)
	executed := h.waitExecuted(creates("subnets"))
	first.late()
	executed()
	h.stays(func() error { return h.hasCounts(1, 0) })
}

// TestDeletedWithDefinition: while the CustomResourceDefinition is being deleted, nothing is
// deleted in Neutron, and the condition says how to confirm it.
func TestDeletedWithDefinition(t *testing.T) {
	h := newHarness(t)
	h.settings.drift.ResyncPeriod, h.settings.drift.OrphanGracePeriod = shortResync, shortResync
	var isDeleted atomic.Bool
	isDeleted.Store(true)
	h.settings.reconcile.IsDefinitionDeleted = func(context.Context) (bool, error) { return isDeleted.Load(), nil }
	h.postNetwork("orphan", h.marker("orphan"))
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")
	h.edit("10.0.1.0/24", "")
	h.waitReady("example") // an edit is not affected
	h.delete("example")
	h.waitCondition("example", metav1.ConditionFalse, "DefinitionDeleted", "kubectl annotate crd networks.samplecrd.k8s.io samplecrd.k8s.io/allow-deletion=true")
	h.waitLists(6)
	h.wantCounts(2, 1)
	isDeleted.Store(false)
	h.waitGone("example")
	h.eventually(func() error { return h.hasCounts(0, 0) })
}

// TestPausedController: a controller is paused between its look and its create request, and
// no Lease stops it. Meanwhile another one creates the network. Whenever the first one goes
// on, the network that the status names stays, and nothing is left after a deletion.
func TestPausedController(t *testing.T) {
	for name, deleted := range map[string]bool{"the Network stays": false, "the Network was deleted meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.settings.drift.ResyncPeriod = shortResync
			url, create := h.neutronURL, stopAt(creates("networks"))
			h.connectThrough(&proxy{before: create.hold(h)})
			endFirst := h.startController()
			h.create("example", "10.0.0.0/24", "")
			<-create.reached

			h.neutronURL = url
			h.startController()
			id := h.waitReady("example").Status.NetworkID
			if deleted {
				h.delete("example")
				h.waitGone("example")
			}
			executed := h.waitExecuted(creates("networks"))
			ended := make(chan struct{})
			go func() { endFirst(); close(ended) }()
			create.release()
			executed()
			<-ended

			if deleted {
				h.stays(func() error { return h.hasCounts(0, 0) })
				return
			}
			h.stays(func() error { return errors.Join(h.hasCounts(1, 1), h.hasReady("example")) })
			if got := h.get("example").Status.NetworkID; got != id {
				t.Errorf("the status names %s, want %s", got, id)
			}
			h.delete("example")
			h.waitGone("example")
			h.stays(func() error { return h.hasCounts(0, 0) })
		})
	}
}

// TestNetworkOfAnotherController: two controllers create a network each. The controller
// whose network the status does not name deletes it, although the Network is gone by then.
// The other controller did not see it.
func TestNetworkOfAnotherController(t *testing.T) {
	h := newHarness(t)
	url := h.neutronURL
	createB, subnetA := stopAt(creates("networks")), stopAt(creates("subnets"))
	h.connectThrough(&proxy{before: createB.hold(h)})
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	<-createB.reached // the other one looks now, and finds nothing

	h.neutronURL = url
	h.connectThrough(&proxy{before: subnetA.hold(h)})
	h.startController()
	<-subnetA.reached // it has created its network
	createB.release()
	h.waitReady("example")
	h.delete("example")
	h.waitGone("example")
	subnetA.release()
	h.eventually(func() error { return h.hasCounts(0, 0) })
}

// TestFinalizerIsNotRemovedOverAnotherStatus: a controller looks, and finds nothing. Before
// it removes the finalizer, another one names its network in the status.
func TestFinalizerIsNotRemovedOverAnotherStatus(t *testing.T) {
	h := newHarness(t)
	url := h.neutronURL
	createA := stopAt(creates("networks"))
	lookB := stopAt(func(r *http.Request) bool { return r.Method == http.MethodGet && r.URL.Query().Has("name") })
	h.connectThrough(&proxy{before: createA.hold(h)})
	status := stopAt(func(r *http.Request) bool {
		return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/example/status")
	})
	h.transport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			status.hold(h)(r)
			return response, err
		})
	}
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	<-createA.reached
	h.delete("example")

	h.neutronURL, h.transport = url, nil
	h.connectThrough(&proxy{after: lookB.hold(h)})
	h.startController()
	<-lookB.reached
	createA.release()
	<-status.reached            // A has named its network, and waits for the response
	h.eventually(func() error { // B has received that
		if n, err := h.controller.networks.Get(h.key()); err != nil || n == nil || n.Status.NetworkID == "" {
			return fmt.Errorf("the cache has %v, %w", n, err)
		}
		return nil
	})
	lookB.release()
	h.waitGone("example")
	h.wantCounts(0, 0) // B has deleted the network before it removed the finalizer
	status.release()
}

// TestRetainedRouter: a Network with a router is retained, created again, and deleted.
func TestRetainedRouter(t *testing.T) {
	h := newHarness(t)
	h.settings.drift.ResyncPeriod = shortResync
	h.postRouter("edge")
	h.startController()
	spec := samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", Router: &samplecrdv1.RouterReference{Name: "edge"}, DeletionPolicy: samplecrdv1.DeletionPolicyRetain}
	h.createWith("example", spec)
	h.waitReady("example")
	h.delete("example")
	h.waitGone("example")

	spec.DeletionPolicy = ""
	h.createWith("example", spec)
	h.eventually(func() error { return h.hasRouter("edge") })
	h.delete("example")
	h.waitGone("example")
	h.wantCounts(0, 0)
}

// TestRetainedRouterIsOmitted: the second spec omits the router. The condition says what to
// do, and the deletion completes then.
func TestRetainedRouterIsOmitted(t *testing.T) {
	h := newHarness(t)
	h.settings.drift.ResyncPeriod = shortResync
	h.postRouter("edge")
	h.startController()
	h.createRouted()
	h.patch("example", `{"spec":{"deletionPolicy":"Retain"}}`)
	h.eventually(func() error { return h.hasRouter("edge") })
	h.delete("example")
	h.waitGone("example")

	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")
	h.delete("example")
	h.eventually(func() error {
		ready := h.get("example").Status.Conditions[0]
		if !strings.Contains(ready.Message, "Detach them first (openstack router remove subnet)") {
			return fmt.Errorf("the condition is %+v", ready)
		}
		return nil
	})
	_, subnet := h.idsInNeutron("example")
	h.do(http.MethodPut, "/v2.0/routers/"+h.routerID("edge")+"/remove_router_interface", `{"subnet_id":"`+subnet+`"}`, nil)
	h.waitGone("example")
	h.wantCounts(0, 0)
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/deployments"
)

// death is the way in which a process is killed at a request.
type death string

const (
	beforeIt death = "before"   // the request is not sent
	afterIt  death = "after"    // it is applied, and the response is lost
	farAfter death = "late"     // it is applied when the next process has finished
	handOver death = "replaced" // as after, and the next process is a standby whose caches are filled
)

// mortal connects a controller to Neutron and Kubernetes. It simulates kill -9 at
// the n-th request: after it, no request gets through.
type mortal struct {
	h        *harness
	at       int    // 0 if it lives on
	first    string // kills at the first such request instead, as in "POST /v2.0/networks"
	death    death
	workers  int         // defaults to 5
	vanishes *vanishment // if set

	mu       sync.Mutex
	requests []string
	dead     chan struct{}
	late     func() // applies the request
}

// next counts a request. It returns the death at this request, which is empty if
// the process lives on. If the process is dead already, ok is false.
func (m *mortal) next(request string) (fate death, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.dead:
		return "", false
	default:
	}
	m.requests = append(m.requests, request)
	if len(m.requests) != m.at && request != m.first {
		return "", true
	}
	close(m.dead)
	return m.death, true
}

// vanishment makes example vanish in spite of its finalizer, once, right before a request
// to Neutron. Another request undoes what that one does.
type vanishment struct {
	sync.Once
	h           *harness
	at, undoing string // the beginning of the requests
}

func (v *vanishment) happen() { v.Do(func() { v.h.vanish() }) }

// hasUndone reports whether the process has sent the request that undoes what was
// requested for an object that vanished.
func (m *mortal) hasUndone() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	begin := slices.IndexFunc(m.requests, func(request string) bool { return strings.HasPrefix(request, m.vanishes.at) })
	return slices.ContainsFunc(m.requests[begin+1:], func(request string) bool { return strings.HasPrefix(request, m.vanishes.undoing) })
}

// ServeHTTP forwards requests to Neutron.
func (m *mortal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m.vanishes != nil && strings.HasPrefix(r.Method+" "+r.URL.Path, m.vanishes.at) {
		m.vanishes.happen()
	}
	fate, ok := m.next(r.Method + " " + r.URL.Path)
	switch {
	case ok && fate == "":
		m.h.neutron.ServeHTTP(w, r)
		return
	case fate == afterIt || fate == handOver:
		m.h.neutron.ServeHTTP(httptest.NewRecorder(), r)
	case fate == farAfter:
		body, _ := io.ReadAll(r.Body)
		again := r.Clone(context.Background())
		m.mu.Lock()
		m.late = func() {
			again.Body = io.NopCloser(strings.NewReader(string(body)))
			m.h.neutron.ServeHTTP(httptest.NewRecorder(), again)
		}
		m.mu.Unlock()
	}
	panic(http.ErrAbortHandler) // no response
}

// transport forwards requests to Kubernetes. Reads are not counted.
func (m *mortal) transport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "/networks") {
			return next.RoundTrip(r)
		}
		fate, ok := m.next(r.Method + " " + r.URL.Path)
		if ok && fate != beforeIt {
			response, err := next.RoundTrip(r)
			if fate == "" {
				return response, err
			}
			if err == nil {
				_ = response.Body.Close()
			}
		}
		return nil, errUnreachable
	})
}

// run runs a controller until it dies, or until the check passes. It returns the
// requests that the controller sent.
func (m *mortal) run(check func(*harness) error) []string {
	m.dead = make(chan struct{})
	server := httptest.NewServer(m)
	defer server.Close()
	immortal := m.h.neutronURL
	m.h.neutronURL, m.h.transport = server.URL, m.transport
	defer func() { m.h.neutronURL, m.h.transport = immortal, nil }()
	stop := m.h.startWorkers(cmp.Or(m.workers, 5))
	defer stop()
	m.h.eventually(func() error {
		select {
		case <-m.dead:
			return nil
		default:
			return check(m.h)
		}
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests) // until it ends, the controller may send more
}

// createExample is the start of many stories.
func createExample(h *harness) { h.create("example", "10.0.0.0/24", ""); h.waitReady("example") }

// crashStory describes work in which a process can die: the objects at the start,
// and the expected result.
type crashStory struct {
	with   func(*settings)
	varies bool           // the number of requests depends on the order of events
	before func(*harness) // runs with a controller
	then   func(*harness) // runs without one
	// vanishes makes example vanish, if it is set.
	vanishes *vanishment
	check    func(*harness) error
}

// TestCrashes kills a process before and after each request to Neutron and each
// write to Kubernetes, in each kind of work. The next process must reach the
// desired state: no duplicate, no leftover, no lost deletion. It starts then, or it
// is a standby that takes over.
func TestCrashes(t *testing.T) {
	t.Parallel()
	for name, story := range crashStories {
		t.Run(name, func(t *testing.T) {
			requests := story.lives(newHarness(t))
			t.Logf("%d requests: %s", len(requests), strings.Join(requests, ", "))
			for i, request := range requests {
				isRead, isNeutron := strings.HasPrefix(request, "GET"), strings.Contains(request, "/v2.0/")
				for _, death := range []death{beforeIt, afterIt, farAfter, handOver} {
					if death == farAfter && (isRead || !isNeutron) || death == handOver && isRead {
						continue // a read has no effect
					}
					t.Run(fmt.Sprintf("%s %d %s", death, i+1, request), func(t *testing.T) {
						story.dies(newHarness(t), i+1, death)
					})
				}
			}
		})
	}
}

func (s crashStory) begin(h *harness) *vanishment {
	h.settings.reconcile.AllowAdoption = true
	if s.with != nil {
		s.with(&h.settings)
	}
	if s.before != nil {
		stop := h.startController()
		s.before(h)
		stop()
	}
	s.then(h)
	if s.vanishes == nil {
		return nil
	}
	return &vanishment{h: h, at: s.vanishes.at, undoing: s.vanishes.undoing}
}

// lives runs the story without a death.
func (s crashStory) lives(h *harness) []string {
	life := &mortal{h: h, vanishes: s.begin(h)}
	return life.run(func(h *harness) error {
		if life.vanishes != nil && !life.hasUndone() {
			return errors.New("nothing is undone yet")
		}
		return s.check(h)
	})
}

// dies runs the story with a death at the n-th request, and a second process that
// lives on.
func (s crashStory) dies(h *harness, n int, death death) {
	vanishes := s.begin(h)
	next := h.startController
	if death == handOver {
		next = h.standBy()
	}
	first := &mortal{h: h, at: n, death: death, vanishes: vanishes}
	first.run(func(h *harness) error {
		if s.varies && s.check(h) == nil {
			return nil // it needed fewer requests than the process that lived
		}
		return errors.New("the process has not died")
	})
	if vanishes != nil {
		vanishes.happen() // if the process has not come that far
	}

	h.settings.drift.ResyncPeriod = shortResync
	stop := next()
	h.eventually(func() error { return errors.Join(s.check(h), h.isIdle()) })
	if first.late != nil {
		first.late()
		h.eventually(func() error { return errors.Join(s.check(h), h.isIdle()) })
	}
	stop()

	// A third process has nothing to change: with one worker, the sync of example has
	// ended when another Network is ready.
	h.forgetRequests()
	third := &mortal{h: h, workers: 1}
	created := false
	requests := third.run(func(h *harness) error {
		if err := s.check(h); err != nil && !created {
			return err
		}
		if !created {
			h.create("last", "10.99.0.0/24", "")
			created = true
		}
		return h.hasReady("last")
	})
	requests = slices.DeleteFunc(requests, func(request string) bool { return strings.HasPrefix(request, "GET") })
	last := "/networks/last"
	if len(requests) != 4 || !strings.HasSuffix(requests[0], last) || requests[1] != "POST /v2.0/networks" || requests[2] != "POST /v2.0/subnets" || !strings.HasSuffix(requests[3], last+"/status") {
		h.Errorf("the third process sent %v, want only the requests that create another Network", requests)
	}
}

var crashStories = map[string]crashStory{
	"create": {
		then:  func(h *harness) { h.create("example", "10.0.0.0/24", "") },
		check: func(h *harness) error { return h.hasExample("10.0.0.0/24", "10.0.0.1") },
	},
	"edit": {
		before: func(h *harness) { h.create("example", "192.168.0.0/16", "192.168.0.1"); h.waitReady("example") },
		then:   func(h *harness) { h.edit("192.168.1.0/16", "192.168.1.1") },
		check:  func(h *harness) error { return h.hasExample("192.168.0.0/16", "192.168.1.1") },
	},
	"replace the subnet": {
		before: createExample,
		then:   func(h *harness) { h.edit("10.0.1.0/24", "") },
		check:  func(h *harness) error { return h.hasExample("10.0.1.0/24", "10.0.1.1") },
	},
	"delete": {
		before: createExample,
		then:   func(h *harness) { h.delete("example") },
		check:  func(h *harness) error { return h.hasOnlyLeft(0, 0) },
	},
	"drift: the network is gone": {
		before: createExample,
		then: func(h *harness) {
			networkID, _ := h.idsInNeutron("example")
			h.do(http.MethodDelete, "/v2.0/networks/"+networkID, "", nil)
		},
		check: func(h *harness) error { return h.hasExample("10.0.0.0/24", "10.0.0.1") },
	},
	"drift: the subnet is gone": {
		before: createExample,
		then: func(h *harness) {
			_, subnetID := h.idsInNeutron("example")
			h.do(http.MethodDelete, "/v2.0/subnets/"+subnetID, "", nil)
		},
		check: func(h *harness) error { return h.hasExample("10.0.0.0/24", "10.0.0.1") },
	},
	"drift: another gateway, and other names": {
		before: func(h *harness) { h.create("example", "10.0.0.0/24", "10.0.0.254"); h.waitReady("example") },
		then: func(h *harness) {
			networkID, subnetID := h.idsInNeutron("example")
			h.do(http.MethodPut, "/v2.0/subnets/"+subnetID, `{"subnet":{"gateway_ip":null,"name":"mine"}}`, nil)
			h.do(http.MethodPut, "/v2.0/networks/"+networkID, `{"network":{"description":"mine"}}`, nil)
		},
		check: func(h *harness) error { return h.hasExample("10.0.0.0/24", "10.0.0.254") },
	},
	"retain": {
		before: func(h *harness) {
			h.create("example", "10.0.0.0/24", "")
			h.patch("example", `{"spec":{"deletionPolicy":"Retain"}}`)
			h.waitReady("example")
		},
		then:  func(h *harness) { h.delete("example") },
		check: func(h *harness) error { return h.hasOnlyLeft(1, 1) },
	},
	"retained, then created again": {
		before: func(h *harness) {
			h.create("example", "10.0.0.0/24", "")
			h.patch("example", `{"spec":{"deletionPolicy":"Retain"}}`)
			h.waitReady("example")
			h.delete("example")
			h.waitGone("example")
		},
		then:  func(h *harness) { h.create("example", "10.0.0.0/24", "10.0.0.9") },
		check: func(h *harness) error { return h.hasExample("10.0.0.0/24", "10.0.0.9") },
	},
	"adopt": {
		then: func(h *harness) { h.createAdopting("example", "10.0.0.0/24", h.postNetwork("mine", "mine")) },
		check: func(h *harness) error {
			return errors.Join(h.hasReady("example"), h.hasCounts(1, 1))
		},
	},
	"create with settings and tags": {
		then:  func(h *harness) { h.createWith("example", specWithSettings()) },
		check: func(h *harness) error { return h.hasSettings(1400, "blue", "green") },
	},
	"remove settings and tags": {
		before: func(h *harness) { h.createWith("example", specWithSettings()); h.waitReady("example") },
		then: func(h *harness) {
			h.patch("example", `{"spec":{"mtu":null,"tags":["red"],"dnsNameservers":null}}`)
		},
		check: func(h *harness) error { return h.hasSettings(1450, "red") },
	},
	"create from a subnet pool": {
		then: func(h *harness) {
			h.post("/v2.0/subnetpools", `{"subnetpool":{"name":"campus","prefixes":["10.77.0.0/16"],"default_prefixlen":24}}`)
			h.createWith("example", samplecrdv1.NetworkSpec{Gateway: "None", SubnetPool: &samplecrdv1.SubnetPoolReference{Name: "campus"}})
		},
		check: func(h *harness) error { return errors.Join(h.hasSubnetFromPool("example"), h.hasCounts(1, 1)) },
	},
	"replace the subnet by one from a subnet pool": {
		before: createExample,
		then: func(h *harness) {
			h.post("/v2.0/subnetpools", `{"subnetpool":{"name":"campus","prefixes":["10.77.0.0/16"],"default_prefixlen":24}}`)
			h.patch("example", `{"spec":{"cidr":null,"gateway":"None","subnetPool":{"name":"campus"}}}`)
		},
		check: func(h *harness) error { return errors.Join(h.hasSubnetFromPool("example"), h.hasCounts(1, 1)) },
	},
	"create with a router": {
		then: func(h *harness) { h.postRouter("edge"); h.createRouted() },
		check: func(h *harness) error {
			return errors.Join(h.hasExample("10.0.0.0/24", "10.0.0.1"), h.hasRouter("edge"))
		},
	},
	"another router, and a tag": {
		varies: true, // it may have to wait for a request of the former leader
		before: func(h *harness) { h.postRouter("edge"); h.createRouted(); h.waitReady("example") },
		then: func(h *harness) {
			h.postRouter("core")
			h.patch("example", `{"spec":{"router":{"name":"core"},"tags":["blue"]}}`)
		},
		check: func(h *harness) error {
			return errors.Join(h.hasExample("10.0.0.0/24", "10.0.0.1"), h.hasRouter("core"))
		},
	},
	"another gateway of a router": {
		before: func(h *harness) { h.postRouter("edge"); h.createRouted(); h.waitReady("example") },
		then:   func(h *harness) { h.patch("example", `{"spec":{"gateway":"10.0.0.9"}}`) },
		check: func(h *harness) error {
			return errors.Join(h.hasExample("10.0.0.0/24", "10.0.0.9"), h.hasRouter("edge"))
		},
	},
	"replace a subnet with a router": {
		before: func(h *harness) { h.postRouter("edge"); h.createRouted(); h.waitReady("example") },
		then:   func(h *harness) { h.patch("example", `{"spec":{"cidr":"10.0.1.0/24"}}`) },
		check: func(h *harness) error {
			return errors.Join(h.hasExample("10.0.1.0/24", "10.0.1.1"), h.hasRouter("edge"))
		},
	},
	"remove the router": {
		varies: true, // it may have to wait for a request of the former leader
		before: func(h *harness) { h.postRouter("edge"); h.createRouted(); h.waitReady("example") },
		then:   func(h *harness) { h.patch("example", `{"spec":{"router":null}}`) },
		check:  func(h *harness) error { return errors.Join(h.hasExample("10.0.0.0/24", "10.0.0.1"), h.hasRouter("")) },
	},
	"drift: the router is detached": {
		varies: true, // it may have to find the router before the look, too
		before: func(h *harness) { h.postRouter("edge"); h.createRouted(); h.waitReady("example") },
		then: func(h *harness) {
			_, subnetID := h.idsInNeutron("example")
			h.do(http.MethodPut, "/v2.0/routers/"+h.routerID("edge")+"/remove_router_interface", `{"subnet_id":"`+subnetID+`"}`, nil)
		},
		check: func(h *harness) error {
			return errors.Join(h.hasExample("10.0.0.0/24", "10.0.0.1"), h.hasRouter("edge"))
		},
	},
	"delete with a router": {
		varies: true, // it may have to wait for a request of the former leader
		before: func(h *harness) { h.postRouter("edge"); h.createRouted(); h.waitReady("example") },
		then:   func(h *harness) { h.delete("example") },
		check:  func(h *harness) error { return h.hasOnlyLeft(0, 0) },
	},
	"keep an adopted network, without its router": {
		varies: true, // it may have to wait for a request of the former leader
		before: func(h *harness) {
			h.postRouter("edge")
			h.createAdopting("example", "10.0.0.0/24", h.postNetwork("mine", "mine"))
			h.patch("example", `{"spec":{"router":{"name":"edge"}}}`)
			h.waitReady("example")
			h.eventually(func() error { return h.hasRouter("edge") })
		},
		then:  func(h *harness) { h.delete("example") },
		check: func(h *harness) error { return h.hasOnlyLeft(1, 0) },
	},
	"adopt, with deletionPolicy Delete": {
		then: func(h *harness) {
			h.createAdopting("example", "10.0.0.0/24", h.postNetwork("mine", "mine"))
			h.patch("example", `{"spec":{"deletionPolicy":"Delete"}}`)
		},
		check: func(h *harness) error {
			return errors.Join(h.hasReady("example"), h.hasCounts(1, 1))
		},
	},
	"delete an adopted network": {
		before: func(h *harness) {
			h.createAdopting("example", "10.0.0.0/24", h.postNetwork("mine", "mine"))
			h.patch("example", `{"spec":{"deletionPolicy":"Delete"}}`)
			h.waitReady("example")
		},
		then:  func(h *harness) { h.delete("example") },
		check: func(h *harness) error { return h.hasOnlyLeft(0, 0) },
	},
	"create for a Deployment": {
		with:   withDeployments,
		varies: true,
		then:   func(h *harness) { h.deploy("example", "cidr=10.0.0.0/24") },
		check:  func(h *harness) error { return h.hasExample("10.0.0.0/24", "10.0.0.1") },
	},
	"edit for a Deployment": {
		with:   withDeployments,
		varies: true,
		before: func(h *harness) { h.deploy("example", "cidr=10.0.0.0/24"); h.waitReady("example") },
		then:   func(h *harness) { h.annotate("example", "gateway=10.0.0.9") },
		check:  func(h *harness) error { return h.hasExample("10.0.0.0/24", "10.0.0.9") },
	},
	"delete for a Deployment": {
		with:   withDeployments,
		varies: true,
		before: func(h *harness) { h.deploy("example", "cidr=10.0.0.0/24"); h.waitReady("example") },
		then:   func(h *harness) { h.annotate("example", "cidr") },
		check:  func(h *harness) error { return h.hasOnlyLeft(0, 0) },
	},
	"delete an orphan": {
		with: withOrphanDeletion,
		then: func(h *harness) {
			id := h.postNetwork(h.namespace+"/example", h.marker("example"))
			h.post("/v2.0/subnets", `{"subnet":{"network_id":"`+id+`","cidr":"10.0.0.0/24","ip_version":4,"description":"`+h.marker("example")+`"}}`)
		},
		check: func(h *harness) error { return h.hasOnlyLeft(0, 0) },
	},
	"vanish while the network is created": {
		with:     withOrphanDeletion,
		vanishes: &vanishment{at: "POST /v2.0/networks", undoing: "DELETE /v2.0/networks/"},
		then:     func(h *harness) { h.create("example", "10.0.0.0/24", "") },
		check:    func(h *harness) error { return h.hasOnlyLeft(0, 0) },
	},
	"vanish while the subnet is created": {
		with:     withOrphanDeletion,
		vanishes: &vanishment{at: "POST /v2.0/subnets", undoing: "DELETE /v2.0/networks/"},
		then:     func(h *harness) { h.create("example", "10.0.0.0/24", "") },
		check:    func(h *harness) error { return h.hasOnlyLeft(0, 0) },
	},
	"vanish while a retained network is taken over": {
		with: withOrphanDeletion,
		before: func(h *harness) {
			h.createWith("example", samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", DeletionPolicy: samplecrdv1.DeletionPolicyRetain})
			h.waitReady("example")
			h.delete("example")
			h.waitGone("example")
		},
		vanishes: &vanishment{at: "PUT /v2.0/networks/", undoing: "PUT /v2.0/networks/"},
		then:     func(h *harness) { h.create("example", "10.0.0.0/24", "") },
		check: func(h *harness) error {
			if networks := h.inNeutron().Networks; len(networks) != 1 || networks[0].Description != h.owner("example").RetainedMarker() {
				return fmt.Errorf("Neutron has %+v, want one retained network", networks)
			}
			return h.hasOnlyLeft(1, 1)
		},
	},
	"keep an adopted network": {
		before: func(h *harness) {
			h.createAdopting("example", "10.0.0.0/24", h.postNetwork("mine", "mine"))
			h.waitReady("example")
		},
		then:  func(h *harness) { h.delete("example") },
		check: func(h *harness) error { return h.hasOnlyLeft(1, 0) },
	},
}

// withOrphanDeletion deletes orphans soon.
func withOrphanDeletion(s *settings) {
	s.drift.ResyncPeriod, s.drift.OrphanGracePeriod = 50*time.Millisecond, time.Millisecond
}

func withDeployments(s *settings) { s.deployments.Which = deployments.Annotated }

// specWithSettings returns a spec that requires several requests.
func specWithSettings() samplecrdv1.NetworkSpec {
	return samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", MTU: new(int32(1400)), Tags: []string{"blue", "green"}, DNSNameservers: []string{"9.9.9.9"}}
}

// hasSettings reports whether the network of example and its status have this MTU
// and these tags.
func (h *harness) hasSettings(mtu int, tags ...string) error {
	if err := h.hasExample("10.0.0.0/24", "10.0.0.1"); err != nil {
		return err
	}
	got, status := h.inNeutron().Networks[0], h.get("example").Status
	if slices.Sort(got.Tags); got.MTU != mtu || !slices.Equal(got.Tags, tags) || int(status.MTU) != mtu || !slices.Equal(status.Tags, tags) {
		return fmt.Errorf("Neutron has %+v, the status is %+v, want MTU %d and the tags %v", got, status, mtu, tags)
	}
	return nil
}

// hasSubnetFromPool reports whether a Network has one subnet from the subnet pool
// campus, and no gateway.
func (h *harness) hasSubnetFromPool(name string) error {
	if err := h.hasReady(name); err != nil {
		return err
	}
	subnets, status := h.inNeutron().Subnets, h.get(name).Status
	if len(subnets) != 1 || !strings.HasPrefix(subnets[0].CIDR, "10.77.") || subnets[0].Gateway != "" ||
		status.CIDR != subnets[0].CIDR || status.Gateway != "None" || status.SubnetID != subnets[0].ID || status.SubnetPool == nil || status.SubnetPool.Name != "campus" {
		return fmt.Errorf("Neutron has %+v, the status is %+v", subnets, status)
	}
	return nil
}

// TestTagOfKilledProcess: a process adds a tag and is killed before it writes the
// status. The tag is removed when the spec no longer contains it.
func TestTagOfKilledProcess(t *testing.T) {
	story := crashStories["create with settings and tags"]
	t.Run("requests", func(t *testing.T) {
		for i, request := range story.lives(newHarness(t)) {
			if !strings.Contains(request, "/tags/") {
				continue
			}
			t.Run(strconv.Itoa(i+1), func(t *testing.T) {
				h := newHarness(t)
				story.begin(h)
				(&mortal{h: h, at: i + 1, death: afterIt}).run(func(*harness) error { return errors.New("the process has not died") })
				h.patch("example", `{"spec":{"tags":null,"mtu":null}}`)
				h.startController()
				h.eventually(func() error { return h.hasSettings(1450) })
			})
		}
	})
}

// hasExample reports whether the Network example, its status and Neutron have the
// desired state, and Neutron has nothing else.
func (h *harness) hasExample(cidr, gateway string) error {
	if err := errors.Join(h.hasReady("example"), h.hasNeutron("example", cidr, gateway)); err != nil {
		return err
	}
	all, status := h.inNeutron(), h.get("example").Status
	if len(all.Networks) != 1 || len(all.Subnets) != 1 || status.NetworkID != all.Networks[0].ID || status.SubnetID != all.Subnets[0].ID {
		return fmt.Errorf("the status is %+v, Neutron has %+v", status, all)
	}
	return nil
}

// hasOnlyLeft reports whether no Network exists, and only this number of objects
// is left in Neutron.
func (h *harness) hasOnlyLeft(networks, subnets int) error {
	list, err := h.list()
	if err != nil || len(list) > 0 {
		return fmt.Errorf("%d Networks still exist (%w)", len(list), err)
	}
	return h.hasCounts(networks, subnets)
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
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
	h      *harness
	at     int    // 0 if it lives on
	first  string // kills at the first such request instead, as in "POST /v2.0/networks"
	death  death
	story  crashStory
	vanish func() // makes example vanish, once

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

// hasUndone reports whether the process has sent the request that undoes what was
// requested for an object that vanished.
func (m *mortal) hasUndone() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	is := func(beginning string) func(string) bool {
		return func(request string) bool { return strings.HasPrefix(request, beginning) }
	}
	begin := slices.IndexFunc(m.requests, is(m.story.vanishesAt))
	return slices.ContainsFunc(m.requests[begin+1:], is(m.story.undoneBy))
}

// ServeHTTP forwards requests to Neutron.
func (m *mortal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request := r.Method + " " + r.URL.Path
	if at := m.story.vanishesAt; at != "" && strings.HasPrefix(request, at) {
		m.vanish()
	}
	fate, ok := m.next(request)
	switch {
	case ok && fate == "":
		m.h.neutron.ServeHTTP(w, r)
		return
	case fate == afterIt || fate == handOver:
		m.h.execute(detached(r))
	case fate == farAfter:
		again := detached(r)
		m.mu.Lock()
		m.late = func() { m.h.execute(again) }
		m.mu.Unlock()
	}
	panic(http.ErrAbortHandler) // no response
}

// toKubernetes forwards requests to Kubernetes. Reads are not counted.
func (m *mortal) toKubernetes(r *http.Request, next http.RoundTripper) (*http.Response, error) {
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
}

// run runs a controller until it dies, or until the check passes. It returns the
// requests that the controller sent.
func (m *mortal) run(check func(*harness) error) []string {
	m.dead = make(chan struct{})
	server := httptest.NewServer(m)
	defer server.Close()
	immortal := m.h.neutronURL
	m.h.neutronURL, m.h.toKubernetes = server.URL, m.toKubernetes
	defer func() { m.h.neutronURL, m.h.toKubernetes = immortal, nil }()
	stop := m.h.startWorkers(1)
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

// untilDeath runs a controller until it dies.
func (m *mortal) untilDeath() { m.run(func(*harness) error { return errAlive }) }

var errAlive = errors.New("the process has not died")

// crashStory describes work in which a process can die: the objects at the start,
// and the expected result.
type crashStory struct {
	with   []string       // flags
	varies bool           // the number of requests depends on the order of events
	before func(*harness) // runs with a controller; then example becomes ready
	then   func(*harness) // runs without a controller
	// vanishesAt is the beginning of the request to Neutron right before which example
	// vanishes in spite of its finalizer, if it is set; undoneBy is that of another request.
	vanishesAt, undoneBy string
	want                 string // the state in the end
}

// TestCrashes kills a process before the first write and after each, to Neutron and of a
// Network, in each kind of work. The next process must reach the desired state: no
// duplicate, no leftover, no lost deletion. It starts then, or it is a standby that takes
// over.
func TestCrashes(t *testing.T) {
	t.Parallel()
	for name, story := range crashStories {
		t.Run(name, func(t *testing.T) {
			requests := story.lives(newHarness(t))
			t.Logf("%d requests: %s", len(requests), strings.Join(requests, ", "))
			hasWritten := false
			for i, request := range requests {
				if strings.HasPrefix(request, "GET") {
					continue // here, a death leaves what it leaves after the write before
				}
				for _, death := range []death{beforeIt, afterIt, farAfter, handOver} {
					if death == beforeIt && hasWritten || death == farAfter && !strings.Contains(request, "/v2.0/") {
						continue // so does one before a second write; and a late write is one to Neutron
					}
					t.Run(fmt.Sprintf("%s %d %s", death, i+1, request), func(t *testing.T) {
						story.dies(newHarness(t), i+1, death)
					})
				}
				hasWritten = true
			}
		})
	}
}

func (s crashStory) begin(h *harness) (vanish func()) {
	h.flags("-allow-adoption")
	h.flags(s.with...)
	if s.before != nil {
		stop := h.startController()
		s.before(h)
		h.waitReady("example")
		stop()
	}
	s.then(h)
	if s.vanishesAt == "" {
		return func() {}
	}
	return sync.OnceFunc(h.vanish)
}

// lives runs the story without a death.
func (s crashStory) lives(h *harness) []string {
	life := &mortal{h: h, story: s, vanish: s.begin(h)}
	return life.run(func(h *harness) error {
		if s.vanishesAt != "" && !life.hasUndone() {
			return errors.New("nothing is undone yet")
		}
		return h.is(s.want)
	})
}

// dies runs the story with a death at the n-th request, and a second process that
// lives on.
func (s crashStory) dies(h *harness, n int, death death) {
	vanish, next := s.begin(h), h.startController
	if death == handOver {
		next = h.standBy()
	}
	first := &mortal{h: h, at: n, death: death, story: s, vanish: vanish}
	first.run(func(h *harness) error {
		if s.varies && h.is(s.want) == nil {
			return nil // it needed fewer requests than the process that lived
		}
		return errAlive
	})
	vanish() // if the process has not come that far

	h.flags(shortResync)
	stop := next()
	h.eventually(func() error { return errors.Join(h.is(s.want), h.isIdle()) })
	if first.late != nil {
		first.late()
		h.eventually(func() error { return errors.Join(h.is(s.want), h.isIdle()) })
	}
	stop()

	// A third process has nothing to change: with one worker, the sync of example has
	// ended when another Network is ready.
	h.forgetRequests()
	third := &mortal{h: h}
	created := false
	requests := third.run(func(h *harness) error {
		if err := h.is(s.want); err != nil && !created {
			return err
		}
		if !created {
			h.create("last", "10.99.0.0/24", "")
			created = true
		}
		return h.hasCondition("last", provisioned, "")
	})
	requests = slices.DeleteFunc(requests, func(request string) bool { return strings.HasPrefix(request, "GET") })
	last := "PATCH /apis/samplecrd.k8s.io/v1/namespaces/" + h.namespace + "/networks/last"
	want := []string{last, "POST /v2.0/networks", "POST /v2.0/subnets", last + "/status"}
	if !slices.Equal(requests, want) {
		h.Errorf("the third process sent %v, want only the requests that create another Network", requests)
	}
}

// States in which stories end.
const (
	created    = "example: 10.0.0.0/24 10.0.0.1"
	edited     = "example: 10.0.0.0/24 10.0.0.9"
	adopted    = "example on mine: 10.0.0.0/24 10.0.0.1"
	fromCampus = "example: 10.0/24 None from campus"
)

// What happens in the stories.
var (
	plain    = samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24"}
	settings = samplecrdv1.NetworkSpec{ // requires several requests
		CIDR: "10.0.0.0/24", MTU: new(int32(1400)), Tags: []string{"blue", "green"}, DNSNameservers: []string{"9.9.9.9"},
	}
	retained = samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", DeletionPolicy: samplecrdv1.DeletionPolicyRetain}
	pooled   = samplecrdv1.NetworkSpec{Gateway: "None", SubnetPool: &samplecrdv1.SubnetPoolReference{Name: "campus"}}

	withOrphanDeletion = []string{shortResync, "-delete-orphans", "-orphan-grace-period=1ms"} // soon
	withDeployments    = []string{"-deployment-networks=annotated"}
)

func create(spec samplecrdv1.NetworkSpec) func(*harness) {
	return func(h *harness) { h.createWith("example", spec) }
}

func edit(spec string) func(*harness) {
	return func(h *harness) { h.edit(spec) }
}

func remove(h *harness) { h.delete("example") }

func deploy(h *harness) { h.deploy("example", "cidr=10.0.0.0/24") }

func annotate(annotation string) func(*harness) {
	return func(h *harness) { h.annotate("example", annotation) }
}

// createRouted creates example with the router edge.
func createRouted(h *harness) {
	h.postRouter("edge")
	routed := plain
	routed.Router = &samplecrdv1.RouterReference{Name: "edge"}
	create(routed)(h)
}

// adopt returns a function that creates example, which adopts a network.
func adopt(policy samplecrdv1.DeletionPolicy) func(*harness) {
	return func(h *harness) {
		spec := plain
		spec.NetworkID, spec.DeletionPolicy = h.postNetwork("mine", "mine"), policy
		h.createWith("example", spec)
	}
}

func adoptAndRoute(h *harness) {
	adopt("")(h)
	h.postRouter("edge")
	h.edit(`{"router":{"name":"edge"}}`)
	h.eventually(func() error { return h.is(adopted + " router edge") })
}

// leaveRetained creates and deletes a Network whose network is retained.
func leaveRetained(h *harness) {
	stop := h.startController()
	h.createWith("example", retained)
	h.waitReady("example")
	h.delete("example")
	h.waitGone("example")
	stop()
}

func createCampus(h *harness) {
	h.post("subnetpools", `{"subnetpool":{"name":"campus","prefixes":["10.77.0.0/16"],"default_prefixlen":24}}`)
}

func createOrphan(h *harness) {
	id, marker := h.postNetwork(h.namespace+"/example", h.marker("example")), h.marker("example")
	h.post("subnets", `{"subnet":{"network_id":"`+id+`","cidr":"10.0.0.0/24","ip_version":4,"description":"`+marker+`"}}`)
}

// inOrder returns a function that calls others.
func inOrder(all ...func(*harness)) func(*harness) {
	return func(h *harness) {
		for _, do := range all {
			do(h)
		}
	}
}

// inNeutron returns a function that sends a request to Neutron, as another client, for the
// network or subnet of example.
func inNeutron(method, path, body string) func(*harness) {
	return func(h *harness) {
		status := h.get("example").Status
		ids := strings.NewReplacer("$network", status.NetworkID, "$subnet", status.SubnetID)
		h.do(method, ids.Replace(path), ids.Replace(body), nil)
	}
}

// Stories vary that may have to wait for a request of the former leader, or in which two
// controllers work at the same time.
var crashStories = map[string]crashStory{
	"create":             {then: create(plain), want: created},
	"edit":               {before: create(plain), then: edit(`{"cidr":"10.0.0.9/24","gateway":"10.0.0.9"}`), want: edited},
	"replace the subnet": {before: create(plain), then: edit(`{"cidr":"10.0.1.0/24"}`), want: "example: 10.0.1.0/24 10.0.1.1"},
	"delete":             {before: create(plain), then: remove},

	"drift: the network is gone": {before: create(plain), then: inNeutron("DELETE", "networks/$network", ""), want: created},
	"retain":                     {before: create(retained), then: remove, want: "retained " + created},
	"retained, then created again": {
		then: inOrder(leaveRetained, create(samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", Gateway: "10.0.0.9"})), want: edited,
	},

	"adopt":                     {then: adopt(""), want: adopted},
	"keep an adopted network":   {before: adopt(""), then: remove, want: "mine: "},
	"delete an adopted network": {before: adopt(samplecrdv1.DeletionPolicyDelete), then: remove},

	"create with settings and tags": {then: create(settings), want: created + " mtu 1400 tags blue,green"},
	"remove settings and tags": {
		before: create(settings), then: edit(`{"mtu":null,"tags":["red"],"dnsNameservers":null}`), want: created + " tags red",
	},

	"create from a subnet pool": {then: inOrder(createCampus, create(pooled)), want: fromCampus},
	"replace the subnet by one from a subnet pool": {
		before: create(plain), want: fromCampus,
		then: inOrder(createCampus, edit(`{"cidr":null,"gateway":"None","subnetPool":{"name":"campus"}}`)),
	},

	"create with a router": {then: createRouted, want: created + " router edge"},
	"replace a subnet with router": {
		before: createRouted, then: edit(`{"cidr":"10.0.1.0/24"}`), want: "example: 10.0.1.0/24 10.0.1.1 router edge",
	},
	"another router, and a tag": {
		varies: true, before: createRouted, want: created + " tags blue router core",
		then: inOrder(func(h *harness) { h.postRouter("core") }, edit(`{"router":{"name":"core"},"tags":["blue"]}`)),
	},
	"remove the router":                           {varies: true, before: createRouted, then: edit(`{"router":null}`), want: created},
	"delete with a router":                        {varies: true, before: createRouted, then: remove},
	"keep an adopted network, without its router": {varies: true, before: adoptAndRoute, then: remove, want: "mine: "},

	"create for a Deployment": {with: withDeployments, varies: true, then: deploy, want: created},
	"edit for a Deployment":   {with: withDeployments, varies: true, before: deploy, then: annotate("gateway=10.0.0.9"), want: edited},
	"delete for a Deployment": {with: withDeployments, varies: true, before: deploy, then: annotate("cidr")},

	"delete an orphan": {with: withOrphanDeletion, then: createOrphan},
	"vanish while the network is created": {
		with: withOrphanDeletion, then: create(plain),
		vanishesAt: "POST /v2.0/networks", undoneBy: "DELETE /v2.0/networks/",
	},
	"vanish while the subnet is created": {
		with: withOrphanDeletion, then: create(plain),
		vanishesAt: "POST /v2.0/subnets", undoneBy: "DELETE /v2.0/networks/",
	},
	"vanish while a retained network is taken over": {
		with: withOrphanDeletion, then: inOrder(leaveRetained, create(plain)), want: "retained " + created,
		vanishesAt: "PUT /v2.0/networks/", undoneBy: "PUT /v2.0/networks/",
	},
}

// TestStandbyRefreshesCache: a replica that starts leading does not rely on what
// its cache of Neutron's state contained before the former leader's changes.
func TestStandbyRefreshesCache(t *testing.T) {
	h := newHarness(t)
	stop := h.startController()
	h.create("example", "10.0.0.0/24", "10.0.0.1")
	h.waitReady("example")
	lead := h.standBy()
	h.edit(`{"gateway":"10.0.0.2"}`)
	h.waitReady("example")
	stop()
	h.edit(`{"gateway":"10.0.0.1"}`)

	lead()
	h.waitReady("example")
	h.want(h.is(created))
}

// In the next tests, Neutron is slow, broken or hostile, or the cache of its state
// is outdated. What a user sees of that is in test/stories (outages, refused, drift).

// TestLateResponse: Neutron executes a create request after the client has given up. The
// Network waits for it, also if it is deleted: otherwise a second network would exist, or
// something would be left behind.
func TestLateResponse(t *testing.T) {
	for name, test := range map[string]struct {
		create            func(*harness)
		kind              string // of the request
		isDeleted         bool
		networks, subnets int // in the end
	}{
		"the Network stays":                   {create(plain), "networks", false, 1, 1},
		"the Network is deleted":              {create(plain), "networks", true, 0, 0},
		"a subnet on an adopted network":      {adopt(""), "subnets", false, 1, 1},
		"and the adopting Network is deleted": {adopt(""), "subnets", true, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.flags("-neutron-timeout=100ms", "-allow-adoption")
			h.options.reconcile.MaxInFlight = 2 * time.Second
			request := h.holdFirst(creates(test.kind))
			h.startController()
			test.create(h)
			<-request.reached
			if test.isDeleted {
				h.delete("example")
			}
			h.waitCondition("example", "NeutronUnavailable", "no response to an earlier create request arrived")
			request.release()
			if test.isDeleted {
				h.waitGone("example")
			} else {
				h.waitReady("example")
			}
			h.want(h.hasCounts(test.networks, test.subnets))
		})
	}
}

// killed starts a process that is killed at its first such request. Neutron executes the
// request when the test calls the returned function, which waits for that.
func (h *harness) killed(request string) (execute func()) {
	h.Helper()
	first := &mortal{h: h, first: request, death: farAfter}
	first.untilDeath()
	return first.late
}

// TestLateCreate: a process is killed while its create request is in flight, and Neutron
// executes the request long after that. The next process leaves nothing behind, although
// no list shows the network or subnet before the deletion.
func TestLateCreate(t *testing.T) {
	for name, test := range map[string]struct {
		create  func(*harness)
		request string
		left    int // networks
	}{
		"a network":                      {create(plain), "POST /v2.0/networks", 0},
		"a subnet on an adopted network": {adopt(""), "POST /v2.0/subnets", 1},
	} {
		t.Run(name+" after the deletion", func(t *testing.T) {
			h := newHarness(t)
			h.flags(shortResync, "-allow-adoption")
			test.create(h)
			execute := h.killed(test.request)
			h.delete("example")
			h.startController()
			h.waitGone("example")
			h.waitLists(6)
			execute()
			h.stays(func() error { return h.hasCounts(test.left, 0) })
		})
	}
	t.Run("a network before the deletion", func(t *testing.T) {
		h := newHarness(t)
		create(plain)(h)
		execute := h.killed("POST /v2.0/networks")
		pending := time.After(2 * h.options.reconcile.MaxInFlight) // so long, Neutron may execute requests of the first process
		h.startController()
		h.waitReady("example")
		execute()
		h.want(h.hasCounts(2, 1))
		<-pending
		h.delete("example")
		h.waitGone("example")
		h.want(h.hasCounts(0, 0))
	})
}

// TestRefusedWithoutStatus: a request that Neutron rejected is not repeated although
// the status could not be written. The status is written as soon as it can be.
func TestRefusedWithoutStatus(t *testing.T) {
	h := newHarness(t)
	failures := 0
	h.failRequests(func(r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/status") {
			failures++
		}
		return strings.HasSuffix(r.URL.Path, "/status") && failures < 3
	})
	h.neutron.Inject(embedded.Fault{Method: http.MethodPost, Path: "^/v2.0/networks", Status: http.StatusForbidden,
		Body: `{"NeutronError": {"type": "PolicyNotAuthorized", "message": "(rule:create_network) is disallowed by policy"}}`})
	h.startWorkers(1)
	h.create("example", "10.0.0.0/24", "")
	h.waitCondition("example", "Refused", "(rule:create_network) is disallowed by policy")
	if creates := h.neutronRequests(http.MethodPost); len(creates) != 1 {
		t.Errorf("Neutron received %+v, want one request to create the network", creates)
	}
}

// TestOutdatedCache: another client changes something in Neutron after the last list.
// The request that follows from the cache is rejected. Then the controller looks, and
// does the right thing.
func TestOutdatedCache(t *testing.T) {
	editGateway, isEdited := edit(`{"gateway":"10.0.0.9"}`), func(h *harness) error { return h.is(edited) }
	for name, test := range map[string]struct {
		before, change, act func(*harness)
		check               func(*harness) error
		rejected            string // the request that follows from the cache
	}{
		"a subnet was created on the network to delete": {
			change: inNeutron("POST", "subnets", `{"subnet":{"network_id":"$network","cidr":"10.9.0.0/24","ip_version":4}}`),
			act:    remove, rejected: "DELETE 412",
			check: func(h *harness) error {
				return errors.Join(h.hasCondition("example", "InUse", "subnets that do not belong to this Network"), h.hasCounts(1, 2))
			},
		},
		"the network to delete is gone": {
			change: inNeutron("DELETE", "networks/$network", ""),
			act:    remove, rejected: "DELETE 404", check: func(h *harness) error { return h.is("") },
		},
		"the subnet to edit was changed": {
			change: inNeutron("PUT", "subnets/$subnet", `{"subnet":{"enable_dhcp":false}}`),
			act:    editGateway, rejected: "PUT 412", check: isEdited,
		},
		"the edit is possible only together with the correction of a change": {
			before: edit(`{"allocationPools":[{"start":"10.0.0.50","end":"10.0.0.99"}]}`),
			change: inNeutron("PUT", "subnets/$subnet", `{"subnet":{"allocation_pools":[{"start":"10.0.0.2","end":"10.0.0.99"}]}}`),
			act:    editGateway, rejected: "PUT 409", check: isEdited,
		},
		"the subnet to edit is gone": {
			change: inNeutron("DELETE", "subnets/$subnet", ""),
			act:    editGateway, rejected: "PUT 404", check: isEdited,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.startController()
			create(plain)(h)
			h.waitReady("example")
			if test.before != nil {
				test.before(h)
				h.waitReady("example")
			}
			test.change(h)
			h.forgetRequests()
			test.act(h)
			h.eventually(func() error { return test.check(h) })
			first := h.neutronRequests(writeMethods...)[0]
			if got := fmt.Sprint(first.Method, " ", first.Status); got != test.rejected {
				t.Errorf("the first write is %s, want %s", got, test.rejected)
			}
		})
	}
}

// TestOutdatedCacheKeepsRecord: a list lacks the subnet, and the look that follows
// fails. Then the status still records the subnet.
func TestOutdatedCacheKeepsRecord(t *testing.T) {
	h := newHarness(t)
	stop := h.startController()
	create(plain)(h)
	before := h.waitReady("example").Status
	stop()
	inNeutron("DELETE", "subnets/$subnet", "")(h)
	h.between(nil, func(r *http.Request, response *httptest.ResponseRecorder) {
		if r.Method == http.MethodGet && r.URL.Path == "/v2.0/networks" && !listsAll(r.URL.Path, r.URL.RawQuery) {
			response.Code = http.StatusServiceUnavailable
		}
	})
	h.startController()
	after := h.waitCondition("example", "NeutronUnavailable", "").Status
	if after.Conditions = before.Conditions; !reflect.DeepEqual(after, before) {
		t.Errorf("the status has changed (-before +after):\n%s", cmp.Diff(before, after))
	}
}

// TestNotConverging: a Neutron whose answers never match the requests does not keep
// the controller busy.
func TestNotConverging(t *testing.T) {
	h := newHarness(t)
	h.between(nil, func(_ *http.Request, response *httptest.ResponseRecorder) {
		ours, another := []byte(`"name":"`+h.namespace+`/example"`), []byte(`"name":"another"`)
		response.Body = bytes.NewBuffer(bytes.ReplaceAll(response.Body.Bytes(), ours, another))
	})
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitCondition("example", "NotConverging", "Neutron's responses do not match the requests")
	h.eventually(func() error { return errors.Join(h.isIdle(), h.hasLogged("Sync failed; retrying later")) })
	updates := len(h.neutronRequests(http.MethodPut))
	if updates == 0 || updates > 60 {
		t.Errorf("Neutron received %d updates, want 1 to 60", updates)
	}
	h.want(h.hasCounts(1, 0))
}

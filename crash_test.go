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

// How a process can die at a request.
type death string

const (
	beforeIt death = "before" // the request was not sent
	afterIt  death = "after"  // it was carried out, and the answer is lost
	farAfter death = "late"   // it is carried out when the next process is done
)

// mortal is what a controller reaches Neutron and Kubernetes through. It lets
// it die at the n-th request, and then no request gets through any more.
type mortal struct {
	h       *harness
	at      int // 0: lives
	death   death
	workers int // 0: the default

	mu       sync.Mutex
	requests []string
	dead     chan struct{}
	late     func() // carries the request out
}

// next counts a request. It returns how the process dies at it; empty where it
// lives, and ok is false where it is dead already.
func (m *mortal) next(request string) (fate death, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.dead:
		return "", false
	default:
	}
	m.requests = append(m.requests, request)
	if len(m.requests) != m.at {
		return "", true
	}
	close(m.dead)
	return m.death, true
}

// ServeHTTP is the way to Neutron.
func (m *mortal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fate, ok := m.next(r.Method + " " + r.URL.Path)
	switch {
	case ok && fate == "":
		m.h.neutron.ServeHTTP(w, r)
		return
	case fate == afterIt:
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
	panic(http.ErrAbortHandler) // no answer
}

// transport is the way to Kubernetes. What only reads is not counted.
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
		return nil, errors.New("dead")
	})
}

// run runs a controller that dies when its time has come, or is stopped when the
// check passes. It returns the requests that it made.
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
	return m.requests
}

// crashStory is what a process can die in: what exists when it starts, and what
// must exist in the end.
type crashStory struct {
	with   func(*settings)
	varies bool           // the number of requests depends on which event comes first
	before func(*harness) // with a controller that runs
	then   func(*harness) // without one
	check  func(*harness) error
}

// TestCrashes lets a process die before and after every single request to
// Neutron, and every write to Kubernetes, of every thing that a controller does.
// Whatever the next process finds, the end is what was asked for: no duplicate,
// no leftover, no lost delete.
func TestCrashes(t *testing.T) {
	t.Parallel()
	for name, story := range crashStories {
		t.Run(name, func(t *testing.T) {
			requests := story.lives(newHarness(t))
			t.Logf("%d requests: %s", len(requests), strings.Join(requests, ", "))
			for i, request := range requests {
				for _, death := range []death{beforeIt, afterIt, farAfter} {
					if death == farAfter && (strings.HasPrefix(request, "GET") || !strings.Contains(request, "/v2.0/")) {
						continue // what only reads can come as late as it likes
					}
					t.Run(fmt.Sprintf("%s %d %s", death, i+1, request), func(t *testing.T) {
						story.dies(newHarness(t), i+1, death)
					})
				}
			}
		})
	}
}

func (s crashStory) begin(h *harness) {
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
}

// lives plays the story without a death.
func (s crashStory) lives(h *harness) []string {
	s.begin(h)
	return (&mortal{h: h}).run(s.check)
}

// dies plays the story with a death at the n-th request, and a second process
// that lives.
func (s crashStory) dies(h *harness, n int, death death) {
	s.begin(h)
	first := &mortal{h: h, at: n, death: death}
	first.run(func(h *harness) error {
		if s.varies && s.check(h) == nil {
			return nil // it needed fewer requests than the one that lived
		}
		return errors.New("it did not die")
	})

	h.settings.drift.ResyncPeriod = 50 * time.Millisecond
	stop := h.startController()
	h.eventually(func() error { return s.check(h) })
	if first.late != nil {
		first.late()
		h.eventually(func() error { return s.check(h) })
	}
	stop()

	// A third one finds nothing to do: with one worker, the sync of example has ended
	// when another Network is ready.
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
		return h.isReadyNow("last")
	})
	requests = slices.DeleteFunc(requests, func(request string) bool { return strings.HasPrefix(request, "GET") })
	last := "/networks/last"
	if len(requests) != 4 || !strings.HasSuffix(requests[0], last) || requests[1] != "POST /v2.0/networks" || requests[2] != "POST /v2.0/subnets" || !strings.HasSuffix(requests[3], last+"/status") {
		h.Errorf("after everything was done, and with another Network to create, the next process sent %v", requests)
	}
}

var crashStories = map[string]crashStory{
	"create": {
		then:  func(h *harness) { h.create("example", "10.0.0.0/24", "") },
		check: func(h *harness) error { return h.isReady("10.0.0.0/24", "10.0.0.1") },
	},
	"edit": {
		before: func(h *harness) { h.create("example", "192.168.0.0/16", "192.168.0.1"); h.waitReady("example") },
		then:   func(h *harness) { h.edit("example", "192.168.1.0/16", "192.168.1.1") },
		check:  func(h *harness) error { return h.isReady("192.168.0.0/16", "192.168.1.1") },
	},
	"replace the subnet": {
		before: func(h *harness) { h.create("example", "10.0.0.0/24", ""); h.waitReady("example") },
		then:   func(h *harness) { h.edit("example", "10.0.1.0/24", "") },
		check:  func(h *harness) error { return h.isReady("10.0.1.0/24", "10.0.1.1") },
	},
	"delete": {
		before: func(h *harness) { h.create("example", "10.0.0.0/24", ""); h.waitReady("example") },
		then:   func(h *harness) { h.delete("example") },
		check:  func(h *harness) error { return h.isGone(0, 0) },
	},
	"drift: the network is gone": {
		before: func(h *harness) { h.create("example", "10.0.0.0/24", ""); h.waitReady("example") },
		then: func(h *harness) {
			networkID, _ := h.idsInNeutron("example")
			h.do(http.MethodDelete, "/v2.0/networks/"+networkID, "", nil)
		},
		check: func(h *harness) error { return h.isReady("10.0.0.0/24", "10.0.0.1") },
	},
	"drift: the subnet is gone": {
		before: func(h *harness) { h.create("example", "10.0.0.0/24", ""); h.waitReady("example") },
		then: func(h *harness) {
			_, subnetID := h.idsInNeutron("example")
			h.do(http.MethodDelete, "/v2.0/subnets/"+subnetID, "", nil)
		},
		check: func(h *harness) error { return h.isReady("10.0.0.0/24", "10.0.0.1") },
	},
	"drift: another gateway, and other names": {
		before: func(h *harness) { h.create("example", "10.0.0.0/24", "10.0.0.254"); h.waitReady("example") },
		then: func(h *harness) {
			networkID, subnetID := h.idsInNeutron("example")
			h.do(http.MethodPut, "/v2.0/subnets/"+subnetID, `{"subnet":{"gateway_ip":null,"name":"mine"}}`, nil)
			h.do(http.MethodPut, "/v2.0/networks/"+networkID, `{"network":{"description":"mine"}}`, nil)
		},
		check: func(h *harness) error { return h.isReady("10.0.0.0/24", "10.0.0.254") },
	},
	"retain": {
		before: func(h *harness) {
			h.create("example", "10.0.0.0/24", "")
			h.patch("example", `{"spec":{"deletionPolicy":"Retain"}}`)
			h.waitReady("example")
		},
		then:  func(h *harness) { h.delete("example") },
		check: func(h *harness) error { return h.isGone(1, 1) },
	},
	"take up again": {
		before: func(h *harness) {
			h.create("example", "10.0.0.0/24", "")
			h.patch("example", `{"spec":{"deletionPolicy":"Retain"}}`)
			h.waitReady("example")
			h.delete("example")
			h.waitGone("example")
		},
		then:  func(h *harness) { h.create("example", "10.0.0.0/24", "10.0.0.9") },
		check: func(h *harness) error { return h.isReady("10.0.0.0/24", "10.0.0.9") },
	},
	"adopt": {
		then: func(h *harness) { h.createAdopting("example", "10.0.0.0/24", h.postNetwork("mine", "mine")) },
		check: func(h *harness) error {
			return errors.Join(h.isReadyNow("example"), h.countsAre(1, 1))
		},
	},
	"create with settings and tags": {
		then:  func(h *harness) { h.createWith("example", fancySpec()) },
		check: func(h *harness) error { return h.isFancy(1400, "blue", "green") },
	},
	"take settings and tags out": {
		before: func(h *harness) { h.createWith("example", fancySpec()); h.waitReady("example") },
		then: func(h *harness) {
			h.patch("example", `{"spec":{"mtu":null,"tags":["red"],"dnsNameservers":null}}`)
		},
		check: func(h *harness) error { return h.isFancy(1450, "red") },
	},
	"create from a subnet pool": {
		then: func(h *harness) {
			h.post("/v2.0/subnetpools", `{"subnetpool":{"name":"campus","prefixes":["10.77.0.0/16"],"default_prefixlen":24}}`)
			h.createWith("example", samplecrdv1.NetworkSpec{Gateway: "None", SubnetPool: &samplecrdv1.SubnetPoolReference{Name: "campus"}})
		},
		check: func(h *harness) error { return errors.Join(h.isFromPool("example"), h.countsAre(1, 1)) },
	},
	"replace the subnet by one from a subnet pool": {
		before: func(h *harness) { h.create("example", "10.0.0.0/24", ""); h.waitReady("example") },
		then: func(h *harness) {
			h.post("/v2.0/subnetpools", `{"subnetpool":{"name":"campus","prefixes":["10.77.0.0/16"],"default_prefixlen":24}}`)
			h.patch("example", `{"spec":{"cidr":null,"gateway":"None","subnetPool":{"name":"campus"}}}`)
		},
		check: func(h *harness) error { return errors.Join(h.isFromPool("example"), h.countsAre(1, 1)) },
	},
	"adopt, to be deleted": {
		then: func(h *harness) {
			h.createAdopting("example", "10.0.0.0/24", h.postNetwork("mine", "mine"))
			h.patch("example", `{"spec":{"deletionPolicy":"Delete"}}`)
		},
		check: func(h *harness) error {
			return errors.Join(h.isReadyNow("example"), h.countsAre(1, 1))
		},
	},
	"delete what was adopted": {
		before: func(h *harness) {
			h.createAdopting("example", "10.0.0.0/24", h.postNetwork("mine", "mine"))
			h.patch("example", `{"spec":{"deletionPolicy":"Delete"}}`)
			h.waitReady("example")
		},
		then:  func(h *harness) { h.delete("example") },
		check: func(h *harness) error { return h.isGone(0, 0) },
	},
	"create for a Deployment": {
		with:   withDeployments,
		varies: true,
		then:   func(h *harness) { h.deploy("example", "cidr=10.0.0.0/24") },
		check:  func(h *harness) error { return h.isReady("10.0.0.0/24", "10.0.0.1") },
	},
	"edit for a Deployment": {
		with:   withDeployments,
		varies: true,
		before: func(h *harness) { h.deploy("example", "cidr=10.0.0.0/24"); h.waitReady("example") },
		then:   func(h *harness) { h.annotate("example", "gateway=10.0.0.9") },
		check:  func(h *harness) error { return h.isReady("10.0.0.0/24", "10.0.0.9") },
	},
	"delete for a Deployment": {
		with:   withDeployments,
		varies: true,
		before: func(h *harness) { h.deploy("example", "cidr=10.0.0.0/24"); h.waitReady("example") },
		then:   func(h *harness) { h.annotate("example", "cidr") },
		check:  func(h *harness) error { return h.isGone(0, 0) },
	},
	"delete an orphan": {
		with: func(s *settings) {
			s.drift.ResyncPeriod, s.drift.OrphanGracePeriod = 50*time.Millisecond, time.Millisecond
		},
		then: func(h *harness) {
			id := h.postNetwork(h.namespace+"/example", h.mark("example"))
			h.post("/v2.0/subnets", `{"subnet":{"network_id":"`+id+`","cidr":"10.0.0.0/24","ip_version":4,"description":"`+h.mark("example")+`"}}`)
		},
		check: func(h *harness) error { return h.isGone(0, 0) },
	},
	"let go what was adopted": {
		before: func(h *harness) {
			h.createAdopting("example", "10.0.0.0/24", h.postNetwork("mine", "mine"))
			h.waitReady("example")
		},
		then:  func(h *harness) { h.delete("example") },
		check: func(h *harness) error { return h.isGone(1, 0) },
	},
}

func withDeployments(s *settings) { s.deployments.Which = deployments.Annotated }

// fancySpec asks for what takes several requests.
func fancySpec() samplecrdv1.NetworkSpec {
	return samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", MTU: new(int32(1400)), Tags: []string{"blue", "green"}, DNSNameservers: []string{"9.9.9.9"}}
}

// isFancy reports whether the network of example is so, and its status.
func (h *harness) isFancy(mtu int, tags ...string) error {
	if err := h.isReady("10.0.0.0/24", "10.0.0.1"); err != nil {
		return err
	}
	got, status := h.inNeutron().Networks[0], h.get("example").Status
	if slices.Sort(got.Tags); got.MTU != mtu || !slices.Equal(got.Tags, tags) || int(status.MTU) != mtu || !slices.Equal(status.Tags, tags) {
		return fmt.Errorf("Neutron has %+v, the status is %+v, want MTU %d and the tags %v", got, status, mtu, tags)
	}
	return nil
}

// isFromPool reports whether a Network has one subnet from the subnet pool campus,
// and no gateway.
func (h *harness) isFromPool(name string) error {
	if err := h.isReadyNow(name); err != nil {
		return err
	}
	subnets, status := h.inNeutron().Subnets, h.get(name).Status
	if len(subnets) != 1 || !strings.HasPrefix(subnets[0].CIDR, "10.77.") || subnets[0].Gateway != "" ||
		status.CIDR != subnets[0].CIDR || status.Gateway != "None" || status.SubnetID != subnets[0].ID || status.SubnetPool == nil || status.SubnetPool.Name != "campus" {
		return fmt.Errorf("Neutron has %+v, the status is %+v", subnets, status)
	}
	return nil
}

// TestTagOfKilledProcess: a tag that was set by a process that died, before it
// could say so, is taken away when nobody asks for it any more.
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
				(&mortal{h: h, at: i + 1, death: afterIt}).run(func(*harness) error { return errors.New("it did not die") })
				h.patch("example", `{"spec":{"tags":null,"mtu":null}}`)
				h.startController()
				h.eventually(func() error { return h.isFancy(1450) })
			})
		}
	})
}

// isReady reports whether all is as it should be of the Network example, in
// Kubernetes and in Neutron.
func (h *harness) isReady(cidr, gateway string) error {
	if err := h.isReadyNow("example"); err != nil {
		return err
	}
	all, network := h.inNeutron(), h.get("example")
	mark := h.mark("example")
	if len(all.Networks) != 1 || len(all.Subnets) != 1 || all.Networks[0].Description != mark || all.Subnets[0].Description != mark ||
		all.Networks[0].Name != h.namespace+"/example" || all.Subnets[0].CIDR != cidr || all.Subnets[0].Gateway != gateway {
		return fmt.Errorf("Neutron has %+v, want one network with the subnet %s, gateway %s", all, cidr, gateway)
	}
	if network.Status.NetworkID != all.Networks[0].ID || network.Status.SubnetID != all.Subnets[0].ID {
		return fmt.Errorf("the status is %+v, Neutron has %+v", network.Status, all)
	}
	return nil
}

// isGone reports whether the Network example is, and so much is left in Neutron.
func (h *harness) isGone(networks, subnets int) error {
	list, err := h.list()
	if err != nil || len(list) > 0 {
		return fmt.Errorf("there are still %d Networks (%w)", len(list), err)
	}
	return h.countsAre(networks, subnets)
}

func (h *harness) createAdopting(name, cidr, networkID string) {
	h.Helper()
	h.createWith(name, samplecrdv1.NetworkSpec{CIDR: cidr, NetworkID: networkID})
}

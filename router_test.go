package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
)

// postRouter creates a router.
func (h *harness) postRouter(name string) { h.post("/v2.0/routers", `{"router":{"name":"`+name+`"}}`) }

// routerID returns the ID of the router with a name, or an empty one.
func (h *harness) routerID(name string) string {
	var all struct{ Routers []struct{ ID string } }
	h.do(http.MethodGet, "/v2.0/routers?name="+name, "", &all)
	if len(all.Routers) != 1 {
		return ""
	}
	return all.Routers[0].ID
}

// createRouted creates the Network example with the router edge.
func (h *harness) createRouted() {
	h.createWith("example", samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", Router: &samplecrdv1.RouterReference{Name: "edge"}})
}

// attachedTo returns the IDs of the routers to which a network is attached.
func (h *harness) attachedTo(networkID string) (routers []string) {
	var all struct {
		Ports []struct {
			RouterID string `json:"device_id"`
		}
	}
	h.do(http.MethodGet, "/v2.0/ports?device_owner=network:router_interface&network_id="+networkID, "", &all)
	for _, port := range all.Ports {
		routers = append(routers, port.RouterID)
	}
	return routers
}

// hasRouter reports whether the Network example is Ready and attached to one router,
// which its status records. The name is empty for none.
func (h *harness) hasRouter(name string) error {
	if err := h.hasReady("example"); err != nil {
		return err
	}
	var want []string
	var recorded *samplecrdv1.RouterStatus
	if name != "" {
		want = []string{h.routerID(name)}
		recorded = &samplecrdv1.RouterStatus{ID: want[0], Name: name}
	}
	status := h.get("example").Status
	if got := h.attachedTo(status.NetworkID); !slices.Equal(got, want) || (status.Router == nil) != (recorded == nil) || recorded != nil && *status.Router != *recorded {
		return fmt.Errorf("the network is attached to %v, the status is %+v; want %v", got, status.Router, recorded)
	}
	return nil
}

// TestRouterAtRest: a healthy Network with a router passes a sync and a resync without a
// request of its own, also after a restart.
func TestRouterAtRest(t *testing.T) {
	h := newHarness(t)
	h.postRouter("edge")
	stop := h.startController()
	h.createRouted()
	h.eventually(func() error { return h.hasRouter("edge") })
	h.eventually(h.isIdle)
	h.forgetRequests()
	h.controller.queue.Add(h.key())
	h.eventually(h.isIdle)
	h.wantRequests("a sync at rest", 0, 0)
	stop()

	h.forgetRequests()
	h.startWorkers(1) // the sync of example has ended when another Network is ready
	h.create("last", "10.99.0.0/24", "")
	h.waitReady("last")
	h.wantRequests("a restart and another Network", 2, 2)
}

// TestRouterOfOthers: a subnet that a user attached to a router is not detached, and the
// Network says why it is not deleted.
func TestRouterOfOthers(t *testing.T) {
	h := newHarness(t)
	h.postRouter("edge")
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	network := h.waitReady("example")
	h.do(http.MethodPut, "/v2.0/routers/"+h.routerID("edge")+"/add_router_interface", `{"subnet_id":"`+network.Status.SubnetID+`"}`, nil)

	// Another router is refused, and this one is as desired.
	h.postRouter("core")
	h.patch("example", `{"spec":{"router":{"name":"core"}}}`)
	h.waitCondition("example", metav1.ConditionFalse, "NotOurs", "is attached to router "+h.routerID("edge")+", but not by this Network")
	h.patch("example", `{"spec":{"router":{"name":"edge"}}}`)
	h.waitReady("example")
	if router := h.get("example").Status.Router; router != nil {
		t.Errorf("the status records %+v, which a user attached", router)
	}
	h.eventually(h.isIdle)
	h.forgetRequests()
	h.controller.queue.Add(h.key())
	h.eventually(h.isIdle)
	h.wantRequests("a sync at rest", 0, 0)

	h.delete("example")
	h.waitCondition("example", metav1.ConditionFalse, "InUse", "but not by this Network (subnet "+network.Status.SubnetID+" to router "+h.routerID("edge")+")")
	if got := h.attachedTo(network.Status.NetworkID); len(got) != 1 {
		t.Errorf("the network is attached to %v", got)
	}
	h.do(http.MethodPut, "/v2.0/routers/"+h.routerID("edge")+"/remove_router_interface", `{"subnet_id":"`+network.Status.SubnetID+`"}`, nil)
	h.waitGone("example")
}

// TestRouterOfUsedNetwork: while a port uses the subnet, neither a deletion nor another
// range detaches the router: what uses the subnet uses the router.
func TestRouterOfUsedNetwork(t *testing.T) {
	h := newHarness(t)
	h.postRouter("edge")
	h.startController()
	h.createRouted()
	h.eventually(func() error { return h.hasRouter("edge") })
	network := h.get("example")
	port := h.createPort(network.Status.NetworkID)
	isAttached := func() {
		t.Helper()
		if got := h.attachedTo(network.Status.NetworkID); len(got) != 1 {
			t.Errorf("the network is attached to %v", got)
		}
	}
	h.patch("example", `{"spec":{"cidr":"10.0.1.0/24"}}`)
	h.waitCondition("example", metav1.ConditionFalse, "InUse", port)
	isAttached()
	h.patch("example", `{"spec":{"gateway":"10.0.0.9","cidr":"10.0.0.0/24"}}`) // a gateway can change
	h.eventually(func() error {
		return errors.Join(h.hasRouter("edge"), h.hasNeutron("example", "10.0.0.0/24", "10.0.0.9"))
	})
	h.delete("example")
	h.waitCondition("example", metav1.ConditionFalse, "InUse", port)
	isAttached()
	h.deletePort(port)
	h.waitGone("example")
	if routers := h.attachedTo(network.Status.NetworkID); routers != nil {
		t.Errorf("attached to %v after the deletion", routers)
	}
}

// TestRouterIsMissing: a router that does not exist, or whose name is not unique, is
// explained, and found when it is there.
func TestRouterIsMissing(t *testing.T) {
	h := newHarness(t)
	h.startController()
	h.createRouted()
	h.waitCondition("example", metav1.ConditionFalse, "NotFound", `router "edge", which spec.router names, does not exist`)
	h.postRouter("edge")
	h.postRouter("edge")
	h.patch("example", `{"metadata":{"labels":{"a":"b"}},"spec":{"tags":["a"]}}`)
	h.waitCondition("example", metav1.ConditionFalse, "Ambiguous", `Neutron has 2 routers with the name "edge"`)
	h.postRouter("core")
	h.patch("example", `{"spec":{"router":{"name":"core"}}}`)
	h.eventually(func() error { return h.hasRouter("core") })
	h.patch("example", `{"spec":{"router":{"name":null,"id":"`+h.routerID("core")+`"}}}`)
	h.eventually(func() error {
		if router := h.get("example").Status.Router; router == nil || router.ID != h.routerID("core") || router.Name != "" {
			return fmt.Errorf("the status records %+v", router)
		}
		return nil
	})
}

// TestRouterDrift: a subnet that somebody detaches is attached again.
func TestRouterDrift(t *testing.T) {
	h := newHarness(t)
	h.settings.drift.ResyncPeriod = 50 * time.Millisecond
	h.postRouter("edge")
	h.startController()
	h.createRouted()
	h.eventually(func() error { return h.hasRouter("edge") })
	h.eventually(h.isIdle)
	h.do(http.MethodPut, "/v2.0/routers/"+h.routerID("edge")+"/remove_router_interface", `{"subnet_id":"`+h.get("example").Status.SubnetID+`"}`, nil)
	h.waitEventNote("Drifted", "the subnet was not attached to its router; attached the subnet to router "+h.routerID("edge"))
	h.eventually(func() error { return h.hasRouter("edge") })
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

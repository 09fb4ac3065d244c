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

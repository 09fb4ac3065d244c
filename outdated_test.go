package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestOutdatedCache: another client changes something in Neutron after the last list.
// The request that follows from the cache is rejected. Then the controller looks, and
// does the right thing.
func TestOutdatedCache(t *testing.T) {
	edit := func(h *harness) { h.edit("10.0.0.0/24", "10.0.0.9") }
	isEdited := func(h *harness) { h.waitReady("example"); h.wantNeutron("example", "10.0.0.0/24", "10.0.0.9") }
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

package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	applyv1 "github.com/samplecrd/network-controller/pkg/client/applyconfiguration/samplecrd/v1"
)

// holdRequests delays all requests with a method until the returned function is
// called.
func (h *harness) holdRequests(method string) (release func()) {
	released := make(chan struct{})
	hold := func(r *http.Request) {
		if r.Method == method {
			h.untilTestEnds(released)
		}
	}
	h.hold.Store(&hold)
	return func() { close(released) }
}

// hasConditions reports whether a Network has exactly these types of conditions with
// the status True.
func (h *harness) hasConditions(name string, want ...string) error {
	var got []string
	for _, condition := range h.get(name).Status.Conditions {
		if condition.Status == metav1.ConditionTrue {
			got = append(got, condition.Type)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s has the conditions %q, want %q", name, got, want)
	}
	return nil
}

// TestWorkInProgressIsVisible: users see an edit and a deletion before the first
// request that changes Neutron returns.
func TestWorkInProgressIsVisible(t *testing.T) {
	h := newHarness(t)
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")
	h.eventually(func() error { return h.hasConditions("example", "Ready") })

	release := h.holdRequests(http.MethodPut)
	h.edit("10.0.0.0/24", "10.0.0.9")
	h.waitCondition("example", metav1.ConditionFalse, "Reconciling", "The spec was edited. The first step is to change gateway from 10.0.0.1 to 10.0.0.9.")
	h.eventually(func() error { return h.hasConditions("example", "Reconciling") })
	release()
	h.waitReady("example")
	h.eventually(func() error { return h.hasConditions("example", "Ready") })

	release = h.holdRequests(http.MethodDelete)
	id := h.get("example").Status.NetworkID
	h.delete("example")
	h.waitCondition("example", metav1.ConditionFalse, "Deleting", "The first step is to delete the Neutron network "+id)
	h.eventually(func() error { return h.hasConditions("example", "Reconciling") })
	release()
	h.waitGone("example")
}

// TestStalled: a range that ports use stays. The condition names the intent, the port
// and the cure. It stays as it is while the controller retries.
func TestStalled(t *testing.T) {
	h := newHarness(t)
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	port := h.createPort(h.waitReady("example").Status.NetworkID)

	h.edit("10.0.9.0/24", "")
	h.waitCondition("example", metav1.ConditionFalse, "InUse", "("+port+"). Delete the ports, or restore the previous spec.")
	h.eventually(func() error { return h.hasConditions("example", "Stalled") })
	h.forgetRequests()
	h.waitRequests(6) // several retries
	h.wantNoWritesTo("/example")
	if n := strings.Count(h.log.String(), "Sync failed; retrying later"); n != 1 {
		t.Errorf("the failure was logged %d times, want once", n)
	}

	h.deletePort(port)
	h.waitReady("example")
	h.eventually(func() error { return h.hasConditions("example", "Ready") })
	h.waitEventNote("SubnetReplaced", "Replaced subnet 10.0.0.0/24 by 10.0.9.0/24, gateway 10.0.9.1.")
}

// TestOverwrittenStatusIsReported: the controller corrects a status that another
// client has written, and an event names the client, once.
func TestOverwrittenStatusIsReported(t *testing.T) {
	h := newHarness(t)
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	id := h.waitReady("example").Status.NetworkID
	for _, wrong := range []string{"first", "second"} {
		h.patchStatus("example", `{"status":{"networkID":"`+wrong+`"}}`, "rival")
		h.eventually(func() error {
			if got := h.get("example").Status.NetworkID; got != id {
				return fmt.Errorf("status.networkID is %q, want %q", got, id)
			}
			return nil
		})
	}
	h.waitEvents("NetworkCreated", "StatusOverwritten")
	h.waitEventNote("StatusOverwritten", `The field manager "rival" has written the status of this Network`)
	if err := h.hasLogged("Another client has written the status"); err != nil {
		t.Error(err)
	}
}

// TestStatusOfOtherVersion: a status that another version of the controller wrote with
// server-side apply is corrected: no value and no owner of fields is left over, however
// often it is written. The condition of another controller stays.
func TestStatusOfOtherVersion(t *testing.T) {
	h := newHarness(t)
	stop := h.startController()
	h.createWith("example", specWithSettings())
	before := h.waitReady("example").Status
	stop()
	now := metav1.Now().Rfc3339Copy()
	apply := func(manager string, status *applyv1.NetworkStatusApplyConfiguration) {
		if _, err := h.client.SamplecrdV1().Networks(h.namespace).ApplyStatus(t.Context(), applyv1.Network("example", h.namespace).WithStatus(status),
			metav1.ApplyOptions{FieldManager: manager, Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	ready := applymetav1.Condition().WithType("Ready").WithStatus("True").WithReason("Provisioned").WithMessage("Ready.").WithLastTransitionTime(now)
	apply(controllerName, applyv1.NetworkStatus().WithNetworkID(before.NetworkID).WithSubnetID(before.SubnetID).WithCloud(before.Cloud).
		WithMTU(1234).WithTags(before.Tags...).WithSubnetPool(applyv1.SubnetPoolStatus().WithID("pool").WithName("old")).WithConditions(ready))
	apply("another-controller", applyv1.NetworkStatus().WithConditions(
		applymetav1.Condition().WithType("Theirs").WithStatus("True").WithReason("Their").WithMessage("").WithLastTransitionTime(now)))

	h.startController()
	var owners int
	for i := range 4 {
		h.patch("example", fmt.Sprintf(`{"spec":{"tags":["tag%d"]}}`, i))
		h.eventually(func() error {
			return cmp.Or(h.hasConditions("example", "Ready", "Theirs"), h.hasSettings(int(before.MTU), fmt.Sprintf("tag%d", i)))
		})
		got := h.get("example")
		if i == 0 {
			owners = len(got.ManagedFields)
		}
		if got.Status.SubnetPool != nil || got.Status.MTU != before.MTU || len(got.ManagedFields) > owners {
			t.Errorf("after %d edits, the status is %+v, with %d owners, at first %d", i+1, got.Status, len(got.ManagedFields), owners)
		}
	}
}

// TestStatusOfNewerVersion: after a rollback, the CRD has a status field that this
// version does not have. Its value remains when the controller writes the status. The
// test is not parallel, because it changes the CRD.
func TestStatusOfNewerVersion(t *testing.T) {
	h := newSequentialHarness(t)
	const field = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/floatingIP"
	patchCRD := func(ctx context.Context, operation string) {
		err := h.kube.CoreV1().RESTClient().Patch(types.JSONPatchType).
			AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/networks.samplecrd.k8s.io").
			Body([]byte("[" + operation + "]")).Do(ctx).Error()
		if err != nil {
			t.Fatalf("changing the CRD: %v", err)
		}
	}
	patchCRD(t.Context(), `{"op":"add","path":"`+field+`","value":{"type":"object","properties":{"id":{"type":"string"}}}}`)
	defer patchCRD(context.WithoutCancel(t.Context()), `{"op":"remove","path":"`+field+`"}`)
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")
	hasRecord := func() error {
		live, err := h.client.SamplecrdV1().RESTClient().Get().Namespace(h.namespace).Resource("networks").Name("example").DoRaw(t.Context())
		if want := `"floatingIP":{"id":"recorded"}`; err != nil || !strings.Contains(string(live), want) {
			return fmt.Errorf("the Network lacks %s: %s, %w", want, live, err)
		}
		return nil
	}
	h.eventually(func() error { // the API server needs a moment for the new field
		h.patchStatus("example", `{"status":{"floatingIP":{"id":"recorded"}}}`, "newer")
		return hasRecord()
	})
	h.edit("10.0.9.0/24", "")
	h.waitReady("example")
	if err := hasRecord(); err != nil {
		t.Error(err)
	}
}

// TestOwnStatusIsNotReported: the controller's own writes during an edit and a
// deletion are not taken for those of another client.
func TestOwnStatusIsNotReported(t *testing.T) {
	h := newHarness(t)
	h.startController()
	h.createWith("example", specWithSettings())
	h.waitReady("example")
	for i := range 5 {
		h.patch("example", fmt.Sprintf(`{"spec":{"tags":["tag%d"]}}`, i))
		h.waitReady("example")
	}
	h.delete("example")
	h.waitGone("example")
	if err := h.hasLogged("has written the status"); err == nil {
		t.Errorf("the log is\n%s", h.log.String())
	}
}

// TestDeploymentInvalidIsVisible: while a Deployment requests something invalid, its
// Network has a condition.
func TestDeploymentInvalidIsVisible(t *testing.T) {
	h := newDeploymentHarness(t)
	h.startController()
	h.deploy("web", "cidr=10.0.0.0/24")
	h.waitReady("web")
	h.annotate("web", "gateway=10.0.9.9")
	h.eventually(func() error { return h.hasConditions("web", "DeploymentInvalid", "Ready") })
	condition := meta.FindStatusCondition(h.get("web").Status.Conditions, samplecrdv1.ConditionDeploymentInvalid)
	if !strings.Contains(condition.Message, "samplecrd.k8s.io/gateway 10.0.9.9 is not inside samplecrd.k8s.io/cidr") {
		t.Errorf("the message is %q", condition.Message)
	}
	h.annotate("web", "gateway")
	h.eventually(func() error { return h.hasConditions("web", "Ready") })
}

// TestReplaceKeepsRecord: kubectl replace removes the finalizer and the annotations.
// The controller still removes the tags that it has added, as the status records them.
func TestReplaceKeepsRecord(t *testing.T) {
	h := newHarness(t)
	h.startController()
	h.createWith("example", specWithSettings())
	h.waitReady("example")
	h.patch("example", `{"metadata":{"finalizers":null,"annotations":null},"spec":{"mtu":null,"tags":["red"],"dnsNameservers":null}}`)
	h.eventually(func() error { return h.hasSettings(1450, "red") })
}

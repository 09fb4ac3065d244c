package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	applyv1 "github.com/samplecrd/network-controller/pkg/client/applyconfiguration/samplecrd/v1"
)

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

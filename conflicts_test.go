package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	applyv1 "github.com/samplecrd/network-controller/pkg/client/applyconfiguration/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// In the tests of this file, somebody else has written what the controller writes, too: a
// user, another version of the controller, or a controller of another cloud or cluster.

// TestTwoControllersDisagree: two controllers that write different statuses do not
// trigger each other indefinitely.
func TestTwoControllersDisagree(t *testing.T) {
	h := newHarness(t)
	h.settings.reconcile.Retry.OverwrittenStatus = time.Hour
	h.settings.reconcile.AllowAdoption = true
	h.startController()
	h.createAdopting("example", "10.0.0.0/24", h.postNetwork("theirs", ""))
	h.waitReady("example")
	first := h.controller
	h.settings.reconcile.AllowAdoption = false
	h.startController()
	h.waitCondition("example", metav1.ConditionFalse, "AdoptionNotAllowed", "")
	h.eventually(func() error { // the first controller has received the status
		if n, err := first.networks.Get(h.key()); err != nil || n.Status.Conditions[0].Reason != "AdoptionNotAllowed" {
			return fmt.Errorf("the cache has %v, %w", n, err)
		}
		return nil
	})
	h.forgetRequests()
	h.create("another", "10.0.1.0/24", "")
	h.waitReady("another")
	for _, write := range h.writes.get() {
		if strings.Contains(write, "/example") {
			t.Errorf("unexpected write: %s", write)
		}
	}
}

// TestRetainWithStaleCache: nothing is deleted because of an outdated deletion
// policy in the cache.
func TestRetainWithStaleCache(t *testing.T) {
	h := newHarness(t)
	var unreachable atomic.Bool
	reads := make(chan struct{}, 100)
	h.transport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if unreachable.Load() {
				if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/networks/example") {
					reads <- struct{}{}
				}
				return nil, errUnreachable
			}
			response, err := next.RoundTrip(r)
			if err == nil {
				response.Body = cutBody{response.Body, &unreachable}
			}
			return response, err
		})
	}
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	port := h.createPort(h.waitReady("example").Status.NetworkID)
	h.delete("example")
	h.waitCondition("example", metav1.ConditionFalse, "InUse", "")
	unreachable.Store(true)
	h.patch("example", `{"spec":{"deletionPolicy":"Retain"}}`)
	h.deletePort(port)
	<-reads
	<-reads // the first try has ended
	h.wantCounts(1, 1)
	unreachable.Store(false)
	h.waitGone("example")
	h.wantCounts(1, 1)
}

// cutBody is a response body that breaks off while the API server is unreachable.
type cutBody struct {
	io.ReadCloser
	unreachable *atomic.Bool
}

func (b cutBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.unreachable.Load() {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// TestStatusForbidden: if the controller is not permitted to write the status, an
// event reports it.
func TestStatusForbidden(t *testing.T) {
	h := newHarness(t)
	var allowed atomic.Bool
	h.transport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/status") && !allowed.Load() {
				r = r.Clone(r.Context())
				r.Header.Set("Impersonate-User", "user without permissions")
			}
			return next.RoundTrip(r)
		})
	}
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitEventNote("Forbidden", `cannot patch resource "networks/status"`)
	allowed.Store(true)
	h.waitReady("example")
	h.wantCounts(1, 1)
}

// TestStatusOfDeletedNetwork: the status of a deleted Network is not written to a
// new one with the same name, and creates no object.
func TestStatusOfDeletedNetwork(t *testing.T) {
	h := newHarness(t)
	h.create("example", "10.0.0.0/24", "")
	old := h.get("example")
	h.delete("example")
	c, _ := h.newController(t.Context())
	if err := h.informer.GetStore().Add(old); err != nil { // the cache does not contain the deletion yet
		t.Fatal(err)
	}
	desired, actual := c.reconciler.Desired(h.key(), old), plan.Actual{Record: plan.Record{NetworkID: "created"}}

	if err := c.reconciler.Report(t.Context(), h.key(), old, desired, actual, nil, nil); err != nil {
		t.Errorf("reporting on a deleted object: %v", err)
	}
	h.waitGone("example")

	h.create("example", "10.0.1.0/24", "")
	if err := c.reconciler.Report(t.Context(), h.key(), old, desired, actual, nil, nil); err == nil {
		t.Error("the status was written to another object with the same name")
	}
	if got := h.get("example").Status.NetworkID; got != "" {
		t.Errorf("status.networkID is %q, want none", got)
	}
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

// TestOtherCloud: a controller that is connected to another cloud by mistake
// changes nothing there, forgets nothing, and lets no Network disappear.
func TestOtherCloud(t *testing.T) {
	h := newHarness(t)
	h.create("example", "192.168.0.0/16", "")
	h.create("deleted", "192.168.0.0/16", "")
	h.createWith("retained", samplecrdv1.NetworkSpec{CIDR: "192.168.0.0/16", DeletionPolicy: samplecrdv1.DeletionPolicyRetain})
	stop := h.startController()
	before := h.waitReady("example")
	h.waitReady("deleted")
	h.waitReady("retained")
	if got := before.Annotations[samplecrdv1.AnnotationCloud]; got != "RegionOne/test" {
		t.Errorf("the Network records the cloud %q", got)
	}
	stop()

	first := h.neutron
	h.connectTo("RegionTwo/test", embedded.New(embedded.Options{}))
	h.delete("deleted")
	h.delete("retained")
	h.edit("10.0.0.0/24", "")
	stop = h.startController()
	message := `the network is in the cloud "RegionOne/test", but the controller is connected to "RegionTwo/test"`
	for _, name := range []string{"example", "deleted", "retained"} {
		network := h.waitCondition(name, metav1.ConditionFalse, "OtherCloud", message)
		if network.Status.NetworkID == "" || len(network.Finalizers) == 0 {
			t.Errorf("%s lost its network %q or its finalizers %q", name, network.Status.NetworkID, network.Finalizers)
		}
	}
	h.waitEventNote("OtherCloud", message)

	// Who may write Networks cannot move them.
	h.patch("example", `{"metadata":{"annotations":null}}`)
	h.patch("deleted", `{"metadata":{"annotations":{"samplecrd.k8s.io/cloud":"RegionTwo/test"}}}`)
	h.patch("example", `{"metadata":{"finalizers":null,"annotations":{"samplecrd.k8s.io/cloud":"RegionTwo/test"}}}`)
	h.eventually(h.isIdle)
	for _, name := range []string{"example", "deleted", "retained"} {
		if err := h.hasCondition(name, metav1.ConditionFalse, "OtherCloud", message); err != nil {
			t.Error(err)
		}
	}
	h.wantCounts(0, 0)
	stop()

	h.connectTo("RegionOne/test", first)
	h.startController()
	h.waitGone("deleted")
	h.waitGone("retained")
	if after := h.waitReady("example"); after.Status.NetworkID != before.Status.NetworkID {
		t.Errorf("the network changed from %s to %s", before.Status.NetworkID, after.Status.NetworkID)
	}
	h.wantExample("10.0.0.0/24", "10.0.0.1")
	h.wantCounts(2, 2)
}

// TestLeaveCloud: Networks move to another cloud if the administrator names the one
// to leave. What is there stays. That is no drift.
func TestLeaveCloud(t *testing.T) {
	h := newHarness(t)
	h.settings.reconcile.ReportDrift = true
	h.create("example", "192.168.0.0/16", "")
	h.create("deleted", "192.168.0.0/16", "")
	stop := h.startController()
	before := h.waitReady("example")
	h.waitReady("deleted")
	stop()

	first := h.neutron
	h.connectTo("RegionTwo/test", embedded.New(embedded.Options{}))
	h.settings.reconcile.LeaveCloud = "RegionOne/test"
	h.delete("deleted")
	h.startController()
	h.waitGone("deleted")
	after := h.waitReady("example")
	if after.Status.NetworkID == before.Status.NetworkID || after.Annotations[samplecrdv1.AnnotationCloud] != "RegionTwo/test" {
		t.Errorf("the Network has the network %s in the cloud %q", after.Status.NetworkID, after.Annotations[samplecrdv1.AnnotationCloud])
	}
	h.wantExample("192.168.0.0/16", "192.168.0.1")
	h.wantCounts(1, 1)
	h.neutron = first
	h.wantCounts(2, 2)
}

// TestOlderNetwork: a network that had the owner marker of a Network before the
// Network was created is not taken over, unless a user confirms it.
func TestOlderNetwork(t *testing.T) {
	h := newHarness(t)
	older := h.postNetwork("planted", h.marker("example"))
	port := h.createPort(older)
	stop := h.startController()
	h.create("example", "10.0.0.0/24", "")
	cure := "kubectl annotate network -n " + h.namespace + " example samplecrd.k8s.io/cloud=RegionOne/test"
	h.waitCondition("example", metav1.ConditionFalse, "Ambiguous", cure)
	h.waitRequests(len(h.neutron.Requests()) + 3) // some retries
	stop()
	h.forgetRequests()
	h.startController()
	h.waitRequests(5)
	if err := h.hasCondition("example", metav1.ConditionFalse, "Ambiguous", cure); err != nil {
		t.Error(err)
	}
	if got := h.get("example").Status.NetworkID; got != "" {
		t.Errorf("the status records the network %s", got)
	}
	h.wantCounts(1, 0)

	h.patch("example", `{"metadata":{"annotations":{"samplecrd.k8s.io/cloud":"RegionOne/test"}}}`)
	if got := h.waitReady("example").Status.NetworkID; got != older {
		t.Errorf("the network is %s, want %s", got, older)
	}
	h.wantCounts(1, 1)
	h.deletePort(port)
}

// TestCopiedMarker: without created_at, a duplicate is deleted whenever it was created,
// because it names another request. A copy of the owner marker names the same: it is
// reported, and not deleted, even with the network that it is a copy of.
func TestCopiedMarker(t *testing.T) {
	h := newHarness(t)
	h.rewriteAnswers(func(_ *http.Request, body string) string {
		return regexp.MustCompile(`"created_at":"[^"]*",`).ReplaceAllString(body, "")
	})
	h.settings.drift.ResyncPeriod = shortResync
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	id := h.waitReady("example").Status.NetworkID
	h.postNetwork(h.namespace+"/example", h.requested("example", "another"))
	h.eventually(func() error { return h.hasCounts(1, 1) })

	copied := h.postNetwork(h.namespace+"/example", h.inNeutron().Networks[0].Description)
	h.waitCondition("example", metav1.ConditionFalse, "Ambiguous", "Neutron has 2 networks with an owner marker of")
	h.delete("example")
	h.waitGone("example")
	if all := h.inNeutron().Networks; len(all) != 1 || all[0].ID != copied {
		t.Errorf("Neutron has %+v after the deletion, want the copy %s of %s", all, copied, id)
	}
}

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
)

// In the tests of this file, somebody else has written what the controller writes, too: a
// user, another version of the controller, or a controller of another cloud or cluster.

// TestRetainWithStaleCache: nothing is deleted because of an outdated deletion
// policy in the cache.
func TestRetainWithStaleCache(t *testing.T) {
	h := newHarness(t)
	var unreachable atomic.Bool
	reads := make(chan struct{}, 100)
	h.toKubernetes = func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
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
	}
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	port := h.post("ports", `{"port":{"network_id":"`+h.waitReady("example").Status.NetworkID+`"}}`)
	h.delete("example")
	h.waitCondition("example", "InUse", "")
	unreachable.Store(true)
	h.edit(`{"deletionPolicy":"Retain"}`)
	h.do(http.MethodDelete, "ports/"+port, "", nil)
	<-reads
	<-reads // the first try has ended
	h.want(h.hasCounts(1, 1))
	unreachable.Store(false)
	h.waitGone("example")
	h.want(h.hasCounts(1, 1))
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
	h.toKubernetes = func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/status") && !allowed.Load() {
			r = r.Clone(r.Context())
			r.Header.Set("Impersonate-User", "user without permissions")
		}
		return next.RoundTrip(r)
	}
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitEvent("Network", "example", "Forbidden", `cannot patch resource "networks/status"`)
	allowed.Store(true)
	h.waitReady("example")
	h.want(h.hasCounts(1, 1))
}

// TestOtherCloud: a controller that is connected to another cloud by mistake changes nothing
// there, forgets nothing, and lets no Network disappear. If the administrator names the cloud to
// leave, the Networks move, and what is there stays.
func TestOtherCloud(t *testing.T) {
	h := newHarness(t)
	first, second, names := h.neutron, embedded.New(embedded.Options{}), []string{"example", "deleted", "retained"}
	h.create("example", "192.168.0.0/16", "")
	h.create("deleted", "192.168.0.0/16", "")
	h.createWith("retained", retained)
	stop := h.startController()
	h.waitAllReady()
	before := h.get("example")
	if got := before.Annotations[samplecrdv1.AnnotationCloud]; got != "RegionOne/test" {
		t.Errorf("the Network records the cloud %q", got)
	}
	stop()

	h.cloud, h.neutron = "RegionTwo/test", second
	h.delete("deleted")
	h.delete("retained")
	h.edit(`{"cidr":"10.0.0.0/24","gateway":null}`)
	stop = h.startController()
	message := `the network is in the cloud "RegionOne/test", but the controller is connected to "RegionTwo/test"`
	for _, name := range names {
		h.waitCondition(name, "OtherCloud", message)
	}
	h.waitEvent("Network", "example", "OtherCloud", message)
	// Who may write Networks cannot move them.
	h.patch("example", `{"metadata":{"annotations":null}}`)
	h.patch("deleted", `{"metadata":{"annotations":{"samplecrd.k8s.io/cloud":"RegionTwo/test"}}}`)
	h.patch("example", `{"metadata":{"finalizers":null,"annotations":{"samplecrd.k8s.io/cloud":"RegionTwo/test"}}}`)
	h.eventually(h.isIdle)
	for _, name := range names {
		h.want(h.hasCondition(name, "OtherCloud", message))
	}
	h.want(h.hasCounts(0, 0))
	stop()

	h.cloud, h.neutron = "RegionOne/test", first
	stop = h.startController()
	h.waitGone("deleted")
	h.waitGone("retained")
	h.waitReady("example")
	h.want(h.is(created + "\nretained retained: 10.0.0.0/24 10.0.0.1"))
	if after := h.get("example").Status.NetworkID; after != before.Status.NetworkID {
		t.Errorf("the network changed from %s to %s", before.Status.NetworkID, after)
	}
	h.create("deleted", "192.168.0.0/16", "")
	h.waitReady("deleted")
	stop()

	h.cloud, h.neutron = "RegionTwo/test", second
	h.flags("-leave-cloud=RegionOne/test", "-drift=report") // it is no drift
	h.delete("deleted")
	h.startController()
	h.waitGone("deleted")
	h.eventually(func() error { return h.is(created) })
	if got := h.get("example").Annotations[samplecrdv1.AnnotationCloud]; got != h.cloud {
		t.Errorf("the Network has moved to the cloud %q", got)
	}
	h.neutron = first
	h.want(h.hasCounts(3, 3))
}

// TestOlderNetwork: a network that had the owner marker of a Network before the
// Network was created is not taken over, unless a user confirms it.
func TestOlderNetwork(t *testing.T) {
	h := newHarness(t)
	older := h.postNetwork("planted", h.marker("example"))
	cure := "kubectl annotate network -n " + h.namespace + " example samplecrd.k8s.io/cloud=RegionOne/test"
	stop := h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitCondition("example", "Ambiguous", cure)
	stop()
	h.startController() // the next process does not, either
	h.edit(`{"gateway":"10.0.0.9"}`)
	h.waitCondition("example", "Ambiguous", cure)
	h.want(h.hasCounts(1, 0))

	h.patch("example", `{"metadata":{"annotations":{"samplecrd.k8s.io/cloud":"RegionOne/test"}}}`)
	if got := h.waitReady("example").Status.NetworkID; got != older {
		t.Errorf("the network is %s, want %s", got, older)
	}
	h.want(h.hasCounts(1, 1))
}

// The next tests have what happens between two mechanisms: an object that vanishes
// in spite of its finalizer, a response that is lost, a controller that was paused, and
// another one that still runs. In the end, Neutron has what the objects need, what
// somebody retained, and nothing else of ours.

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
	h.want(check())
}

// TestDeletedWithDefinition: while the CustomResourceDefinition is being deleted, nothing is
// deleted in Neutron, and the condition says how to confirm it.
func TestDeletedWithDefinition(t *testing.T) {
	h := newHarness(t)
	h.flags(shortResync, "-delete-orphans", "-orphan-grace-period=50ms")
	var isKept atomic.Bool
	h.toKubernetes = func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if !strings.HasSuffix(r.URL.Path, "/customresourcedefinitions/networks.samplecrd.k8s.io") || isKept.Load() {
			return next.RoundTrip(r)
		}
		response := httptest.NewRecorder()
		response.Header().Set("Content-Type", "application/json")
		_, _ = response.WriteString(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata",` +
			`"metadata":{"name":"networks.samplecrd.k8s.io","deletionTimestamp":"2026-01-01T00:00:00Z"}}`)
		return response.Result(), nil
	}
	h.postNetwork("orphan", h.marker("orphan"))
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")
	h.edit(`{"cidr":"10.0.1.0/24","gateway":null}`)
	h.waitReady("example") // an edit is not affected
	h.delete("example")
	h.waitCondition("example", "DefinitionDeleted",
		"kubectl annotate crd networks.samplecrd.k8s.io samplecrd.k8s.io/allow-deletion=true")
	h.waitLists(6)
	h.want(h.hasCounts(2, 1))
	isKept.Store(true)
	h.waitGone("example")
	h.eventually(func() error { return h.hasCounts(0, 0) })
}

// TestNetworkOfAnotherController: two controllers create a network each. The controller
// whose network the status does not name deletes it, although the Network is gone by then.
// The other controller did not see it. (test/stories/asleep.txtar has a controller that is
// paused, and Networks that stay.)
func TestNetworkOfAnotherController(t *testing.T) {
	h := newHarness(t)
	createB, subnetA := pauseAt(creates("networks")), pauseAt(creates("subnets"))
	h.between(createB.wait(h), nil)
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	<-createB.reached // the other one looks now, and finds nothing

	h.between(subnetA.wait(h), nil)
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
	createA := pauseAt(creates("networks"))
	lookB := pauseAt(func(r *http.Request) bool { return r.Method == http.MethodGet && r.URL.Query().Has("name") })
	status := pauseAt(func(r *http.Request) bool {
		return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/example/status")
	})
	h.between(createA.wait(h), nil)
	h.toKubernetes = func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		status.wait(h)(r)
		return response, err
	}
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	<-createA.reached
	h.delete("example")

	h.toKubernetes = nil
	h.between(nil, func(r *http.Request, _ *httptest.ResponseRecorder) { lookB.wait(h)(r) })
	h.startController()
	<-lookB.reached
	createA.release()
	<-status.reached            // A has named its network, and waits for the response
	h.eventually(func() error { // B has received that
		if n, err := h.networks.Get(h.key()); err != nil || n == nil || n.Status.NetworkID == "" {
			return fmt.Errorf("the cache has %v, %w", n, err)
		}
		return nil
	})
	lookB.release()
	h.waitGone("example")
	h.want(h.hasCounts(0, 0)) // B has deleted the network before it removed the finalizer
	status.release()
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/deployments"
	"github.com/samplecrd/network-controller/pkg/observe"
	"github.com/samplecrd/network-controller/test/neutronapi"
)

// The first tests of this file show the whole controller at its ordinary work: what a Network
// costs, and how the controller stops. Begin with TestWalkthrough.

// TestWalkthrough creates, edits and deletes a Network as new users do, and counts
// every request.
func TestWalkthrough(t *testing.T) {
	h := newHarness(t)
	h.startController()

	h.create("example", "192.168.0.0/16", "192.168.0.1")
	created := h.waitReady("example")
	h.want(h.is("example: 192.168.0.0/16 192.168.0.1"))
	h.wantRequests("creating", 2, 2)
	if diff := cmp.Diff([]string{samplecrdv1.Finalizer}, created.Finalizers); diff != "" {
		t.Errorf("finalizers differ (-want +got):\n%s", diff)
	}
	h.edit(`{"cidr":"192.168.1.0/16","gateway":"192.168.1.1"}`)
	edited := h.waitReady("example")
	h.want(h.is("example: 192.168.0.0/16 192.168.1.1"))
	h.wantRequests("editing the gateway", 1, 1)
	if before, after := created.Status, edited.Status; after.NetworkID != before.NetworkID || after.SubnetID != before.SubnetID {
		t.Errorf("the edit replaced the network or the subnet: %+v, and before %+v", after, before)
	}

	h.delete("example")
	h.waitGone("example")
	h.want(h.hasCounts(0, 0))
	h.wantRequests("deleting", 1, 1)
}

// TestShutdown: the request in flight finishes, no other request follows, and the
// next start completes the work. Until then, the watchdog sees the worker that waits.
func TestShutdown(t *testing.T) {
	h := newHarness(t)
	request := h.holdFirst(creates("networks"))
	stop := h.startController()
	h.create("example", "10.0.0.0/24", "")
	<-request.reached
	if err := h.watchdog.Check(0); err == nil || !strings.Contains(err.Error(), h.namespace+"/example") {
		t.Errorf("Check() = %v, want the Network whose request has no response", err)
	}

	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	h.eventually(func() error {
		if !h.queue.ShuttingDown() {
			return errors.New("the queue is not shutting down yet")
		}
		return nil
	})
	request.release()
	<-stopped
	h.want(h.hasCounts(1, 0))

	h.startController()
	h.waitReady("example")
	h.want(h.hasCounts(1, 1))
}

// cost is what one Network may cost: requests to Neutron, writes of the Network to
// Kubernetes, and Events. docs/benchmarks.md has the same goals.
type cost struct{ neutron, writes, events int }

// The costs of the controller. A change that needs more must say why.
var (
	costOfCreate = cost{neutron: 2, writes: 2, events: 1}
	costOfEdit   = cost{neutron: 1, writes: 1, events: 1}
	costOfDelete = cost{neutron: 1, writes: 1, events: 1}
)

// TestCost counts what Networks cost, and at rest. It guards the figures of the
// benchmark: counts do not depend on the machine.
func TestCost(t *testing.T) {
	const many = 20
	h := newHarness(t)
	stop := h.startController()
	createRouted(h)
	h.eventually(func() error { return errors.Join(h.is(created+" router edge"), h.hasSentEvents(1)) })
	h.forgetRequests()

	name := func(i int) string { return fmt.Sprintf("n%d", i) }
	for i := range many {
		h.create(name(i), fmt.Sprintf("10.2.%d.0/24", i), "")
	}
	h.waitAllReady()
	h.waitCost("creating", many, costOfCreate)
	for i := range many {
		h.patch(name(i), fmt.Sprintf(`{"spec":{"gateway":"10.2.%d.9"}}`, i))
	}
	h.waitAllReady()
	h.waitCost("editing", many, costOfEdit)

	h.patch("example", `{"metadata":{"labels":{"touched":"yes"}}}`)
	h.queue.Add(h.key())
	h.eventually(h.isIdle)
	h.waitCost("a label, and a sync at rest", 0, cost{})
	if err := h.hasLogged("has written the status"); err == nil {
		t.Error("the controller has taken its own write for that of another client")
	}
	stop()
	h.flags(shortResync)
	stop = h.startController()
	h.waitLists(2 + 4) // of the start, and of two drift checks
	h.waitCost("a restart and drift checks", many, cost{})
	stop()
	h.flags("-resync-period=1h")
	h.startController()
	h.waitSyncs(1 + many) // a sync may meet a deletion before its event, and the event adds the key again
	h.waitCost("a second restart", many, cost{})

	for i := range many {
		h.delete(name(i))
	}
	for i := range many {
		h.waitGone(name(i))
	}
	h.waitCost("deleting", many, costOfDelete)
}

// waitAllReady waits until all Networks are ready with their present spec.
func (h *harness) waitAllReady() {
	h.Helper()
	all, err := h.list()
	h.want(err)
	for _, network := range all {
		h.waitReady(network.Name)
	}
}

// waitCost waits until all Events were sent, and checks what a number of Networks
// cost since the last call.
func (h *harness) waitCost(doing string, networks int, each cost) {
	h.Helper()
	h.eventually(func() error { return h.hasSentEvents(networks * each.events) })
	h.wantRequests(doing, networks*each.neutron, networks*each.writes)
}

// TestRunEnds: Run returns when its context ends, also if the informers end first.
func TestRunEnds(t *testing.T) {
	h := newHarness(t)
	ctx, cancel := context.WithCancel(t.Context())
	p := h.newController(ctx)
	p.informers.start(ctx)
	p.WarmUp(ctx)
	cancel()
	p.informers.stop()
	h.want(p.Run(ctx, 1, time.Minute))
}

// TestHangingKubernetes: without a response, a request to Kubernetes ends after 30 seconds; a
// watch does not.
func TestHangingKubernetes(t *testing.T) {
	kubeconfig := kubeconfigFile(t, filepath.Join(t.TempDir(), "config"), "hanging", "http://kubernetes.example")
	synctest.Test(t, func(t *testing.T) {
		h := &harness{T: t, args: []string{"-kubeconfig=" + kubeconfig}}
		_, k, err := connectKubernetes(t.Context(), h.parse(), observe.Nothing{}, func(http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			})
		})
		h.want(err)
		for name, request := range map[string]func(context.Context) error{
			"Kubernetes": func(ctx context.Context) error { return k.kube.CoreV1().RESTClient().Get().Do(ctx).Error() },
			"Networks":   func(ctx context.Context) error { return k.networks.SamplecrdV1().RESTClient().Get().Do(ctx).Error() },
			"Deployments": func(ctx context.Context) error {
				_, err := k.metadata.Resource(deployments.Resource).List(ctx, metav1.ListOptions{})
				return err
			},
			"a watch": func(ctx context.Context) error {
				return k.watchNetworks.SamplecrdV1().RESTClient().Get().Do(ctx).Error()
			},
		} {
			want := 30 * time.Second
			if name == "a watch" {
				want = time.Hour
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			began := time.Now()
			err := request(ctx)
			if took := time.Since(began).Round(time.Second); err == nil || took != want {
				t.Errorf("a request for %s ends after %v (%v), want %v", name, took, err, want)
			}
			cancel()
		}
	})
}

// In the next tests, several tenants share a controller, and one of them takes more
// than a fair share; or several controllers share a project of OpenStack.

// TestSecondTenant: many Networks that need work after a start do not delay a new one,
// of another tenant or of the same one.
func TestSecondTenant(t *testing.T) {
	const networks, workers = 30, 5
	for name, same := range map[string]bool{"of another tenant": false, "of the same tenant": true} {
		t.Run(name, func(t *testing.T) {
			first := newHarness(t)
			second := first.beside()
			first.flags("-namespaces=" + first.namespace + "," + second.namespace)
			if same {
				second = first
			}
			for i := range networks {
				first.create(fmt.Sprintf("n%d", i), fmt.Sprintf("10.0.%d.0/24", i), "")
			}
			hold := make(chan struct{})
			slow := func(r *http.Request) {
				if creates("networks")(r) {
					first.untilTestEnds(hold)
					<-time.After(5 * time.Millisecond)
				}
			}
			first.hold.Store(&slow)
			first.startWorkers(workers)
			first.eventually(func() error { return first.hasQueued(networks - workers) })
			second.create("only", "10.0.0.0/24", "")
			first.eventually(func() error { return first.hasQueued(networks - workers + 1) })
			close(hold)
			second.waitReady("only")

			created := first.inNeutron().Networks // in the order of their creation
			before := slices.IndexFunc(created, func(n neutronapi.Network) bool { return strings.Contains(n.Name, "only") })
			if before < 0 || before > 2*workers {
				t.Errorf("%d of %d other Networks were created before the new one, want at most %d", before, networks, 2*workers)
			}
		})
	}
}

// hasQueued reports whether the queue holds this number of keys.
func (h *harness) hasQueued(want int) error {
	if got := h.queue.Len(); got != want {
		return fmt.Errorf("%d keys are in the queue, want %d", got, want)
	}
	return nil
}

// TestSyncRequests: many workers send the API server only a few requests at a time.
func TestSyncRequests(t *testing.T) {
	const networks, limit = 30, 8
	h := newHarness(t)
	var inFlight, most atomic.Int64
	sent := make(chan struct{}, 100*networks)
	h.failRequests(func(r *http.Request) bool {
		if r.Method != http.MethodPatch {
			return false
		}
		most.Store(max(most.Load(), inFlight.Add(1)))
		<-time.After(50 * time.Millisecond) // within a second, a request keeps its place
		inFlight.Add(-1)
		sent <- struct{}{}
		return true
	})
	for i := range networks {
		h.create(fmt.Sprintf("n%d", i), fmt.Sprintf("10.0.%d.0/24", i), "")
	}
	h.startWorkers(networks)
	for range networks {
		<-sent
	}
	if n := most.Load(); n > limit || n < 2 {
		t.Errorf("the API server got %d requests of syncs at a time, want at most %d, but several", n, limit)
	}
}

// TestTwoControllers: two controllers of one cluster and one project, with different
// namespaces, reconcile at the same time. Each of them lists all networks of the project,
// but changes only those of its namespaces.
func TestTwoControllers(t *testing.T) {
	a := newHarness(t)
	b, unwatched := a.beside(), a.beside()
	for _, h := range []*harness{a, b, unwatched} {
		h.postNetwork("orphan of "+h.namespace, h.marker("gone"))
	}
	a.postNetwork("foreign", "")
	unwatched.create("example", "10.0.0.0/24", "")
	for _, h := range []*harness{a, b} {
		h.flags("-namespaces="+h.namespace, shortResync, "-delete-orphans", "-orphan-grace-period=1ms")
	}
	stop := a.startController()
	b.startController()
	names := []string{"one", "two", "three"}
	for _, name := range names {
		a.create(name, "10.0.0.0/24", "")
		b.create(name, "10.0.0.0/24", "")
	}
	for _, name := range names {
		a.waitReady(name)
		b.waitReady(name)
	}
	a.eventually(func() error { return a.hasCounts(2*len(names)+2, 2*len(names)) }) // the orphans of both are gone
	if posts := a.neutronRequests(http.MethodPost); len(posts) != 4*len(names) {
		t.Errorf("Neutron received %d POSTs, want two for each Network: %+v", len(posts), posts)
	}
	if network := unwatched.get("example"); len(network.Finalizers) > 0 {
		t.Errorf("the Network in another namespace was changed: %+v", network)
	}
	stop()
	for _, name := range names {
		b.delete(name)
		b.waitGone(name)
	}
	a.want(a.hasCounts(len(names)+2, len(names)))
}

// The next tests have Deployments with the garbage collector of Kubernetes, or with faults.
// What a user sees is in test/stories/deployments.txtar.

// newDeploymentHarness returns a harness whose controllers watch Deployments. The
// garbage collector is Kubernetes' own.
func newDeploymentHarness(t *testing.T) *harness {
	h := newHarness(t)
	h.flags("-deployment-networks=annotated")
	return h
}

// deploy creates a Deployment without replicas.
func (h *harness) deploy(name string, annotations ...string) {
	h.Helper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	h.want(json.Unmarshal([]byte(`{"replicas":0,"selector":{"matchLabels":{"app":"web"}},"template":{
		"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web"}]}}}`), &deployment.Spec))
	_, err := h.kube.AppsV1().Deployments(h.namespace).Create(h.Context(), deployment, metav1.CreateOptions{})
	if err != nil {
		h.Fatalf("creating a Deployment: %v", err)
	}
	h.annotate(name, annotations...)
}

// annotate changes annotations of a Deployment; one without a value is removed.
func (h *harness) annotate(name string, annotations ...string) {
	h.Helper()
	change := map[string]any{}
	for _, annotation := range annotations {
		key, value, ok := strings.Cut(annotation, "=")
		change[samplecrdv1.GroupName+"/"+key] = value
		if !ok {
			change[samplecrdv1.GroupName+"/"+key] = nil
		}
	}
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": change}})
	_, err := h.kube.AppsV1().Deployments(h.namespace).Patch(h.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		h.Fatalf("annotating the Deployment: %v", err)
	}
}

// rewriteWrites lets a function see and change what the next controllers write of Networks.
func (h *harness) rewriteWrites(rewrite func(method, body string) string) {
	h.toKubernetes = func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if (r.Method == http.MethodPost || r.Method == http.MethodPatch) && strings.Contains(r.URL.Path, "/networks") {
			body, _ := io.ReadAll(r.Body)
			text := rewrite(r.Method, string(body))
			r = r.Clone(r.Context())
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		}
		return next.RoundTrip(r)
	}
}

// TestDeploymentDeleted: the garbage collector deletes the Network.
func TestDeploymentDeleted(t *testing.T) {
	for _, propagation := range []metav1.DeletionPropagation{"Background", "Foreground"} {
		t.Run(string(propagation), func(t *testing.T) {
			h := newDeploymentHarness(t)
			h.startController()
			h.deploy("web", "cidr=10.0.0.0/24")
			h.waitReady("web")
			options := metav1.DeleteOptions{PropagationPolicy: &propagation}
			h.want(h.kube.AppsV1().Deployments(h.namespace).Delete(t.Context(), "web", options))
			h.waitGone("web")
			h.want(h.hasCounts(0, 0))
		})
	}
}

// TestDeploymentsForbidden: without permission to watch Deployments, Networks are
// reconciled.
func TestDeploymentsForbidden(t *testing.T) {
	h := newDeploymentHarness(t)
	h.failRequests(func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/deployments") })
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")
}

// TestDeploymentMutatingWebhook: a webhook changes the spec of a Deployment's
// Network. An event reports it, and the Network is reconciled as it is.
func TestDeploymentMutatingWebhook(t *testing.T) {
	h := newDeploymentHarness(t)
	change := strings.NewReplacer(
		`"spec":{"cidr":`, `"spec":{"mtu":1400,"cidr":`, `"spec":{"mtu":null}`, `"spec":{"mtu":1400}`)
	h.rewriteWrites(func(_, body string) string { return change.Replace(body) })
	h.startController()
	h.deploy("web", "cidr=10.0.0.0/24")
	h.waitEvent("Deployment", "web", "NetworkNotMade", "check for a mutating admission webhook")
	h.waitReady("web")
}

// TestLargeMetadata: the cache holds no metadata that the controller does not read, and
// no write of the controller removes it from the object. An update for a Deployment has only
// what changes, and is for the version that the controller has read.
func TestLargeMetadata(t *testing.T) {
	h := newDeploymentHarness(t)
	writes := make(chan string, 1000)
	h.rewriteWrites(func(method, body string) string { writes <- method + " " + body; return body })
	h.startController()
	h.deploy("web", "cidr=10.0.0.0/24")
	h.waitReady("web")
	large := strings.Repeat("x", 200<<10)
	h.patch("web", `{"metadata":{"annotations":{"example.com/large":"`+large+`","samplecrd.k8s.io/large":"y"},
		"labels":{"example.com/label":"kept"},"finalizers":["example.com/kept","`+samplecrdv1.Finalizer+`"]},
		"spec":{"mtu":1400,"deletionPolicy":"Retain"}}`)
	h.waitEvent("Deployment", "web", "NetworkUpdated", "Updated the Network web: removed mtu.")
	h.waitReady("web")
	want := regexp.MustCompile(`^PATCH {"metadata":{"resourceVersion":"[0-9]+","uid":"[^"]+"},"spec":{"mtu":null}}$`)
	for len(writes) > 0 {
		if write := <-writes; strings.Contains(write, `"mtu":null`) && !want.MatchString(write) {
			t.Errorf("the update is %s, want %s", write, want)
		}
	}
	h.annotate("web", "cidr=10.0.1.0/24", "gateway=10.0.1.9")
	h.eventually(func() error { return h.is("web: 10.0.1.0/24 10.0.1.9") })
	h.patch("web", `{"status":{"networkID":"overwritten"}}`, "status")
	h.eventually(func() error {
		if h.get("web").Status.NetworkID == "overwritten" {
			return errors.New("the status was not corrected")
		}
		return nil
	})

	network := h.get("web")
	if network.Annotations["example.com/large"] != large || network.Annotations["samplecrd.k8s.io/large"] != "y" ||
		network.Labels["example.com/label"] != "kept" || network.Labels[samplecrdv1.LabelSource] != samplecrdv1.SourceAnnotation ||
		network.Spec.DeletionPolicy != samplecrdv1.DeletionPolicyRetain || !slices.Contains(network.Finalizers, "example.com/kept") {
		t.Errorf("the Network is %.2000v, want what the user has added, too", network)
	}
	h.eventually(func() error {
		received := h.networks.List()
		written, err := h.networks.Get(cache.MetaObjectToName(network)) // may be the controller's own write
		if err != nil || len(received) != 1 || received[0].ResourceVersion != network.ResourceVersion {
			return fmt.Errorf("the cache has %v, %w", received, err)
		}
		for _, cached := range []any{received[0], written} {
			if text, err := json.Marshal(cached); err != nil || len(text) > 4<<10 {
				return fmt.Errorf("the cached object has %d bytes: %.1000s (%w)", len(text), text, err)
			}
		}
		return nil
	})
	h.patch("web", `{"metadata":{"finalizers":["`+samplecrdv1.Finalizer+`"]}}`)
}

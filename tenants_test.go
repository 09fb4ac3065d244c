package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
)

// In the tests of this file, several tenants share a controller, and one of them takes more
// than a fair share; or several controllers share a project of OpenStack.

// TestSecondTenant: many Networks that need work after a start do not delay a new one,
// of another tenant or of the same one.
func TestSecondTenant(t *testing.T) {
	const networks, workers = 30, 5
	for name, same := range map[string]bool{"of another tenant": false, "of the same tenant": true} {
		t.Run(name, func(t *testing.T) {
			first := newHarness(t)
			second := first.beside()
			first.watched = []string{second.namespace}
			if same {
				second = first
			}
			for i := range networks {
				first.create(fmt.Sprintf("n%d", i), fmt.Sprintf("10.0.%d.0/24", i), "")
			}
			hold := make(chan struct{})
			slow := func(r *http.Request) {
				if r.Method != http.MethodGet || !listsAll(r.URL.Path, r.URL.RawQuery) {
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
			before := slices.IndexFunc(created, func(n neutronNetwork) bool { return strings.Contains(n.Name, "only") })
			if before < 0 || before > 2*workers {
				t.Errorf("%d of %d Networks of the first tenant were created before the new one, want at most %d", before, networks, 2*workers)
			}
		})
	}
}

// hasQueued reports whether the queue holds this number of keys.
func (h *harness) hasQueued(want int) error {
	if got := h.controller.queue.Len(); got != want {
		return fmt.Errorf("%d keys are in the queue, want %d", got, want)
	}
	return nil
}

// TestSyncRequests: many workers send the API server only a few requests at a time. (A
// request that takes a second gives its place to another one.)
func TestSyncRequests(t *testing.T) {
	const networks, limit = 60, 8
	h := newHarness(t)
	var mu sync.Mutex
	inFlight, most := map[*http.Request]time.Time{}, 0
	h.transport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodPatch {
				return next.RoundTrip(r)
			}
			mu.Lock()
			now, places := time.Now(), 1
			for _, sent := range inFlight {
				if now.Sub(sent) < 900*time.Millisecond {
					places++
				}
			}
			inFlight[r], most = now, max(most, places)
			mu.Unlock()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				delete(inFlight, r)
			}()
			return next.RoundTrip(r)
		})
	}
	for i := range networks {
		h.create(fmt.Sprintf("n%d", i), fmt.Sprintf("10.0.%d.0/24", i), "")
	}
	h.startWorkers(networks)
	for i := range networks {
		h.waitReady(fmt.Sprintf("n%d", i))
	}
	mu.Lock()
	defer mu.Unlock()
	if most > limit || most < 2 {
		t.Errorf("the API server got %d requests of syncs at a time, want at most %d, but several", most, limit)
	}
}

// TestNamespaceLimitWithManyWorkers: workers that create networks at once do not exceed
// the limit, and a Network that has its network is not affected by it.
func TestNamespaceLimitWithManyWorkers(t *testing.T) {
	h := newHarness(t)
	h.settings.reconcile.MaxNetworksPerNamespace = 3
	const networks = 12
	for i := range networks {
		h.create(fmt.Sprintf("n%d", i), "10.0.0.0/24", "")
	}
	arrived := make(chan struct{}, networks)
	release := make(chan struct{})
	hold := func(r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/v2.0/networks" {
			arrived <- struct{}{}
			h.untilTestEnds(release)
		}
	}
	h.hold.Store(&hold)
	h.startWorkers(networks)
	for range 3 {
		<-arrived
	}
	h.eventually(func() error { return h.hasReasons("NamespaceLimit", networks-3) })
	close(release)
	h.eventually(func() error { return h.hasReasons("Provisioned", 3) })
	h.wantCounts(3, 3)
	if n := len(arrived); n > 0 {
		t.Errorf("%d more requests to create a network arrived", n)
	}
}

// hasReasons reports whether this number of Networks has a reason.
func (h *harness) hasReasons(reason string, want int) error {
	all, err := h.list()
	if err != nil {
		return err
	}
	got := 0
	for _, network := range all {
		if ready := meta.FindStatusCondition(network.Status.Conditions, samplecrdv1.ConditionReady); ready != nil && ready.Reason == reason {
			got++
		}
	}
	if got != want {
		return fmt.Errorf("%d Networks have the reason %s, want %d", got, reason, want)
	}
	return nil
}

// TestLargeMetadata: the cache holds no metadata that the controller does not read, and
// no write of the controller removes it from the object.
func TestLargeMetadata(t *testing.T) {
	h := newDeploymentHarness(t)
	h.startController()
	web := h.deploy("web", "cidr=10.0.0.0/24")
	h.waitOwned(web, "10.0.0.0/24")
	large := strings.Repeat("x", 200<<10)
	h.patch("web", `{"metadata":{"annotations":{"example.com/large":"`+large+`","samplecrd.k8s.io/large":"y","kubectl.kubernetes.io/last-applied-configuration":"{}"},
		"labels":{"example.com/label":"kept"},"finalizers":["example.com/kept","`+samplecrdv1.Finalizer+`"]}}`)
	h.annotate("web", "cidr=10.0.1.0/24", "gateway=10.0.1.9")
	h.waitOwned(web, "10.0.1.0/24")
	h.annotate("web", "gateway") // removes a field of the spec
	h.eventually(func() error { return h.hasNeutron("web", "10.0.1.0/24", "10.0.1.1") })
	h.waitReady("web")
	h.patchStatus("web", `{"status":{"networkID":"overwritten"}}`, "restore")
	h.eventually(func() error {
		if h.get("web").Status.NetworkID == "overwritten" {
			return errors.New("the status was not corrected")
		}
		return nil
	})

	network := h.get("web")
	for name, want := range map[string]string{"example.com/large": large, "samplecrd.k8s.io/large": "y", "kubectl.kubernetes.io/last-applied-configuration": "{}"} {
		if network.Annotations[name] != want {
			t.Errorf("the annotation %s was removed or changed", name)
		}
	}
	if network.Labels["example.com/label"] != "kept" || network.Labels[samplecrdv1.LabelSource] != samplecrdv1.SourceAnnotation || !slices.Contains(network.Finalizers, "example.com/kept") {
		t.Errorf("the labels are %v and the finalizers %v, want those of the user, too", network.Labels, network.Finalizers)
	}
	h.eventually(func() error {
		received, _, _ := h.informer.GetStore().GetByKey(h.namespace + "/web")
		written, err := h.controller.networks.Get(cache.MetaObjectToName(network)) // may be the controller's own write
		if err != nil || received.(*samplecrdv1.Network).ResourceVersion != network.ResourceVersion {
			return fmt.Errorf("the cache has %v, %w", received, err)
		}
		for _, cached := range []any{received, written} {
			if text, err := json.Marshal(cached); err != nil || len(text) > 4<<10 {
				return fmt.Errorf("the cached object has %d bytes: %.1000s (%w)", len(text), text, err)
			}
		}
		return nil
	})
	h.patch("web", `{"metadata":{"finalizers":["`+samplecrdv1.Finalizer+`"]}}`)
}

// TestRapidEdits: a Network that is edited without end causes few events and few
// changes in Neutron. The last edit takes effect, and the deletion does not wait.
func TestRapidEdits(t *testing.T) {
	h := newHarness(t)
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")
	h.eventually(func() error { return h.hasSentEvents(1) })
	h.forgetRequests()
	const edits = 100
	begun := time.Now()
	for i := range edits {
		h.edit("10.0.0.0/24", fmt.Sprintf("10.0.0.%d", 10+i))
	}
	h.waitReady("example")
	h.wantExample("10.0.0.0/24", "10.0.0.109")
	changes := slices.DeleteFunc(h.neutronRequests(), func(r embedded.Request) bool { return r.Method == http.MethodGet })
	seconds := int(time.Since(begun).Seconds())
	// The retry after an outdated write does not wait for the limit.
	if most := 2 * (10 + seconds); len(changes) > most {
		t.Errorf("%d edits caused %d changes in Neutron within %d s, want at most %d", edits, len(changes), seconds, most)
	}
	events := h.writes.get()
	if n := len(events) - len(h.writes.networks()); n > 25+seconds/300 { // the limit of client-go's recorder
		t.Errorf("%d edits caused %d events, want at most 25: %v", edits, n, events)
	}
	t.Logf("%d edits: %d changes in Neutron, %d writes to Kubernetes, %d of them of the Network", edits, len(changes), len(events), len(h.writes.networks()))
	h.edit("10.0.0.0/24", "10.0.0.9") // is delayed
	h.delete("example")
	h.waitGone("example")
	h.wantCounts(0, 0)
}

// TestForbiddenNamespace: a namespace that the controller is not permitted to read
// does not block the others. It is reconciled once it is permitted.
func TestForbiddenNamespace(t *testing.T) {
	h := newHarness(t)
	other := h.beside()
	for _, h := range []*harness{h, other} {
		h.create("example", "10.0.0.0/24", "")
	}
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = h.namespace
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	allow := func(namespace string) {
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "controller"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: h.namespace}}}
		if _, err := h.kube.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	allow(h.namespace)
	startProgram(t, "-kubeconfig="+kubeconfig, "-neutron-endpoint="+h.neutronURL, "-cluster-name="+testCluster, "-namespaces="+h.namespace+","+other.namespace)
	h.waitReady("example")
	if network := other.get("example"); network.Status.NetworkID != "" {
		t.Error("the Network in the forbidden namespace was reconciled")
	}
	allow(other.namespace)
	other.waitReady("example")
}

// TestTwoControllers: two controllers of one cluster and one project, with different
// namespaces and a Lease each, reconcile at the same time. Each of them lists all
// networks of the project, but changes only those of its namespaces.
func TestTwoControllers(t *testing.T) {
	a := newHarness(t)
	b, unwatched := a.beside(), a.beside()
	for _, h := range []*harness{a, b, unwatched} {
		h.postNetwork("orphan of "+h.namespace, h.marker("gone"))
	}
	a.postNetwork("foreign", "")
	unwatched.create("example", "10.0.0.0/24", "")
	controllers := map[*harness]*replica{}
	for _, h := range []*harness{a, b} {
		controllers[h] = h.startReplica("-resync-period=1s", "-delete-orphans", "-orphan-grace-period=1ms", "-metrics-bind-address=127.0.0.1:0")
	}
	names := []string{"one", "two", "three"}
	for i := range names {
		a.create(names[i], "10.0.0.0/24", "")
		b.create(names[i], "10.0.0.0/24", "")
	}
	for i := range names {
		a.waitReady(names[i])
		b.waitReady(names[i])
	}
	a.eventually(func() error { return a.hasCounts(2*len(names)+2, 2*len(names)) }) // the orphans of both are gone
	for h, controller := range controllers {
		if h.holder() == "" {
			t.Error("a controller has no Lease of its own")
		}
		url := regexp.MustCompile(`"Serving metrics" url="([^"]+)"`).FindStringSubmatch(controller.log.String())[1]
		h.eventually(func() error {
			return serves(url, fmt.Sprintf(`samplecrd_neutron_cache_objects{kind="network"} %d`, 2*len(names)+2))
		})
		h.eventually(func() error { return serves(url, "samplecrd_orphans 0") })
	}
	posts := 0
	for _, request := range a.neutronRequests() {
		if request.Method == http.MethodPost {
			posts++
		}
	}
	if posts != 4*len(names) {
		t.Errorf("Neutron received %d POSTs, want two for each Network: %+v", posts, a.neutronRequests())
	}

	if network := unwatched.get("example"); len(network.Finalizers) > 0 {
		t.Errorf("the Network in another namespace was changed: %+v", network)
	}
	controllers[a].signal(t, syscall.SIGTERM)
	controllers[a].wantExit(t, 0)
	for _, name := range names {
		b.delete(name)
		b.waitGone(name)
	}
	a.wantCounts(len(names)+2, len(names))
}

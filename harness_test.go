package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	"github.com/samplecrd/network-controller/pkg/client/clientset/versioned/scheme"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions"
	networkinformers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/debugpage"
	"github.com/samplecrd/network-controller/pkg/deployments"
	"github.com/samplecrd/network-controller/pkg/drift"
	"github.com/samplecrd/network-controller/pkg/instrument"
	"github.com/samplecrd/network-controller/pkg/kube"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
	"github.com/samplecrd/network-controller/pkg/reconcile"
	"github.com/samplecrd/network-controller/pkg/store"
	"github.com/samplecrd/network-controller/pkg/watchdog"
	"github.com/samplecrd/network-controller/test/controlplane"
)

const testCluster = "test-cluster"

// cluster is the control plane that the tests of this package share. Each test
// has its own namespace in it, and its own Neutron.
var cluster *controlplane.Cluster

func TestMain(m *testing.M) {
	if os.Getenv(beTheProgram) != "" {
		if scale := os.Getenv(limitsScale); scale != "" {
			shortenLimits(scale)
		}
		setClockOnSignals()
		exitAfterParent()
		main()
		return
	}
	os.Exit(controlplane.RunTests(m, controlplane.Options{Apply: []string{"crd"}, ControllerManager: true}, func(c *controlplane.Cluster) { cluster = c }))
}

// harness is a namespace of a real API server, a Neutron behind real HTTP, and the
// controllers that a test starts for them. Methods named hasX return an error if X
// is not true; wantX checks it once; waitX waits for it.
type harness struct {
	*testing.T
	client    clientset.Interface
	kube      kubernetes.Interface
	namespace string
	watched   []string // further namespaces that the controllers watch

	neutron    *embedded.Server
	neutronURL string
	cloud      string                              // the identity of Neutron
	hold       atomic.Pointer[func(*http.Request)] // called before a request reaches Neutron

	transport        func(http.RoundTripper) http.RoundTripper // wraps the connection to Kubernetes, if set
	neutronTransport func(http.RoundTripper) http.RoundTripper // wraps the measured connection to Neutron, if set

	timeout  time.Duration // of a request to Neutron
	settings settings

	prepare    func(*Controller) // changes a controller before it starts, if set
	controller *Controller       // the latest one
	watchdog   *watchdog.Watchdog
	informer   cache.SharedIndexInformer
	log        ktesting.Buffer // of the latest controller
	writes     writes
	page       *debugpage.Recorder
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	t.Parallel()
	return newSequentialHarness(t)
}

// newSequentialHarness is for a test that must have the process for itself.
func newSequentialHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{
		T:       t,
		page:    debugpage.Off(),
		client:  clientset.NewForConfigOrDie(cluster.RESTConfig()),
		kube:    kubernetes.NewForConfigOrDie(cluster.RESTConfig()),
		cloud:   "RegionOne/test",
		timeout: openstack.DefaultTimeout,
		settings: settings{
			reconcile: reconcile.Options{
				FieldManager: controllerName, Cluster: testCluster, Alone: true, MaxInFlight: 50 * time.Millisecond, MaxLateness: time.Minute,
				Retry: reconcile.RetryDelays{InUse: 50 * time.Millisecond, Rejected: 5 * time.Minute, OverwrittenStatus: 50 * time.Millisecond},
			},
			drift:       drift.Options{Cluster: testCluster, ResyncPeriod: time.Hour, StartTimeout: patience},
			deployments: deployments.Options{Which: deployments.None},
		},
	}
	h.namespace = h.newNamespace()
	h.neutron = embedded.New(embedded.Options{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hold := h.hold.Load(); hold != nil {
			(*hold)(r)
		}
		h.neutron.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	h.neutronURL = server.URL
	return h
}

// beside returns a harness for another namespace, with this one's Neutron.
func (h *harness) beside() *harness {
	h.Helper()
	return &harness{
		T: h.T, client: h.client, kube: h.kube, namespace: h.newNamespace(), neutron: h.neutron, neutronURL: h.neutronURL, cloud: h.cloud, page: h.page,
		timeout: h.timeout, settings: h.settings,
	}
}

func (h *harness) newNamespace() string {
	h.Helper()
	namespace, err := h.kube.CoreV1().Namespaces().Create(h.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		h.Fatalf("creating a namespace: %v", err)
	}
	return namespace.Name
}

// connectTo makes the next controller connect to another cloud.
func (h *harness) connectTo(cloud string, neutron *embedded.Server) {
	h.cloud, h.neutron = cloud, neutron
}

// newController returns a controller for the test's namespace, and a function that
// starts its informers.
func (h *harness) newController(ctx context.Context) (c *Controller, start func()) {
	h.Helper()
	config := cluster.RESTConfig()
	config.Wrap(h.writes.count)
	config.Wrap(h.page.Kubernetes)
	if h.transport != nil {
		config.Wrap(h.transport)
	}
	k, err := newClients(config)
	if err != nil {
		h.Fatal(err)
	}
	recorder := kube.NewEventRecorder(ctx, k.kube, scheme.Scheme, controllerName)
	observed := instrument.Neutron
	if h.neutronTransport != nil {
		observed = func(next http.RoundTripper) http.RoundTripper { return h.neutronTransport(instrument.Neutron(next)) }
	}
	neutronClient, err := openstack.New(h.neutronURL, openstack.WithCloudIdentity(h.cloud), openstack.WithTimeout(h.timeout),
		openstack.WithTransport(func(next http.RoundTripper) http.RoundTripper {
			return h.page.Neutron(openstack.Operation)(observed(next))
		}), openstack.OnSkipped(instrument.Skipped()))
	if err != nil {
		h.Fatalf("connecting to Neutron: %v", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(k.watchNetworks, 0, informers.WithNamespace(h.namespace))
	starts := []func(){func() { factory.StartWithContext(ctx) }}
	networkInformers := store.ByNamespace[networkinformers.TypedNetworkInformer]{h.namespace: factory.Samplecrd().V1().Networks()}
	for _, namespace := range h.watched {
		factory := informers.NewSharedInformerFactoryWithOptions(k.watchNetworks, 0, informers.WithNamespace(namespace))
		networkInformers[namespace] = factory.Samplecrd().V1().Networks()
		starts = append(starts, func() { factory.StartWithContext(ctx) })
	}
	networks, err := store.New(klog.FromContext(ctx), networkInformers, k.resource().LogWatchError(""), h.page)
	if err != nil {
		h.Fatalf("preparing the informer: %v", err)
	}
	deploymentFactory := metadatainformer.NewFilteredSharedInformerFactory(k.watchMetadata, 0, h.namespace, nil)
	deploymentInformers := store.ByNamespace[cache.SharedIndexInformer]{}
	if h.settings.deployments.Which != deployments.None {
		deploymentInformers[h.namespace] = deploymentFactory.ForResource(deployments.Resource).Informer()
	}
	h.watchdog = watchdog.New(clock.RealClock{})
	neutronCache := neutron.NewCache(neutronClient, time.Now)
	h.page.ObserveCache(neutronCache.Size, neutronCache.KnownCloud)
	c, err = newController(h.settings, k, networks, deploymentInformers, neutronCache, recorder, instrument.Observers{Watchdog: h.watchdog, Recorder: h.page})
	if err != nil {
		h.Fatalf("creating a controller: %v", err)
	}
	if h.prepare != nil {
		h.prepare(c)
	}
	h.controller, h.informer = c, factory.Samplecrd().V1().Networks().Informer()
	return c, func() { deploymentFactory.Start(ctx.Done()); callAll(starts) }
}

// hasLogged reports whether the latest controller has logged a text.
func (h *harness) hasLogged(text string) error {
	if !strings.Contains(h.log.String(), text) {
		return fmt.Errorf("the log does not contain %q", text)
	}
	return nil
}

// isIdle reports whether the controller has no key in its queue and no sync in
// progress.
func (h *harness) isIdle() error {
	if n := h.controller.queue.Len(); n > 0 {
		return fmt.Errorf("%d keys are in the queue", n)
	}
	return h.watchdog.Check(-1)
}

// startController starts a controller. The returned function stops it and waits;
// it is called at the end of the test at the latest.
func (h *harness) startController() (stop func()) {
	h.Helper()
	return h.startWorkers(5)
}

func (h *harness) startWorkers(workers int) (stop func()) {
	h.Helper()
	logger := ktesting.NewLogger(h.T, ktesting.NewConfig(ktesting.BufferLogs(true)))
	if underlier, ok := logger.GetSink().(ktesting.Underlier); ok {
		h.log = underlier.GetBuffer()
	}
	log := h.log
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logger))
	c, start := h.newController(ctx)
	start()
	ended := make(chan error, 1)
	go func() { ended <- warmUpAndRun(ctx, c, workers, time.Minute) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			h.Errorf("Run() = %v", err)
		}
		if h.Failed() {
			h.Logf("the controller's log:\n%s", log.String())
		}
	})
	h.Cleanup(stop)
	return stop
}

// standBy starts a controller that waits with filled caches, as one that is not the
// leader. The returned function makes it lead.
func (h *harness) standBy() (lead func() (stop func())) {
	h.Helper()
	alone, period := h.settings.reconcile.Alone, h.settings.drift.ResyncPeriod
	h.settings.reconcile.Alone, h.settings.drift.ResyncPeriod = false, shortResync
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), ktesting.NewLogger(h.T, ktesting.NewConfig(ktesting.BufferLogs(true)))))
	h.Cleanup(cancel)
	c, start := h.newController(ctx)
	h.settings.reconcile.Alone, h.settings.drift.ResyncPeriod = alone, period
	dog := h.watchdog
	start()
	if !c.WarmUp(ctx) {
		h.Fatal("the standby did not start")
	}
	return func() (stop func()) {
		h.controller, h.watchdog = c, dog
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx, 5, time.Minute) }()
		return func() {
			cancel()
			if err := <-ended; err != nil {
				h.Errorf("Run() = %v", err)
			}
		}
	}
}

// warmUpAndRun runs a controller as the program does without leader election.
func warmUpAndRun(ctx context.Context, c *Controller, workers int, grace time.Duration) error {
	if !c.WarmUp(ctx) {
		return nil
	}
	return c.Run(ctx, workers, grace)
}

// holdCreateNetwork delays the next request to create a network. Neutron applies
// it later even if the client gives up, as a real Neutron does. When the request
// arrives, the returned channel yields another one; closing that one releases the
// request.
func (h *harness) holdCreateNetwork() (reached chan chan struct{}) {
	reached = make(chan chan struct{}, 1)
	var once sync.Once
	hold := func(r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/v2.0/networks" {
			once.Do(func() {
				release := make(chan struct{})
				reached <- release
				h.untilTestEnds(release)
			})
		}
	}
	h.hold.Store(&hold)
	return reached
}

// untilTestEnds waits for a channel, at most until the test ends: a server cannot
// stop while one of its handlers waits.
func (h *harness) untilTestEnds(release <-chan struct{}) {
	select {
	case <-release:
	case <-h.Context().Done():
	}
}

// Actions of a user.

func (h *harness) key() cache.ObjectName { return cache.NewObjectName(h.namespace, "example") }

func (h *harness) create(name, cidr, gateway string) {
	h.Helper()
	h.createWith(name, samplecrdv1.NetworkSpec{CIDR: cidr, Gateway: gateway})
}

func (h *harness) createWith(name string, spec samplecrdv1.NetworkSpec) {
	h.Helper()
	network := &samplecrdv1.Network{Spec: spec}
	network.Name = name
	if _, err := h.client.SamplecrdV1().Networks(h.namespace).Create(h.Context(), network, metav1.CreateOptions{}); err != nil {
		h.Fatalf("creating %s: %v", name, err)
	}
}

// edit changes the Network example.
func (h *harness) edit(cidr, gateway string) {
	h.Helper()
	spec := map[string]any{"cidr": cidr, "gateway": nil}
	if gateway != "" {
		spec["gateway"] = gateway
	}
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		h.Fatal(err)
	}
	h.patch("example", string(patch))
}

func (h *harness) patch(name, patch string) {
	h.Helper()
	_, err := h.client.SamplecrdV1().Networks(h.namespace).Patch(h.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		h.Fatalf("patching %s: %v", name, err)
	}
}

// patchStatus changes a status as another controller does.
func (h *harness) patchStatus(name, patch, manager string) {
	h.Helper()
	_, err := h.client.SamplecrdV1().Networks(h.namespace).Patch(h.Context(), name, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{FieldManager: manager}, "status")
	if err != nil {
		h.Fatalf("patching the status of %s: %v", name, err)
	}
}

func (h *harness) delete(name string) {
	h.Helper()
	if err := h.client.SamplecrdV1().Networks(h.namespace).Delete(h.Context(), name, metav1.DeleteOptions{}); err != nil {
		h.Fatalf("deleting %s: %v", name, err)
	}
}

func (h *harness) get(name string) *samplecrdv1.Network {
	h.Helper()
	network, err := h.client.SamplecrdV1().Networks(h.namespace).Get(h.Context(), name, metav1.GetOptions{})
	if err != nil {
		h.Fatalf("getting %s: %v", name, err)
	}
	return network
}

// Expectations on Kubernetes.

// patience limits how long a test waits for a condition.
const patience = 30 * time.Second

// eventually waits until a check passes, and fails with its last error.
func (h *harness) eventually(check func() error) {
	h.Helper()
	var last error
	err := wait.PollUntilContextTimeout(h.Context(), 5*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		h.Fatalf("timed out waiting: %v", last)
	}
}

// waitReady waits until the Network is ready, with its current spec.
func (h *harness) waitReady(name string) *samplecrdv1.Network {
	h.Helper()
	return h.waitCondition(name, metav1.ConditionTrue, "Provisioned", "")
}

func (h *harness) waitCondition(name string, status metav1.ConditionStatus, reason, message string) *samplecrdv1.Network {
	h.Helper()
	h.eventually(func() error { return h.hasCondition(name, status, reason, message) })
	return h.get(name)
}

func (h *harness) hasCondition(name string, status metav1.ConditionStatus, reason, message string) error {
	h.Helper()
	network, err := h.client.SamplecrdV1().Networks(h.namespace).Get(h.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	ready := meta.FindStatusCondition(network.Status.Conditions, samplecrdv1.ConditionReady)
	if ready == nil || ready.Status != status || ready.Reason != reason || !strings.Contains(ready.Message, message) ||
		ready.ObservedGeneration != network.Generation || network.Status.ObservedGeneration != network.Generation {
		return fmt.Errorf("%s (generation %d) has the condition %+v, want Ready=%s, reason %s, message with %q", name, network.Generation, ready, status, reason, message)
	}
	return nil
}

func (h *harness) hasReady(name string) error {
	h.Helper()
	return h.hasCondition(name, metav1.ConditionTrue, "Provisioned", "")
}

func (h *harness) list() ([]samplecrdv1.Network, error) {
	list, err := h.client.SamplecrdV1().Networks(h.namespace).List(h.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (h *harness) waitGone(name string) {
	h.Helper()
	h.eventually(func() error {
		network, err := h.client.SamplecrdV1().Networks(h.namespace).Get(h.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%s still exists: %+v (%w)", name, network, err)
	})
}

// waitEventNote waits for an event about example with this reason whose note contains
// this text.
func (h *harness) waitEventNote(reason, note string) {
	h.Helper()
	h.waitEvent("example", reason, note)
}

func (h *harness) waitEvent(name, reason, note string) {
	h.Helper()
	h.eventually(func() error {
		list, err := h.kube.EventsV1().Events(h.namespace).List(h.Context(), metav1.ListOptions{FieldSelector: "regarding.kind=Network,regarding.name=" + name})
		if err != nil {
			return err
		}
		var notes []string
		for _, e := range list.Items {
			if e.Reason == reason && strings.Contains(e.Note, note) {
				return nil
			}
			notes = append(notes, e.Reason+": "+e.Note)
		}
		return fmt.Errorf("no event has reason %s and a note with %q: %q", reason, note, notes)
	})
}

// Neutron's state.

type neutronNetwork struct {
	ID, Name, Description string
	MTU                   int
	Tags                  []string
}

type neutronSubnet struct {
	ID, CIDR, Description string
	NetworkID             string `json:"network_id"`
	Gateway               string `json:"gateway_ip"`
}

// inNeutron returns Neutron's state. Its requests are not counted.
func (h *harness) inNeutron() (all struct {
	Networks []neutronNetwork
	Subnets  []neutronSubnet
}) {
	h.Helper()
	for _, path := range []string{"/v2.0/networks", "/v2.0/subnets"} {
		h.do(http.MethodGet, path, "", &all)
	}
	return all
}

func (h *harness) post(path, body string) {
	h.Helper()
	h.do(http.MethodPost, path, body, nil)
}

func (h *harness) postNetwork(name, description string) (id string) {
	h.Helper()
	var response struct{ Network struct{ ID string } }
	h.do(http.MethodPost, "/v2.0/networks", `{"network":{"name":"`+name+`","description":"`+description+`"}}`, &response)
	return response.Network.ID
}

func (h *harness) do(method, path, body string, response any) {
	h.Helper()
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", testUserAgent)
	h.neutron.ServeHTTP(recorder, request)
	if recorder.Code >= 300 {
		h.Fatalf("%s %s: %d %s", method, path, recorder.Code, recorder.Body)
	}
	if response != nil {
		if err := json.Unmarshal(recorder.Body.Bytes(), response); err != nil {
			h.Fatalf("%s %s: %v", method, path, err)
		}
	}
}

func (h *harness) createPort(networkID string) (id string) {
	h.Helper()
	var response struct{ Port struct{ ID string } }
	h.do(http.MethodPost, "/v2.0/ports", `{"port":{"network_id":"`+networkID+`"}}`, &response)
	return response.Port.ID
}

func (h *harness) deletePort(id string) {
	h.Helper()
	h.do(http.MethodDelete, "/v2.0/ports/"+id, "", nil)
}

// wantExample checks that Neutron has exactly one network and one subnet with the owner
// marker of the Network example.
func (h *harness) wantExample(cidr, gateway string) {
	h.Helper()
	if err := h.hasNeutron("example", cidr, gateway); err != nil {
		h.Error(err)
	}
}

func (h *harness) hasNeutron(name, cidr, gateway string) error {
	h.Helper()
	owner, all := h.owner(name), h.inNeutron()
	all.Networks = slices.DeleteFunc(all.Networks, func(n neutronNetwork) bool { return !owner.HasMarker(n.Description) })
	all.Subnets = slices.DeleteFunc(all.Subnets, func(s neutronSubnet) bool { return !owner.HasMarker(s.Description) })
	if len(all.Networks) != 1 || len(all.Subnets) != 1 ||
		all.Networks[0].Name != h.namespace+"/"+name || all.Subnets[0].NetworkID != all.Networks[0].ID ||
		all.Subnets[0].CIDR != cidr || all.Subnets[0].Gateway != gateway {
		return fmt.Errorf("Neutron has %+v, want one network and its subnet %s with gateway %s", all, cidr, gateway)
	}
	return nil
}

func (h *harness) idsInNeutron(name string) (networkID, subnetID string) {
	h.Helper()
	for _, s := range h.inNeutron().Subnets {
		if strings.HasSuffix(s.Description, "/"+h.namespace+"/"+name) {
			return s.NetworkID, s.ID
		}
	}
	h.Fatalf("Neutron has no subnet of %s", name)
	return "", ""
}

func (h *harness) owner(name string) neutron.Owner {
	return neutron.Owner{Cluster: testCluster, Namespace: h.namespace, Name: name}
}

// marker returns the owner marker of a subnet, or of a network of an older version.
func (h *harness) marker(name string) string { return h.owner(name).Marker() }

// requested returns the owner marker of a network that a request has created.
func (h *harness) requested(name, request string) string {
	return h.owner(name).NetworkMarker(request, false)
}

func (h *harness) wantCounts(networks, subnets int) {
	h.Helper()
	if err := h.hasCounts(networks, subnets); err != nil {
		h.Error(err)
	}
}

func (h *harness) hasCounts(networks, subnets int) error {
	h.Helper()
	if all := h.inNeutron(); len(all.Networks) != networks || len(all.Subnets) != subnets {
		return fmt.Errorf("Neutron has %d networks and %d subnets, want %d and %d: %+v", len(all.Networks), len(all.Subnets), networks, subnets, all)
	}
	return nil
}

// Counts of requests.

// testUserAgent marks the requests that a test sends itself.
const testUserAgent = "test"

// listsAll reports whether a request lists all networks, subnets or extensions: it
// fills the cache of Neutron's state.
func listsAll(path, query string) bool {
	filters, _ := url.ParseQuery(query)
	for _, option := range []string{"limit", "marker", "fields"} {
		delete(filters, option)
	}
	return len(filters) == 0 && slices.Contains([]string{"/v2.0/networks", "/v2.0/subnets", "/v2.0/extensions"}, path)
}

// neutronRequests returns the requests that controllers sent to Neutron for single
// Networks. Lists of all networks, subnets or extensions are not among them.
func (h *harness) neutronRequests() []embedded.Request {
	return slices.DeleteFunc(h.neutron.Requests(), func(r embedded.Request) bool {
		listsInterfaces := r.Path == "/v2.0/ports" && strings.HasPrefix(r.Query, "device_owner") && !strings.Contains(r.Query, "&network_id=")
		return r.UserAgent == testUserAgent || r.Method == http.MethodGet && listsAll(r.Path, r.Query) || listsInterfaces
	})
}

// wantRequests checks the number of requests since the last call: requests to
// Neutron for single Networks, and writes of Networks to Kubernetes, without
// events.
func (h *harness) wantRequests(doing string, neutron, kubernetes int) {
	h.Helper()
	if got := h.neutronRequests(); len(got) != neutron {
		h.Errorf("%s took %d requests to Neutron, want %d: %+v", doing, len(got), neutron, got)
	}
	if got := h.writes.networks(); len(got) != kubernetes {
		h.Errorf("%s took %d writes to Kubernetes, want %d: %v", doing, len(got), kubernetes, got)
	}
	h.forgetRequests()
}

// hasRejected reports whether Neutron has rejected such a request.
func (h *harness) hasRejected(method, path string) error {
	for _, r := range h.neutronRequests() {
		if r.Method == method && strings.HasPrefix(r.Path, path) && r.Status >= 400 {
			return nil
		}
	}
	return fmt.Errorf("Neutron rejected no %s %s", method, path)
}

// hasSentEvents reports whether the controller has sent this number of events.
func (h *harness) hasSentEvents(want int) error {
	all := h.writes.get()
	if n := len(all) - len(h.writes.networks()); n != want {
		return fmt.Errorf("%d events were sent, want %d: %v", n, want, all)
	}
	return nil
}

// waitRequests waits until Neutron has received n requests or more, lists included.
func (h *harness) waitRequests(n int) {
	h.Helper()
	h.eventually(func() error {
		if got := len(h.neutron.Requests()); got < n {
			return fmt.Errorf("Neutron has received %d requests, want at least %d", got, n)
		}
		return nil
	})
}

func (h *harness) forgetRequests() {
	h.neutron.ResetRequests()
	h.writes.reset()
}

// writes are the requests to Kubernetes that change an object.
type writes struct {
	mu   sync.Mutex
	list []string
}

func (w *writes) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet {
			w.mu.Lock()
			w.list = append(w.list, r.Method+" "+r.URL.Path)
			w.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

// networks returns the writes of Networks.
func (w *writes) networks() []string {
	return slices.DeleteFunc(w.get(), func(write string) bool { return !strings.Contains(write, "/networks") })
}

func (w *writes) get() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

func (w *writes) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = nil
}

// failRequests makes requests of the next controller to Kubernetes fail.
func (h *harness) failRequests(fails func(*http.Request) bool) {
	h.transport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if fails(r) {
				return nil, errUnreachable
			}
			return next.RoundTrip(r)
		})
	}
}

var errUnreachable = errors.New("no route to host")

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (h *harness) createAdopting(name, cidr, networkID string) {
	h.Helper()
	h.createWith(name, samplecrdv1.NetworkSpec{CIDR: cidr, NetworkID: networkID})
}

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

// waitLists waits until Neutron has received further lists of everything.
func (h *harness) waitLists(further int) {
	h.Helper()
	count := func() int {
		return len(slices.DeleteFunc(h.neutron.Requests(), func(r embedded.Request) bool { return !listsAll(r.Path, r.Query) }))
	}
	before := count()
	h.eventually(func() error {
		if got := count() - before; got < further {
			return fmt.Errorf("Neutron has received %d lists, want %d", got, further)
		}
		return nil
	})
}

// shortResync is a resync period for tests that wait for a resync.
const shortResync = 50 * time.Millisecond

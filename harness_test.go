package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	typedv1 "github.com/samplecrd/network-controller/pkg/client/clientset/versioned/typed/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/glass"
	"github.com/samplecrd/network-controller/pkg/leaderelection"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/observe"
	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/neutronapi"
	"github.com/samplecrd/network-controller/test/running"
)

const testCluster = "test-cluster"

// cluster is the control plane that the tests of this package share. Each test
// has its own namespace in it, and its own Neutron.
var cluster *controlplane.Cluster

func TestMain(m *testing.M) {
	if os.Getenv(beTheProgram) != "" {
		main()
		return
	}
	options := controlplane.Options{Apply: []string{"crd"}, ControllerManager: true}
	os.Exit(controlplane.RunTests(m, options, func(c *controlplane.Cluster) { cluster = c }))
}

// harness is a namespace of a real API server, a Neutron behind real HTTP, and the
// controllers that a test starts for them. Methods named hasX return an error if X
// is not true: want checks it once, and eventually waits for it.
type harness struct {
	*testing.T
	client    clientset.Interface
	kube      kubernetes.Interface
	namespace string

	neutron    *embedded.Server
	neutronURL string
	cloud      string                              // the identity of Neutron
	hold       atomic.Pointer[func(*http.Request)] // called before a request reaches Neutron
	// toKubernetes handles the requests of the next controllers to Kubernetes, if it is set.
	toKubernetes func(r *http.Request, next http.RoundTripper) (*http.Response, error)

	args    []string // flags of the next controllers
	options options  // without the flags

	*parts    // of the latest controller
	synced    *syncs
	log       ktesting.Buffer
	verbosity int // of the next log
	writes    writes
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	t.Parallel()
	h := &harness{
		T:       t,
		client:  clientset.NewForConfigOrDie(cluster.RESTConfig()),
		kube:    kubernetes.NewForConfigOrDie(cluster.RESTConfig()),
		neutron: embedded.New(embedded.Options{}),
		cloud:   "RegionOne/test",
		options: defaults,
	}
	reconciling := &h.options.reconcile
	reconciling.MaxInFlight, reconciling.MaxLateness, reconciling.MaxClockSkew = 50*time.Millisecond, time.Minute, 0
	reconciling.Retry.InUse, reconciling.Retry.OverwrittenStatus = 50*time.Millisecond, 50*time.Millisecond
	h.namespace = h.newNamespace()
	h.flags("-kubeconfig="+cluster.Kubeconfig(), "-leader-elect=false", "-resync-period=1h",
		"-deployment-networks=none", "-namespaces="+h.namespace)
	h.between(func(r *http.Request) {
		if hold := h.hold.Load(); hold != nil {
			(*hold)(r)
		}
	}, nil)
	return h
}

// flags adds flags for the next controllers.
func (h *harness) flags(args ...string) { h.args = append(slices.Clip(h.args), args...) }

// shortResync is the flag of tests that wait for a resync.
const shortResync = "-resync-period=50ms"

// between connects the next controllers to Neutron so that a function is called before
// Neutron gets a request, and another one before the controller gets the response, which it
// may change. Both are optional. Neutron executes a request even if its client gives up.
func (h *harness) between(before func(*http.Request), after func(*http.Request, *httptest.ResponseRecorder)) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := detached(r)
		if before != nil {
			before(r)
		}
		response := h.execute(request)
		if after != nil {
			after(r, response)
		}
		maps.Copy(w.Header(), response.Header())
		w.Header().Del("Content-Length")
		w.WriteHeader(response.Code)
		if response.Code != http.StatusNoContent {
			_, _ = w.Write(response.Body.Bytes())
		}
	}))
	h.Cleanup(server.Close)
	h.neutronURL = server.URL
}

// detached returns a copy of a request that Neutron executes even if its client gives up.
func detached(r *http.Request) *http.Request {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	again := r.Clone(context.Background())
	again.Body = io.NopCloser(bytes.NewReader(body))
	return again
}

// execute returns Neutron's response to a request.
func (h *harness) execute(r *http.Request) *httptest.ResponseRecorder {
	response := httptest.NewRecorder()
	h.neutron.ServeHTTP(response, r)
	return response
}

// beside returns a harness for another namespace, with this one's Neutron.
func (h *harness) beside() *harness {
	h.Helper()
	return &harness{
		T: h.T, client: h.client, kube: h.kube, namespace: h.newNamespace(),
		neutron: h.neutron, neutronURL: h.neutronURL, cloud: h.cloud, options: h.options, args: h.args,
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

// assembled counts the controllers of this process, whose informers have unique names.
var assembled atomic.Int64

// parse returns the options with the flags.
func (h *harness) parse() options {
	h.Helper()
	o, flags := h.options, flag.NewFlagSet(controllerName, flag.ContinueOnError)
	o.kube.AddFlags(flags)
	o.addNeutronFlags(flags)
	o.addFlags(flags)
	o.preview.AddFlags(flags)
	o.deployments.AddFlags(flags)
	o.leaderElection.AddFlags(flags, controllerName)
	if err := flags.Parse(h.args); err != nil {
		h.Fatal(err)
	}
	o.neutronEndpoint, o.neutronIdentity = h.neutronURL, h.cloud
	return o
}

// newController returns a controller for the test's namespace. (It does not call parseOptions,
// which changes klog: all controllers of this process share that.)
func (h *harness) newController(ctx context.Context) *parts {
	h.Helper()
	o := h.parse()
	o.name = fmt.Sprint(controllerName, "-", assembled.Add(1))
	transports := []transport{h.writes.count}
	if handle := h.toKubernetes; handle != nil {
		transports = append(transports, func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) { return handle(r, next) })
		})
	}
	observers := newObservers(new(glass.Page), o)
	h.synced = new(syncs)
	observers.networks = observe.All{observers.networks, h.synced}
	_, k, err := connectKubernetes(ctx, o, observers.networks, transports...)
	if err != nil {
		h.Fatal(err)
	}
	alone, err := leaderelection.Options{}.New(ctx, nil, nil, nil) // the test decides who leads
	if err != nil {
		h.Fatal(err)
	}
	var neutronClient neutron.Client
	if wrap := neutronTransport(alone.Fence(), newNeutronGate(o), observers.networks); o.hasOwnNeutron() {
		neutronClient, err = newNeutronClient(o, wrap)
	} else {
		neutronClient, _, err = connectNeutron(ctx, o, wrap)
	}
	if err != nil {
		h.Fatal(err)
	}
	h.parts, err = assemble(ctx, o.forCluster(testCluster), connections{k, neutronClient, alone.Fence()}, observers)
	if err != nil {
		h.Fatalf("creating a controller: %v", err)
	}
	return h.parts
}

// hasLogged reports whether the latest controller has logged a text.
func (h *harness) hasLogged(text string) error {
	if !strings.Contains(h.log.String(), text) {
		return fmt.Errorf("the log does not contain %q", text)
	}
	return nil
}

// syncs counts syncs that have ended.
type syncs struct {
	observe.Nothing
	ended atomic.Int64
}

func (s *syncs) Begin(ctx context.Context, work observe.Work) (context.Context, func(observe.Result)) {
	return ctx, func(observe.Result) {
		if work.Kind == observe.Sync {
			s.ended.Add(1)
		}
	}
}

// waitSyncs waits until the latest controller has synced a number of times.
func (h *harness) waitSyncs(want int) {
	h.Helper()
	h.eventually(func() error {
		if got := h.synced.ended.Load(); got < int64(want) {
			return fmt.Errorf("%d syncs have ended, want %d", got, want)
		}
		return nil
	})
}

// isIdle reports whether the controller has no key in its queue and no sync in
// progress.
func (h *harness) isIdle() error {
	if n := h.queue.Len(); n > 0 {
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
	leads := make(chan struct{})
	close(leads)
	return h.start(workers, leads)
}

// start starts a controller that reconciles when it leads.
func (h *harness) start(workers int, leads <-chan struct{}) (stop func()) {
	h.Helper()
	logger := ktesting.NewLogger(h.T, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(h.verbosity)))
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logger))
	log := logger.GetSink().(ktesting.Underlier).GetBuffer()
	p, ended := h.newController(ctx), make(chan error, 1)
	h.log = log
	p.informers.start(ctx)
	go func() {
		if p.WarmUp(ctx) {
			<-leads
			ended <- p.Run(ctx, workers, time.Minute)
		}
		close(ended)
	}()
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
	leads, alone := make(chan struct{}), h.args
	h.flags("-leader-elect", shortResync)
	stop := h.start(5, leads)
	h.args = alone
	p, letLead := h.parts, sync.OnceFunc(func() { close(leads) })
	h.Cleanup(letLead) // before stop, which waits for it
	h.eventually(func() error {
		if _, _, listed := p.neutron.Size(); listed.IsZero() {
			return errors.New("the cache of Neutron's state is empty")
		}
		return nil
	})
	return func() (stopped func()) {
		h.parts = p
		letLead()
		return stop
	}
}

// pause is a request that waits: reached is closed when it arrives, and a call of
// release lets it continue.
type pause struct {
	matches func(*http.Request) bool
	reached chan struct{}
	going   chan struct{}
	once    sync.Once
}

// pauseAt returns a pause of the first request that matches.
func pauseAt(matches func(*http.Request) bool) *pause {
	return &pause{matches: matches, reached: make(chan struct{}), going: make(chan struct{})}
}

// wait returns a function that is called for each request.
func (p *pause) wait(h *harness) func(*http.Request) {
	return func(r *http.Request) {
		if p.matches(r) {
			p.once.Do(func() { close(p.reached); h.untilTestEnds(p.going) })
		}
	}
}

func (p *pause) release() { close(p.going) }

func creates(kind string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Path == "/v2.0/"+kind }
}

// holdFirst delays the first request to Neutron that matches.
func (h *harness) holdFirst(matches func(*http.Request) bool) *pause {
	held := pauseAt(matches)
	wait := held.wait(h)
	h.hold.Store(&wait)
	return held
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

// objects returns the client for the Networks of the test.
func (h *harness) objects() typedv1.NetworkInterface {
	return h.client.SamplecrdV1().Networks(h.namespace)
}

func (h *harness) createWith(name string, spec samplecrdv1.NetworkSpec) {
	h.Helper()
	network := &samplecrdv1.Network{Spec: spec}
	network.Name = name
	if _, err := h.objects().Create(h.Context(), network, metav1.CreateOptions{}); err != nil {
		h.Fatalf("creating %s: %v", name, err)
	}
}

// edit changes the spec of the Network example by a merge patch.
func (h *harness) edit(spec string) {
	h.Helper()
	h.patch("example", `{"spec":`+spec+`}`)
}

func (h *harness) patch(name, patch string, subresources ...string) {
	h.Helper()
	merge, options := types.MergePatchType, metav1.PatchOptions{}
	if _, err := h.objects().Patch(h.Context(), name, merge, []byte(patch), options, subresources...); err != nil {
		h.Fatalf("patching %s: %v", name, err)
	}
}

func (h *harness) delete(name string) {
	h.Helper()
	if err := h.objects().Delete(h.Context(), name, metav1.DeleteOptions{}); err != nil {
		h.Fatalf("deleting %s: %v", name, err)
	}
}

func (h *harness) get(name string) *samplecrdv1.Network {
	h.Helper()
	network, err := h.objects().Get(h.Context(), name, metav1.GetOptions{})
	if err != nil {
		h.Fatalf("getting %s: %v", name, err)
	}
	return network
}

// Expectations on Kubernetes.

// eventually waits until a check passes, and fails with its last error.
func (h *harness) eventually(check func() error) {
	h.Helper()
	running.Eventually(h.T, check)
}

// want checks a condition once.
func (h *harness) want(err error) {
	h.Helper()
	if err != nil {
		h.Error(err)
	}
}

// waitReady waits until the Network is ready, with its current spec.
func (h *harness) waitReady(name string) *samplecrdv1.Network {
	h.Helper()
	return h.waitCondition(name, provisioned, "")
}

func (h *harness) waitCondition(name, reason, message string) *samplecrdv1.Network {
	h.Helper()
	h.eventually(func() error { return h.hasCondition(name, reason, message) })
	return h.get(name)
}

// provisioned is the reason of the Networks that are ready. Those with others are not.
const provisioned = "Provisioned"

func (h *harness) hasCondition(name, reason, message string) error {
	h.Helper()
	network, err := h.objects().Get(h.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return checkReady(network, reason, message)
}

// checkReady reports whether the condition Ready is about the current spec, with this reason.
func checkReady(network *samplecrdv1.Network, reason, message string) error {
	status := metav1.ConditionFalse
	if reason == provisioned {
		status = metav1.ConditionTrue
	}
	ready := meta.FindStatusCondition(network.Status.Conditions, samplecrdv1.ConditionReady)
	if ready == nil || ready.Status != status || ready.Reason != reason || !strings.Contains(ready.Message, message) ||
		ready.ObservedGeneration != network.Generation || network.Status.ObservedGeneration != network.Generation {
		return fmt.Errorf("%s (generation %d) has the condition %+v, want Ready=%s, reason %s, message with %q",
			network.Name, network.Generation, ready, status, reason, message)
	}
	return nil
}

func (h *harness) list() ([]samplecrdv1.Network, error) {
	list, err := h.objects().List(h.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (h *harness) waitGone(name string) {
	h.Helper()
	h.eventually(func() error {
		network, err := h.objects().Get(h.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%s still exists: %+v (%w)", name, network, err)
	})
}

// waitEvent waits for an event about an object with this reason whose note contains this text.
func (h *harness) waitEvent(kind, name, reason, note string) {
	h.Helper()
	h.eventually(func() error {
		selected := metav1.ListOptions{FieldSelector: "regarding.kind=" + kind + ",regarding.name=" + name}
		list, err := h.kube.EventsV1().Events(h.namespace).List(h.Context(), selected)
		if err != nil {
			return err
		}
		var notes []string
		for _, e := range list.Items {
			text := e.Type + " " + e.Reason + ": " + e.Note
			if strings.Contains(text, " "+reason+": ") && strings.Contains(text, note) {
				return nil
			}
			notes = append(notes, text)
		}
		return fmt.Errorf("no event has reason %s and a note with %q: %q", reason, note, notes)
	})
}

// Neutron's state.

// inNeutron returns Neutron's state. Its requests are not counted.
func (h *harness) inNeutron() neutronapi.State {
	h.Helper()
	all, err := neutronapi.API{Neutron: h.neutron}.State()
	if err != nil {
		h.Fatal(err)
	}
	return all
}

// do sends a request to Neutron, as another client. The body is JSON, or empty.
func (h *harness) do(method, path, body string, response any) {
	h.Helper()
	var value any
	if body != "" {
		value = json.RawMessage(body)
	}
	if err := (neutronapi.API{Neutron: h.neutron}).Do(method, path, value, response); err != nil {
		h.Fatal(err)
	}
}

func (h *harness) post(path, body string) (id string) {
	h.Helper()
	var created map[string]struct{ ID string }
	h.do(http.MethodPost, path, body, &created)
	return created[strings.TrimSuffix(path, "s")].ID
}

func (h *harness) postNetwork(name, description string) (id string) {
	h.Helper()
	return h.post("networks", `{"network":{"name":"`+name+`","description":"`+description+`"}}`)
}

// is reports whether the state is as described.
func (h *harness) is(want string) error {
	h.Helper()
	if got := h.state(); got != want {
		return fmt.Errorf("the state is:\n%s\nwant:\n%s", got, want)
	}
	return nil
}

// state describes the Networks of the test, a line each, and what is different in Neutron. Then
// it describes the networks in Neutron that no status names, by their owner.
func (h *harness) state() string {
	h.Helper()
	list, err := h.list()
	if err != nil {
		return err.Error()
	}
	all, lines := h.inNeutron(), []string{}
	for _, network := range list {
		s, line, whose, is := network.Status, network.Name, "nothing", ""
		isUsed := func(n neutronapi.Network) bool { return n.ID == s.NetworkID }
		if i := slices.IndexFunc(all.Networks, isUsed); i >= 0 {
			whose, is = h.describe(all, all.Networks[i])
			all.Networks = slices.Delete(all.Networks, i, i+1)
		}
		if whose != network.Name {
			line += " on " + whose
		}
		if err := checkReady(&network, provisioned, ""); err != nil {
			line += " (" + err.Error() + ")"
		}
		said := inWords(s.SubnetID+" "+s.CIDR+" "+s.Gateway, int(s.MTU), s.Tags)
		if s.Router != nil {
			said += " router " + s.Router.ID + " " + s.Router.Name
		}
		if line += ": " + said; is != said {
			line += ", but Neutron has " + is
		}
		if s.SubnetPool != nil {
			line += " from " + s.SubnetPool.Name
		}
		lines = append(lines, line)
	}
	for _, network := range all.Networks {
		whose, is := h.describe(all, network)
		lines = append(lines, whose+": "+is)
	}
	return unpredictable.ReplaceAllString(strings.Join(lines, "\n"), "")
}

// unpredictable are IDs, and the part of a range that the subnet pool of these tests chooses.
var unpredictable = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12} ?|\b77\.\d+\.`)

// describe returns whose network this is in Neutron, and what it is like.
func (h *harness) describe(all neutronapi.State, network neutronapi.Network) (whose, is string) {
	whose = network.Description
	if owner, ok := neutron.ParseMarker(whose); ok && h.owner(owner.Name) == owner && network.Name == owner.String() {
		whose = owner.Name
	} else if owner, ok := neutron.ParseRetainedMarker(whose); ok && h.owner(owner.Name) == owner {
		whose = "retained " + owner.Name
	}
	var subnets []string
	for _, s := range all.Subnets {
		if s.NetworkID == network.ID {
			subnets = append(subnets, s.ID+" "+s.CIDR+" "+cmp.Or(s.Gateway, samplecrdv1.GatewayNone))
		}
	}
	words := []string{inWords(strings.Join(subnets, " "), network.MTU, network.Tags)}
	for _, port := range all.Ports {
		if port.NetworkID == network.ID && port.IsOfRouter() {
			var found struct{ Router struct{ Name string } }
			h.do(http.MethodGet, "routers/"+port.Device, "", &found)
			words = append(words, "router", port.Device, found.Router.Name)
		}
	}
	return whose, strings.Join(words, " ")
}

// inWords describes the subnets of a network, and what differs from Neutron's defaults.
func inWords(subnets string, mtu int, tags []string) string {
	if mtu != 1450 {
		subnets += fmt.Sprint(" mtu ", mtu)
	}
	if len(tags) > 0 {
		subnets += " tags " + strings.Join(slices.Sorted(slices.Values(tags)), ",")
	}
	return subnets
}

func (h *harness) owner(name string) neutron.Owner {
	return neutron.Owner{Cluster: testCluster, Namespace: h.namespace, Name: name}
}

// marker returns the owner marker of a subnet, or of a network of an older version.
func (h *harness) marker(name string) string { return h.owner(name).Marker() }

func (h *harness) hasCounts(networks, subnets int) error {
	h.Helper()
	if all := h.inNeutron(); len(all.Networks) != networks || len(all.Subnets) != subnets {
		return fmt.Errorf("Neutron has %d networks and %d subnets, want %d and %d: %+v",
			len(all.Networks), len(all.Subnets), networks, subnets, all)
	}
	return nil
}

// Counts of requests.

// listsAll reports whether a request lists all networks, subnets, router interfaces or
// extensions: it selects none of them.
func listsAll(path, query string) bool {
	filters, _ := url.ParseQuery(query) // the client's queries are valid
	for _, option := range []string{"limit", "marker", "fields"} {
		delete(filters, option)
	}
	if path == "/v2.0/ports" {
		return len(filters) == 1 && filters.Has("device_owner")
	}
	return len(filters) == 0 && slices.Contains([]string{"/v2.0/networks", "/v2.0/subnets", "/v2.0/extensions"}, path)
}

// neutronRequests returns the requests that controllers sent to Neutron for single
// Networks, with these methods or, without one, all. Lists of everything are not among them.
func (h *harness) neutronRequests(methods ...string) []embedded.Request {
	return slices.DeleteFunc(h.neutron.Requests(), func(r embedded.Request) bool {
		return r.UserAgent == neutronapi.UserAgent || r.Method == http.MethodGet && listsAll(r.Path, r.Query) ||
			len(methods) > 0 && !slices.Contains(methods, r.Method)
	})
}

var writeMethods = []string{http.MethodPost, http.MethodPut, http.MethodDelete}

// wantRequests checks the number of requests since the last call: requests to
// Neutron for single Networks, and writes of Networks to Kubernetes, without
// events.
func (h *harness) wantRequests(doing string, neutron, kubernetes int) {
	h.Helper()
	if got := h.neutronRequests(); len(got) != neutron {
		h.Errorf("%s took %d requests to Neutron, want %d: %+v", doing, len(got), neutron, got)
	}
	if got, _ := h.writes.get(); len(got) != kubernetes {
		h.Errorf("%s took %d writes to Kubernetes, want %d: %v", doing, len(got), kubernetes, got)
	}
	h.forgetRequests()
}

// hasSentEvents reports whether the controller has sent this number of events.
func (h *harness) hasSentEvents(want int) error {
	if _, events := h.writes.get(); len(events) != want {
		return fmt.Errorf("%d events were sent, want %d: %v", len(events), want, events)
	}
	return nil
}

func (h *harness) forgetRequests() {
	h.neutron.ResetRequests()
	h.writes.mu.Lock()
	defer h.writes.mu.Unlock()
	h.writes.ofNetworks, h.writes.others = nil, nil
}

// writes are the requests to Kubernetes that change an object: a Network, or an Event.
type writes struct {
	mu                 sync.Mutex
	ofNetworks, others []string
}

func (w *writes) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		w.mu.Lock()
		switch request := r.Method + " " + r.URL.Path; {
		case r.Method == http.MethodGet:
		case strings.Contains(request, "/networks"):
			w.ofNetworks = append(w.ofNetworks, request)
		default:
			w.others = append(w.others, request)
		}
		w.mu.Unlock()
		return next.RoundTrip(r)
	})
}

func (w *writes) get() (ofNetworks, others []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.ofNetworks), slices.Clone(w.others)
}

// failRequests makes requests of the next controller to Kubernetes fail.
func (h *harness) failRequests(fails func(*http.Request) bool) {
	h.toKubernetes = func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if fails(r) {
			return nil, errUnreachable
		}
		return next.RoundTrip(r)
	}
}

var errUnreachable = errors.New("no route to host")

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// postRouter creates a router.
func (h *harness) postRouter(name string) { h.post("routers", `{"router":{"name":"`+name+`"}}`) }

// waitLists waits until Neutron has received further lists of all networks or subnets.
func (h *harness) waitLists(further int) {
	h.Helper()
	count := func() int {
		return len(slices.DeleteFunc(h.neutron.Requests(), func(r embedded.Request) bool {
			return r.Path != "/v2.0/networks" && r.Path != "/v2.0/subnets" || !listsAll(r.Path, r.Query)
		}))
	}
	before := count()
	h.eventually(func() error {
		if got := count() - before; got < further {
			return fmt.Errorf("Neutron has received %d lists, want %d", got, further)
		}
		return nil
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// replica is one of several controllers of a namespace, each in its own process.
type replica struct{ *program }

// startReplica starts a replica whose Lease expires sooner than by default, and
// waits until it is ready.
func (h *harness) startReplica(args ...string) *replica {
	h.Helper()
	p := startProgram(h.T, append([]string{
		"-kubeconfig=" + cluster.Kubeconfig(), "-neutron-endpoint=" + h.neutronURL, "-cluster-name=" + testCluster, "-namespaces=" + h.namespace,
		"-leader-elect", "-leader-elect-resource-namespace=" + h.namespace,
		"-leader-elect-lease-duration=4s", "-leader-elect-renew-deadline=2s", "-leader-elect-retry-period=500ms",
		"-health-probe-bind-address=127.0.0.1:0",
	}, args...)...)
	p.waitFor(h.T, `"Serving health"`)
	h.eventually(func() error { return responds(p.readyz(), http.StatusOK, "ok") })
	return &replica{p}
}

// readyz returns the URL of /readyz from the log.
func (p *program) readyz() string {
	return regexp.MustCompile(`"Serving health" url="([^"]+)"`).FindStringSubmatch(p.log.String())[1]
}

// responds reports whether the response of a URL has this status, and contains
// this text.
func responds(url string, status int, text string) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body := make([]byte, 4096)
	n, _ := response.Body.Read(body)
	if response.StatusCode != status || !strings.Contains(string(body[:n]), text) {
		return fmt.Errorf("%s returns %s %q, want %d %q", url, response.Status, body[:n], status, text)
	}
	return nil
}

func (r *replica) isWorking() bool { return strings.Contains(r.log.String(), `"Starting workers"`) }

// holder returns the holder of the Lease: the leader.
func (h *harness) holder() string {
	lease, err := h.kube.CoordinationV1().Leases(h.namespace).Get(h.Context(), controllerName, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// TestHandOver: of two replicas, one reconciles. When it ends, cleanly or not, the
// other one takes over, and changes nothing for healthy Networks.
func TestHandOver(t *testing.T) {
	for name, test := range map[string]struct {
		signal   syscall.Signal
		atMost   time.Duration // 30 seconds more than required, for slow machines
		released bool
	}{
		"a clean stop releases the Lease": {syscall.SIGTERM, 30 * time.Second, true},
		"after a kill, the Lease expires": {syscall.SIGKILL, 36 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			first := h.startReplica()
			first.waitFor(t, `"Starting workers"`)
			second := h.startReplica()
			h.create("example", "10.0.0.0/24", "")
			before := h.waitReady("example")
			if second.isWorking() {
				t.Fatal("both replicas are leading")
			}
			wasHolder := h.holder()
			h.forgetRequests()

			stopped := time.Now()
			first.signal(t, test.signal)
			_ = first.Wait()
			if released := h.holder() != wasHolder; released != test.released {
				t.Errorf("after the process ended, the Lease was released: %v, want %v", released, test.released)
			}
			second.waitFor(t, `"Starting workers"`)
			took := time.Since(stopped)
			t.Logf("the handover took %v", took)
			if took > test.atMost {
				t.Errorf("the handover took %v, want at most %v", took, test.atMost)
			}

			h.create("another", "10.0.1.0/24", "")
			h.waitReady("another")
			if after := h.get("example"); after.ResourceVersion != before.ResourceVersion {
				t.Errorf("the status of the healthy Network was written: %v → %v", before.Status, after.Status)
			}
			var writes []string
			for _, request := range h.neutronRequests() {
				if request.Method != http.MethodGet {
					writes = append(writes, request.Method+" "+request.Path)
				}
			}
			if diff := cmp.Diff([]string{"POST /v2.0/networks", "POST /v2.0/subnets"}, writes); diff != "" {
				t.Errorf("writes to Neutron differ (-for the new Network +got):\n%s", diff)
			}
			h.wantCounts(2, 2)
		})
	}
}

// TestLostLease: a leader is paused between its decision to create a network and the
// request to Neutron, and another replica takes over. When the first one continues, it
// sends nothing to Neutron any more, although it has not read the Lease yet. Then it
// exits.
func TestLostLease(t *testing.T) {
	h := newHarness(t)
	kubernetes := h.proxyKubernetes()
	first := h.startReplica("-master="+kubernetes.URL, "-v=5", "-leader-elect-renew-deadline=3s", "-leader-elect-retry-period=1s")
	first.waitFor(t, `"Starting workers"`)
	second := h.startReplica()

	// The first one has set the finalizer and waits for the response. Its Lease was just
	// renewed, so after the pause, client-go begins a new attempt to renew it.
	decided := kubernetes.hold(isPatch)
	h.create("example", "10.0.0.0/24", "")
	respond := <-decided
	renewals := strings.Count(first.log.String(), renewed)
	h.eventually(func() error {
		if strings.Count(first.log.String(), renewed) == renewals {
			return errors.New("the Lease was not renewed")
		}
		return nil
	})
	first.signal(t, syscall.SIGSTOP)
	close(respond)
	second.waitFor(t, `"Starting workers"`)
	h.waitReady("example")

	reads := kubernetes.hold(isLeaseRequest)
	h.forgetRequests()
	first.signal(t, syscall.SIGCONT)
	first.waitFor(t, `"Added finalizer"(.|\n)*"Sync ended early`)
	close(<-reads)
	first.wantExit(t, 1)
	if !strings.Contains(first.log.String(), "Lost the lease") {
		t.Error("the lost Lease was not logged")
	}
	for _, request := range h.neutronRequests() {
		if request.Method != http.MethodGet {
			t.Errorf("Neutron received %s %s", request.Method, request.Path)
		}
	}
	h.wantCounts(1, 1)
}

// renewed is what client-go logs with -v=5.
const renewed = "Successfully renewed lease"

func isPatch(r *http.Request) bool { return r.Method == http.MethodPatch }

func isLeaseRequest(r *http.Request) bool { return strings.Contains(r.URL.Path, "/leases/") }

// kubernetesProxy is a server in front of the API server.
type kubernetesProxy struct {
	*httptest.Server
	h    *harness
	held atomic.Pointer[func(*http.Request)] // called before a response
}

// proxyKubernetes returns a server that passes requests on to the API server.
func (h *harness) proxyKubernetes() *kubernetesProxy {
	h.Helper()
	config := cluster.RESTConfig()
	transport, err := rest.TransportFor(config)
	if err != nil {
		h.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		h.Fatal(err)
	}
	p := &kubernetesProxy{h: h}
	proxy := &httputil.ReverseProxy{
		Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1,
		ModifyResponse: func(response *http.Response) error {
			if held := p.held.Load(); held != nil {
				(*held)(response.Request)
			}
			return nil
		},
	}
	p.Server = httptest.NewServer(proxy)
	h.Cleanup(func() { p.CloseClientConnections(); p.Close() })
	return p
}

// hold delays the response to the next request that matches. When it is there, the
// returned channel yields another one; closing that one lets the response through.
func (p *kubernetesProxy) hold(matches func(*http.Request) bool) (arrived chan chan struct{}) {
	arrived = make(chan chan struct{}, 1)
	var once sync.Once
	held := func(r *http.Request) {
		if matches(r) {
			once.Do(func() {
				release := make(chan struct{})
				arrived <- release
				p.h.untilTestEnds(release)
			})
		}
	}
	p.held.Store(&held)
	return arrived
}

// TestStandbyStops: a replica that waits for the Lease stops cleanly after
// SIGTERM.
func TestStandbyStops(t *testing.T) {
	h := newHarness(t)
	first := h.startReplica()
	first.waitFor(t, `"Starting workers"`)
	second := h.startReplica()
	wasHolder := h.holder()
	second.signal(t, syscall.SIGTERM)
	second.wantExit(t, 0)
	if h.holder() != wasHolder || second.isWorking() {
		t.Error("the standby has started leading")
	}
}

// TestShutdownTimeoutKeepsLease: a replica that canceled a request at shutdown
// does not release the Lease, which expires.
func TestShutdownTimeoutKeepsLease(t *testing.T) {
	h := newHarness(t)
	reached := h.holdCreateNetwork()
	first := h.startReplica("-shutdown-timeout=100ms")
	first.waitFor(t, `"Starting workers"`)
	h.create("example", "10.0.0.0/24", "")
	release := <-reached
	defer close(release)
	holder := h.holder()
	first.signal(t, syscall.SIGTERM)
	first.wantExit(t, 1)
	if h.holder() != holder {
		t.Errorf("the Lease is held by %q, want %q", h.holder(), holder)
	}
}

// TestStandbyRefreshesCache: a replica that starts leading does not rely on what
// its cache of Neutron's state contained before the former leader's changes.
func TestStandbyRefreshesCache(t *testing.T) {
	h := newHarness(t)
	stop := h.startController()
	h.create("example", "10.0.0.0/24", "10.0.0.1")
	h.waitReady("example")
	ctx, cancel := context.WithCancel(t.Context())
	h.settings.reconcile.Alone = false
	standby, start := h.newController(ctx)
	start()
	if !standby.WarmUp(ctx) {
		t.Fatal("the informers have not synced")
	}
	h.edit("10.0.0.0/24", "10.0.0.2")
	h.waitReady("example")
	stop()
	h.edit("10.0.0.0/24", "10.0.0.1")

	ended := make(chan error, 1)
	go func() { ended <- standby.Run(ctx, 1, time.Minute) }()
	h.waitReady("example")
	h.wantNeutron("example", "10.0.0.0/24", "10.0.0.1")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

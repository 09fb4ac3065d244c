package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/samplecrd/network-controller/pkg/leaderelection"
	"github.com/samplecrd/network-controller/pkg/reconcile"
	"github.com/samplecrd/network-controller/test/controlplane"
)

// This file starts the program in processes of its own, with servers around it. The helpers
// of tests that run the controller in the process of the test are in harness_test.go.

// beTheProgram is the environment variable that turns the test binary into the
// controller.
const beTheProgram = "BE_THE_PROGRAM"

// limitsScale is the environment variable by whose number such a program divides its
// limits.
const limitsScale = "LIMITS_SCALE"

// shortenLimits divides all durations that no flag changes.
func shortenLimits(scale string) {
	divisor, err := strconv.Atoi(scale)
	if err != nil || divisor < 1 {
		panic(limitsScale + " is no positive number: " + scale)
	}
	for _, limit := range []*time.Duration{
		&limits.maxInFlight, &limits.startTimeout, &limits.maxClockSkew,
		&limits.retry.InUse, &limits.retry.Rejected, &limits.retry.OverwrittenStatus,
		&limits.maxLateness, &reconcile.MaxBackoff,
	} {
		*limit /= time.Duration(divisor)
	}
}

// wallClock is a clock that is set by signals.
type wallClock struct {
	clock.RealClock
	ahead atomic.Int64
}

// Now implements clock.PassiveClock.
func (c *wallClock) Now() time.Time {
	return c.RealClock.Now().Round(0).Add(time.Duration(c.ahead.Load()))
}

// setClockOnSignals sets the wall clock of this process an hour ahead with each SIGUSR1,
// and back with each SIGUSR2.
func setClockOnSignals() {
	wall, signals := &wallClock{}, make(chan os.Signal, 1)
	leaderelection.WallClock = wall
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for received := range signals {
			if received == syscall.SIGUSR1 {
				wall.ahead.Add(int64(time.Hour))
			} else {
				wall.ahead.Add(-int64(time.Hour))
			}
		}
	}()
}

// program is the controller in its own process. It ends when the test ends, or
// when the process of the test does.
type program struct {
	*exec.Cmd
	log output
}

// newProgram returns a program without leader election, unless the arguments turn
// it on: many tests share a cluster.
func newProgram(t *testing.T, args ...string) *program {
	t.Helper()
	first := 0
	if len(args) > 0 && args[0] == planCommand {
		first = 1
	}
	return newDefaultProgram(t, slices.Insert(slices.Clone(args), first, "-leader-elect=false")...)
}

func newDefaultProgram(t *testing.T, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{Cmd: exec.CommandContext(t.Context(), self, args...)}
	p.Env = []string{beTheProgram + "=1", "HOME=" + t.TempDir()}
	p.Stdout, p.Stderr = &p.log, &p.log
	if _, err := p.StdinPipe(); err != nil { // see exitAfterParent
		t.Fatal(err)
	}
	return p
}

// startProgram starts a program. The end of the test kills it.
func startProgram(t *testing.T, args ...string) *program {
	t.Helper()
	p := newProgram(t, args...)
	p.start(t)
	return p
}

func (p *program) start(t *testing.T) {
	t.Helper()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Wait() // fails if the test has waited
		if t.Failed() {
			t.Logf("the log of process %d:\n%s", p.Process.Pid, &p.log)
		}
	})
}

func (p *program) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// wantExit waits until the program ends, and checks its exit code.
func (p *program) wantExit(t *testing.T, code int) {
	t.Helper()
	if err := p.Wait(); p.ProcessState.ExitCode() != code {
		t.Errorf("ended with %v, want exit code %d", err, code)
	}
}

// exitAfterParent ends this process when its standard input ends: when the test
// process has ended, even after a panic or kill -9.
func exitAfterParent() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
}

// ownCluster returns a control plane for one test: without -namespaces, a
// controller reconciles the Networks of all namespaces.
func ownCluster(t *testing.T) *controlplane.Cluster {
	t.Helper()
	return controlplane.StartForTest(t, controlplane.Options{Apply: []string{"crd"}})
}

func kubectl(t *testing.T, c *controlplane.Cluster, args ...string) {
	t.Helper()
	if output, err := c.Kubectl(t.Context(), args...); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// waitFor waits until the log matches a regular expression.
func (p *program) waitFor(t *testing.T, pattern string) {
	t.Helper()
	want := regexp.MustCompile(pattern)
	h := &harness{T: t}
	h.eventually(func() error {
		if !want.MatchString(p.log.String()) {
			return fmt.Errorf("the log does not match %s:\n%s", pattern, &p.log)
		}
		return nil
	})
}

// output stores what a program writes.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// leaseOf returns the Lease that all controllers of a cluster use by default, or nil.
func leaseOf(t *testing.T, c *controlplane.Cluster, name string) *coordinationv1.Lease {
	t.Helper()
	lease, err := kubernetes.NewForConfigOrDie(c.RESTConfig()).CoordinationV1().Leases(metav1.NamespaceSystem).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return lease
}

// served returns the URL of a server from the log.
func (p *program) served(t *testing.T, name string) string {
	t.Helper()
	_, rest, _ := strings.Cut(p.log.String(), `"Serving `+name+`" url="`)
	address, _, _ := strings.Cut(rest, `"`)
	if _, err := url.Parse(address); err != nil || address == "" {
		t.Fatalf("no URL of the %s in\n%s", name, &p.log)
	}
	return address
}

// serves returns an error if what a URL serves does not contain a text.
func serves(url, text string) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && !strings.Contains(string(body), text) {
		err = fmt.Errorf("%s does not contain %q", url, text)
	}
	return err
}

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
	h.eventually(func() error { return responds(p.readyz(), "ok") })
	return &replica{p}
}

// readyz returns the URL of /readyz from the log.
func (p *program) readyz() string {
	return regexp.MustCompile(`"Serving health" url="([^"]+)"`).FindStringSubmatch(p.log.String())[1]
}

// responds reports whether the response of a URL is OK, and contains this text.
func responds(url, text string) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body := make([]byte, 4096)
	n, _ := response.Body.Read(body)
	if response.StatusCode != http.StatusOK || !strings.Contains(string(body[:n]), text) {
		return fmt.Errorf("%s returns %s %q, want %d %q", url, response.Status, body[:n], http.StatusOK, text)
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

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/samplecrd/network-controller/test/running"
)

// This file starts the program in processes of its own, with servers around it. The helpers
// of tests that run the controller in the process of the test are in harness_test.go.

// beTheProgram is the environment variable that turns the test binary into the
// controller.
const beTheProgram = "BE_THE_PROGRAM"

// startProgram starts the controller in its own process.
func startProgram(t *testing.T, env []string, args ...string) *running.Program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return running.Start(t, append(env, beTheProgram+"=1"), append([]string{self}, args...)...)
}

// startProgram starts a program for the Networks of the test's namespace. It has no leader
// election, unless the arguments turn it on: many tests share a cluster.
func (h *harness) startProgram(args ...string) *running.Program {
	h.Helper()
	return startProgram(h.T, nil, append([]string{
		"-kubeconfig=" + cluster.Kubeconfig(), "-neutron-endpoint=" + h.neutronURL, "-cluster-name=" + testCluster,
		"-namespaces=" + h.namespace, "-leader-elect=false",
	}, args...)...)
}

// proxyKubernetes returns the URL of a server that passes requests on to the API server, and a
// function that delays the response to the next request that matches.
func (h *harness) proxyKubernetes() (url string, hold func(matches func(*http.Request) bool) *pause) {
	h.Helper()
	proxy, err := cluster.Proxy()
	if err != nil {
		h.Fatal(err)
	}
	var held atomic.Pointer[func(*http.Request)]
	proxy.ModifyResponse = func(response *http.Response) error {
		if wait := held.Load(); wait != nil {
			(*wait)(response.Request)
		}
		return nil
	}
	server := httptest.NewServer(proxy)
	h.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL, func(matches func(*http.Request) bool) *pause {
		p := pauseAt(matches)
		wait := p.wait(h)
		held.Store(&wait)
		return p
	}
}

// TestLostLease: of two replicas, each in its own process, the leader is paused between its
// decision to create a network and the request to Neutron, and the other one takes over. When
// the first one continues, it sends nothing to Neutron any more, although it has not read the
// Lease yet. Then it exits.
func TestLostLease(t *testing.T) {
	h := newHarness(t)
	url, hold := h.proxyKubernetes()
	replica := []string{
		"-leader-elect", "-leader-elect-resource-namespace=" + h.namespace, "-leader-elect-lease-duration=4s",
		"-leader-elect-renew-deadline=3s", "-leader-elect-retry-period=1s", "-v=5",
	}
	first := h.startProgram(append(replica, "-master="+url)...)
	first.WaitFor(`"Starting workers"`)
	second := h.startProgram(replica...)

	// The first one has set the finalizer and waits for the response. Its Lease was just
	// renewed, so after the pause, client-go begins a new attempt to renew it.
	decided := hold(func(r *http.Request) bool { return r.Method == http.MethodPatch })
	h.create("example", "10.0.0.0/24", "")
	<-decided.reached
	const renewed = "Successfully renewed lease" // client-go logs it with -v=5
	renewals := strings.Count(first.Log(), renewed)
	h.eventually(func() error {
		if strings.Count(first.Log(), renewed) == renewals {
			return errors.New("the Lease was not renewed")
		}
		return nil
	})
	first.Signal(syscall.SIGSTOP)
	decided.release()
	second.WaitFor(`"Starting workers"`)
	h.waitReady("example")

	reads := hold(func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/leases/") })
	h.forgetRequests()
	first.Signal(syscall.SIGCONT)
	first.WaitFor(`"Added finalizer"(.|\n)*"Sync ended early`)
	<-reads.reached
	reads.release()
	first.WantExit(1)
	first.WaitFor("Lost the lease")
	if writes := h.neutronRequests(writeMethods...); len(writes) > 0 {
		t.Errorf("Neutron received %+v", writes)
	}
	h.want(h.hasCounts(1, 1))
}

// The next tests start the program with flags: mistakes, where it finds Kubernetes
// and Neutron, what it serves and sends, and the command plan.

// TestBadInput: the last line of the output is one sentence that names the flag,
// and the exit code is not 0.
func TestBadInput(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken")
	empty := filepath.Join(t.TempDir(), "empty")
	if err := errors.Join(os.WriteFile(broken, []byte("clusters: nonsense"), 0o600), os.WriteFile(empty, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	example, err := filepath.Abs("example")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := "-kubeconfig=" + cluster.Kubeconfig()
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"unknown flag":                {[]string{"-nonsense"}, 2, "-nonsense"},
		"argument that is a secret":   {[]string{"http://a:s3cret@host/?api_key=s3cret"}, 2, `unexpected argument "http://…@host/?…"`},
		"secret in the server":        {[]string{"-master=https://127.0.0.1:1?token=s3cret"}, 1, "reading -master: "},
		"secret in the endpoint":      {[]string{kubeconfig, "-neutron-endpoint=http://127.0.0.1:1/?api_key=s3cret"}, 1, "-neutron-endpoint"},
		"cloud and embedded":          {[]string{"-cloud=mine", "-embedded-neutron"}, 2, "exclude each other"},
		"no Neutron at all":           {[]string{"-embedded-neutron=false"}, 2, "no Neutron configured: set -cloud or OS_CLOUD"},
		"unknown command":             {[]string{"plna"}, 2, "the commands are plan and follow"},
		"plan without a Neutron":      {[]string{"plan", kubeconfig}, 1, "set -cloud, OS_CLOUD or -neutron-endpoint"},
		"plan in another format":      {[]string{"plan", kubeconfig, "-neutron-endpoint=http://127.0.0.1:1", "-o=xml"}, 1, `-o is "xml": it must be text or json`},
		"plan of a missing file":      {[]string{"plan", kubeconfig, "-neutron-endpoint=http://127.0.0.1:1", "-f=/does/not/exist"}, 1, "/does/not/exist: no such file or directory"},
		"plan outside -namespaces":    {[]string{"plan", kubeconfig, "-neutron-endpoint=http://127.0.0.1:1", "-namespaces=a", "-f=" + example}, 1, "not in a namespace of -namespaces"},
		"plan without access":         {[]string{"plan", "-master=http://127.0.0.1:1", "-neutron-endpoint=http://127.0.0.1:1"}, 1, "the API server is unavailable"},
		"no workers":                  {[]string{"-workers=0"}, 2, "-workers is 0: it must be between 1 and 100"},
		"no requests":                 {[]string{"-neutron-max-requests=0"}, 2, "-neutron-max-requests is 0: it must be between 1 and 100"},
		"too many workers":            {[]string{"-workers=101"}, 2, "-workers is 101"},
		"no time to stop":             {[]string{"-shutdown-timeout=0s"}, 2, "-shutdown-timeout is 0s: it must be positive"},
		"no time for Neutron":         {[]string{"-neutron-timeout=0s"}, 2, "-neutron-timeout is 0s"},
		"too long for Neutron":        {[]string{"-neutron-timeout=11m"}, 2, "-neutron-timeout is 11m0s: it must be at most 10m0s"},
		"no time between lists":       {[]string{"-resync-period=0s"}, 2, "-resync-period is 0s: it must be at least 1s"},
		"negative orphan limit":       {[]string{"-max-orphan-deletions=-1"}, 2, "-max-orphan-deletions is -1"},
		"no grace for orphans":        {[]string{"-orphan-grace-period=0s"}, 2, "-orphan-grace-period is 0s"},
		"unknown policy for drift":    {[]string{"-drift=maybe"}, 2, `-drift is "maybe": it must be correct or report`},
		"negative limit":              {[]string{"-max-networks-per-namespace=-1"}, 2, "-max-networks-per-namespace is -1: it must be positive, or 0 for no limit"},
		"unknown deployment networks": {[]string{"-deployment-networks=some"}, 2, `-deployment-networks is "some": it must be annotated, all or none`},
		"all without a subnet pool":   {[]string{"-deployment-networks=all"}, 2, "-deployment-networks=all requires -default-subnet-pool"},
		"subnet pool without all":     {[]string{"-default-subnet-pool=campus"}, 2, "-default-subnet-pool requires -deployment-networks=all"},
		"cloud and endpoint":          {[]string{"-cloud=mine", "-neutron-endpoint=http://127.0.0.1:9696"}, 2, "exclude each other"},
		"cloud without a name":        {[]string{"-cloud="}, 2, "-cloud is empty"},
		"endpoint without a URL":      {[]string{"-neutron-endpoint="}, 2, "-neutron-endpoint is empty"},
		"part that is no number":      {[]string{"-tracing-sampling-ratio=NaN"}, 2, "-tracing-sampling-ratio is NaN"},
		"no clouds.yaml":              {[]string{kubeconfig, "-cloud=mine"}, 1, "there is no clouds.yaml"},
		"invalid metrics address":     {[]string{kubeconfig, "-metrics-bind-address=127.0.0.1:99999"}, 2, "-metrics-bind-address is \"127.0.0.1:99999\""},
		"metrics on a remote address": {[]string{kubeconfig, "-metrics-bind-address=192.0.2.1:8080"}, 1, "listening on -metrics-bind-address 192.0.2.1:8080 to serve metrics"},
		"invalid probe address":       {[]string{kubeconfig, "-health-probe-bind-address=8081"}, 2, "-health-probe-bind-address"},
		"profiles on all addresses":   {[]string{kubeconfig, "-profiling-bind-address=:6060"}, 2, "it must be a loopback address"},
		"certificate without a key":   {[]string{kubeconfig, "-tls-cert-file=cert.pem"}, 2, "must be set together"},
		"empty certificate":           {[]string{kubeconfig, "-metrics-bind-address=:0", "-tls-cert-file=" + empty, "-tls-private-key-file=" + empty}, 1, "-tls-cert-file"},
		"Lease without a namespace":   {[]string{kubeconfig, "-leader-elect", "-leader-elect-resource-namespace="}, 2, `-leader-elect-resource-namespace is ""`},
		"Lease too short":             {[]string{kubeconfig, "-leader-elect", "-leader-elect-lease-duration=5s"}, 2, "-leader-elect-lease-duration is 5s"},
		"Lease of 15.5 seconds":       {[]string{kubeconfig, "-leader-elect", "-leader-elect-lease-duration=15500ms"}, 2, "whole number of seconds"},
		"no namespaces":               {[]string{kubeconfig, "-namespaces="}, 2, "-namespaces is empty"},
		"adoption with namespaces":    {[]string{kubeconfig, "-namespaces=a", "-allow-adoption"}, 2, "cannot be combined"},
		"password in an invalid URL":  {[]string{kubeconfig, "-neutron-endpoint=http://bob:s3cret%zz@host"}, 1, "-neutron-endpoint"},
		"invalid namespace":           {[]string{kubeconfig, "-namespaces=a,B"}, 2, "\"B\""},
		"invalid tracing endpoint":    {[]string{kubeconfig, "-tracing-endpoint=collector:4318"}, 2, "-tracing-endpoint must be a URL"},
		"traces with a password":      {[]string{kubeconfig, "-tracing-endpoint=http://a:s3cret@collector:4318"}, 2, "OTEL_EXPORTER_OTLP_HEADERS"},
		"sampling ratio above 1":      {[]string{kubeconfig, "-tracing-sampling-ratio=2"}, 2, "must be from 0 to 1"},
		"cluster name with a slash":   {[]string{"-cluster-name=a/b"}, 2, `-cluster-name is "a/b"`},
		"unknown logging format":      {[]string{"-logging-format=xml"}, 2, `-logging-format is "xml": it must be text or json`},
		"no cluster":                  {nil, 1, "no cluster configured: set -kubeconfig"},
		"kubeconfig is missing":       {[]string{"-kubeconfig=/does/not/exist"}, 1, "reading -kubeconfig /does/not/exist"},
		"kubeconfig is broken":        {[]string{"-kubeconfig=" + broken}, 1, "reading -kubeconfig " + broken},
		"kubeconfig is empty":         {[]string{"-kubeconfig=" + empty}, 1, "contains no cluster or no current context"},
		"Neutron is no URL":           {[]string{kubeconfig, "-neutron-endpoint=neutron"}, 1, "-neutron-endpoint"},
		"Neutron in another scheme":   {[]string{kubeconfig, "-neutron-endpoint=ftp://127.0.0.1"}, 1, "-neutron-endpoint"},
		"embedded on all addresses":   {[]string{kubeconfig, "-embedded-neutron-address=0.0.0.0:0"}, 1, "-embedded-neutron-address 0.0.0.0:0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startProgram(t, nil, test.args...)
			p.WantExit(test.code)
			logged := strings.TrimSpace(p.Log())
			last := logged[strings.LastIndex(logged, "\n")+1:]
			if !strings.HasPrefix(last, controllerName+": ") || !strings.Contains(last, test.want) {
				t.Errorf("output:\n%s\nwant a last line with %q", logged, test.want)
			}
			if strings.Contains(logged, "goroutine") || strings.Contains(logged, "s3cret") {
				t.Errorf("output with a stack trace or a password:\n%s", logged)
			}
			if test.code == 2 && logged != last {
				t.Errorf("output of more than one line:\n%s", logged)
			}
		})
	}
}

// TestServed: the program serves profiles, and the metrics of the controller are those in
// docs/reference/metrics.md.
func TestServed(t *testing.T) {
	h := newHarness(t)
	h.create("example", "10.0.0.0/24", "")
	p := h.startProgram("-metrics-bind-address=127.0.0.1:0", "-profiling-bind-address=127.0.0.1:0", "-resync-period=1s")
	h.waitReady("example")
	if profile, err := running.Get(p.URL("profiles") + "goroutine?debug=1"); err != nil || !strings.Contains(profile, "goroutine profile: total") {
		t.Errorf("the profile is %.100q (%v)", profile, err)
	}
	metrics, err := running.Get(p.URL("metrics"))
	if err != nil {
		t.Fatal(err)
	}
	reference, err := os.ReadFile("docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	served, documented := map[string]bool{}, map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^# TYPE (samplecrd_\w+)`).FindAllStringSubmatch(metrics, -1) {
		served[match[1]] = true
	}
	for _, match := range regexp.MustCompile("(?m)^\\| `(samplecrd_\\w+)").FindAllStringSubmatch(string(reference), -1) {
		if !strings.HasPrefix(match[1], "samplecrd_neutron_quota_") { // without a login, there is no project
			documented[match[1]] = true
		}
	}
	if diff := cmp.Diff(documented, served); diff != "" {
		t.Errorf("metrics (-documented +served):\n%s", diff)
	}
	for _, want := range []string{`samplecrd_neutron_cache_refreshes_total{result="success"}`, "samplecrd_orphans 0", `samplecrd_neutron_info{cloud="noauth/`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics do not contain %s", want)
		}
	}
}

// TestChooseNeutron: a flag has priority over the environment; and in a pod, the embedded
// Neutron is a choice that somebody must have made. (test/install has what the manifests
// choose.)
func TestChooseNeutron(t *testing.T) {
	for name, test := range map[string]struct {
		flag, osCloud string
		isInPod       bool
		want          options
		fails         bool
	}{
		"nothing":                        {want: options{embeddedNeutron: true}},
		"nothing, in a pod":              {isInPod: true, fails: true},
		"the environment, in a pod":      {osCloud: "mine", isInPod: true, want: options{cloud: "mine"}},
		"embedded, in a pod":             {flag: "embedded-neutron", isInPod: true, want: options{embeddedNeutron: true}},
		"embedded, and the environment":  {flag: "embedded-neutron", osCloud: "mine", want: options{embeddedNeutron: true}},
		"an endpoint, and another cloud": {flag: "neutron-endpoint", osCloud: "mine"},
		"clouds of namespaces":           {flag: "allowed-auth-urls", isInPod: true},
		"those, and the environment":     {flag: "allowed-auth-urls", osCloud: "mine", want: options{cloud: "mine"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := options{embeddedNeutron: test.flag == "embedded-neutron"}
			if test.flag == "allowed-auth-urls" {
				o.clouds.AllowedURLs = []string{"https://keystone.example"}
			}
			err := o.chooseNeutron(map[string]bool{test.flag: true}, test.osCloud, test.isInPod)
			if (err != nil) != test.fails || o.embeddedNeutron != test.want.embeddedNeutron || o.cloud != test.want.cloud {
				t.Errorf("embedded: %v, cloud %q, error %v", o.embeddedNeutron, o.cloud, err)
			}
		})
	}
}

// kubeconfigFile writes a kubeconfig file with one context, for a server without
// authentication.
func kubeconfigFile(t *testing.T, path, context, server string) string {
	t.Helper()
	text := `{"clusters": [{"name": "c", "cluster": {"server": "` + server + `"}}],
		"contexts": [{"name": "` + context + `", "context": {"cluster": "c"}}], "current-context": "` + context + `"}`
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWhichCluster: the kubeconfig is found in the order of kubectl, and the log names
// it, its context and its server.
func TestWhichCluster(t *testing.T) {
	t.Parallel()
	home, folder := t.TempDir(), t.TempDir()
	kubeconfigFile(t, filepath.Join(home, ".kube", "config"), "of-home", "http://127.0.0.1:1")
	ofEnv := kubeconfigFile(t, filepath.Join(folder, "env"), "of-env", "http://127.0.0.1:2")
	ofFlag := kubeconfigFile(t, filepath.Join(folder, "flag"), "of-flag", "http://127.0.0.1:3")
	missing := filepath.Join(folder, "missing")
	for name, test := range map[string]struct {
		env, args []string
		want      string
	}{
		"the flag is first":             {[]string{"KUBECONFIG=" + ofEnv}, []string{"-kubeconfig=" + ofFlag}, `configuration="-kubeconfig ` + ofFlag + `" context="of-flag" server="http://127.0.0.1:3"`},
		"then the environment":          {[]string{"KUBECONFIG=" + ofEnv}, nil, `configuration="KUBECONFIG ` + ofEnv + `" context="of-env" server="http://127.0.0.1:2"`},
		"of which files may be missing": {[]string{"KUBECONFIG=" + missing + ":" + ofEnv}, nil, `context="of-env" server="http://127.0.0.1:2"`},
		"but not all":                   {[]string{"KUBECONFIG=" + missing}, nil, "reading KUBECONFIG " + missing + ": it does not exist"},
		"then the home folder":          {nil, nil, `configuration="~/.kube/config" context="of-home" server="http://127.0.0.1:1"`},
		"whose server can be replaced":  {nil, []string{"-master=http://127.0.0.1:4"}, `context="of-home" server="http://127.0.0.1:4"`},
		"a pod without a token":         {[]string{"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=1"}, []string{"-embedded-neutron"}, `configuration="~/.kube/config"`},
		"else there is no cluster":      {[]string{"HOME=" + folder}, nil, "no cluster configured: set -kubeconfig or KUBECONFIG, create ~/.kube/config, or run"},
		"except with a server":          {[]string{"HOME=" + folder}, []string{"-master=http://127.0.0.1:5"}, `configuration="-master" context="" server="http://127.0.0.1:5"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := append([]string{"HOME=" + home}, test.env...)
			p := startProgram(t, env, append(test.args, "-leader-elect=false")...)
			p.WaitFor(strings.NewReplacer(".", `\.`, "?", `\?`).Replace(test.want))
		})
	}
}

// TestTraces: each sync is a trace with a span for each step and each request to Neutron. A
// collector that responds with an error delays nothing. With -tracing-sampling-ratio=0, the
// program sends no trace.
func TestTraces(t *testing.T) {
	for ratio, want := range map[string]string{"0": "", "1": "/sync/CreateSubnet/create subnet"} {
		t.Run(ratio, func(t *testing.T) {
			h := newHarness(t)
			received := make(chan []byte, 1000)
			collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				received <- body
				w.WriteHeader(http.StatusNotFound)
			}))
			t.Cleanup(collector.Close)
			p := h.startProgram("-tracing-sampling-ratio="+ratio, "-tracing-endpoint="+collector.URL)
			p.WaitFor("Starting workers")
			h.create("example", "10.0.0.0/24", "")
			h.waitReady("example")
			p.Signal(syscall.SIGTERM)
			p.WantExit(0)
			collector.Close() // waits for requests in flight
			spans := map[string]*tracepb.Span{}
			for len(received) > 0 {
				var export tracepb.TracesData
				h.want(proto.Unmarshal(<-received, &export))
				for _, resource := range export.GetResourceSpans() {
					for _, scope := range resource.GetScopeSpans() {
						for _, span := range scope.GetSpans() {
							spans[string(span.GetSpanId())] = span
						}
					}
				}
			}
			var path func(span *tracepb.Span) string
			path = func(span *tracepb.Span) string {
				if span == nil {
					return ""
				}
				return path(spans[string(span.GetParentSpanId())]) + "/" + span.GetName()
			}
			got := ""
			for _, span := range spans {
				if span.GetName() == "create subnet" {
					got = path(span)
				}
			}
			if got != want || (len(spans) > 0) != (want != "") {
				t.Errorf("the request to create the subnet is %q, want %q; the spans are %v", got, want, spans)
			}
			if step := "create subnet: 10.0.0.0/24, gateway 10.0.0.1"; !strings.Contains(fmt.Sprint(spans), step) && want != "" {
				t.Errorf("the spans are %v, want one with %q", spans, step)
			}
		})
	}
}

// TestFollow: the command follow prints the journeys of a Network that is created, edited
// while Neutron fails, healed and deleted. The browser tests have the debug page.
func TestFollow(t *testing.T) {
	h := newHarness(t)
	p := h.startProgram("-debug-bind-address=127.0.0.1:0")
	p.WaitFor("Starting workers")
	address := strings.Trim(strings.TrimPrefix(p.URL("the debug page"), "http://"), "/")
	follow := startProgram(t, nil, "follow", h.namespace+"/example", "-address="+address)
	follow.WaitFor(h.namespace + "/example does not exist in this controller; waiting for its first event")
	follow.WaitFor("Following " + h.namespace + "/example")
	h.create("example", "10.0.0.0/24", "")
	follow.WaitFor("done: Ready")
	unavailable := func(r *http.Request) {
		if r.Method == http.MethodPut {
			panic(http.ErrAbortHandler)
		}
	}
	h.hold.Store(&unavailable)
	h.edit(`{"gateway":"10.0.0.9"}`)
	follow.WaitFor("failed; waiting for the retry: ")
	h.hold.Store(nil)
	h.waitReady("example")
	h.delete("example")
	for _, line := range []string{"added to the queue: added", "taken by worker 1", "  plan: create subnet: 10.0.0.0/24", "  Neutron: create subnet: 201 in", "done: Deleted"} {
		follow.WaitFor(line)
	}
	follow.Signal(syscall.SIGINT)
	follow.WantExit(0)
}

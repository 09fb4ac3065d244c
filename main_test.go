package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/clock"

	"github.com/samplecrd/network-controller/pkg/deployments"
	"github.com/samplecrd/network-controller/pkg/drift"
	"github.com/samplecrd/network-controller/pkg/leaderelection"
	"github.com/samplecrd/network-controller/pkg/reconcile"
	"github.com/samplecrd/network-controller/test/controlplane"
)

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

// TestBadInput: the last line of the output is one sentence that names the flag,
// and the exit code is not 0.
func TestBadInput(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken")
	empty := filepath.Join(t.TempDir(), "empty")
	if err := errors.Join(os.WriteFile(broken, []byte("clusters: nonsense"), 0o600), os.WriteFile(empty, nil, 0o600)); err != nil {
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
		"traces with a query":         {[]string{kubeconfig, "-tracing-endpoint=http://collector:4318/?api_key=s3cret"}, 2, "OTEL_EXPORTER_OTLP_HEADERS"},
		"cloud and embedded":          {[]string{"-cloud=mine", "-embedded-neutron"}, 2, "exclude each other"},
		"endpoint and embedded":       {[]string{"-neutron-endpoint=http://127.0.0.1:9696", "-embedded-neutron"}, 2, "exclude each other"},
		"no Neutron at all":           {[]string{"-embedded-neutron=false"}, 2, "no Neutron configured: set -cloud or OS_CLOUD"},
		"argument that is no flag":    {[]string{"start"}, 2, `unexpected argument "start"`},
		"unknown command":             {[]string{"plna"}, 2, "the commands are plan and follow"},
		"plan without a Neutron":      {[]string{"plan", kubeconfig}, 1, "set -cloud, OS_CLOUD or -neutron-endpoint"},
		"plan with an unknown flag":   {[]string{"plan", "-nonsense"}, 1, "-nonsense"},
		"plan in another format":      {[]string{"plan", kubeconfig, "-neutron-endpoint=http://127.0.0.1:1", "-o=xml"}, 1, `-o is "xml": it must be text or json`},
		"plan of a missing file":      {[]string{"plan", kubeconfig, "-neutron-endpoint=http://127.0.0.1:1", "-f=/does/not/exist"}, 1, "-f: stat /does/not/exist"},
		"plan outside -namespaces":    {[]string{"plan", kubeconfig, "-neutron-endpoint=http://127.0.0.1:1", "-namespaces=a", "-f=example"}, 1, "not in a namespace of -namespaces"},
		"plan without access":         {[]string{"plan", "-master=http://127.0.0.1:1", "-neutron-endpoint=http://127.0.0.1:1"}, 1, "the API server is unavailable"},
		"no workers":                  {[]string{"-workers=0"}, 2, "-workers is 0: it must be between 1 and 100"},
		"no requests":                 {[]string{"-neutron-max-requests=0"}, 2, "-neutron-max-requests is 0: it must be between 1 and 100"},
		"too many workers":            {[]string{"-workers=101"}, 2, "-workers is 101"},
		"no time to stop":             {[]string{"-shutdown-timeout=0s"}, 2, "-shutdown-timeout is 0s: it must be positive"},
		"no time for Neutron":         {[]string{"-neutron-timeout=0s"}, 2, "-neutron-timeout is 0s"},
		"too long for Neutron":        {[]string{"-neutron-timeout=2m"}, 2, "-neutron-timeout is 2m0s: it must be at most 1m30s"},
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
			p := startProgram(t, test.args...)
			p.wantExit(t, test.code)
			logged := strings.TrimSpace(p.log.String())
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

// TestSettings: each flag has an effect on the option that it names, and on no other.
func TestSettings(t *testing.T) {
	for name, test := range map[string]struct {
		args   []string
		change func(*settings)
	}{
		"defaults":                    {nil, func(*settings) {}},
		"-drift=correct":              {[]string{"-drift=correct"}, func(*settings) {}},
		"-drift=report":               {[]string{"-drift=report"}, func(s *settings) { s.reconcile.ReportDrift = true }},
		"-leave-cloud":                {[]string{"-leave-cloud=RegionOne/1"}, func(s *settings) { s.reconcile.LeaveCloud = "RegionOne/1" }},
		"-other-clusters":             {[]string{"-other-clusters=a,b"}, func(s *settings) { s.reconcile.OtherClusters = []string{"a", "b"} }},
		"-max-networks-per-namespace": {[]string{"-max-networks-per-namespace=7"}, func(s *settings) { s.reconcile.MaxNetworksPerNamespace = 7 }},
		"-allow-adoption":             {[]string{"-allow-adoption"}, func(s *settings) { s.reconcile.AllowAdoption = true }},
		"-resync-period":              {[]string{"-resync-period=3m"}, func(s *settings) { s.drift.ResyncPeriod = 3 * time.Minute }},
		"-delete-orphans":             {[]string{"-delete-orphans"}, func(s *settings) { s.drift.OrphanGracePeriod = 10 * time.Minute }},
		"-orphan-grace-period alone":  {[]string{"-orphan-grace-period=2m"}, func(*settings) {}},
		"-orphan-grace-period":        {[]string{"-delete-orphans", "-orphan-grace-period=2m"}, func(s *settings) { s.drift.OrphanGracePeriod = 2 * time.Minute }},
		"-max-orphan-deletions":       {[]string{"-max-orphan-deletions=7"}, func(s *settings) { s.drift.MaxOrphanDeletions = 7 }},
		"-leader-elect":               {[]string{"-leader-elect=false"}, func(s *settings) { s.reconcile.Alone = true }},
		"-deployment-networks":        {[]string{"-deployment-networks=none"}, func(s *settings) { s.deployments.Which = deployments.None }},
	} {
		t.Run(name, func(t *testing.T) {
			var o options
			flags := flag.NewFlagSet(controllerName, flag.ContinueOnError) // parseOptions also changes klog, which others use
			o.addFlags(flags)
			o.deployments.AddFlags(flags)
			o.leaderElection.AddFlags(flags, controllerName)
			if err := flags.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			want := settings{
				reconcile: reconcile.Options{
					FieldManager: "samplecrd-controller", Cluster: "cluster",
					MaxInFlight: 30 * time.Second, MaxLateness: 10 * time.Minute, MaxClockSkew: time.Minute, Retry: reconcile.DefaultRetryDelays(),
				},
				drift:       drift.Options{Cluster: "cluster", ResyncPeriod: 30 * time.Second, StartTimeout: 30 * time.Second, MaxOrphanDeletions: 10},
				deployments: deployments.Options{Which: deployments.Annotated, ExcludedNamespaces: []string{"kube-system"}},
			}
			test.change(&want)
			if diff := cmp.Diff(want, o.settings("cluster"), cmp.AllowUnexported(settings{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the settings of %q differ (-want +got):\n%s", test.args, diff)
			}
		})
	}
}

// TestMetrics: the served metrics of the controller are those in
// docs/reference/metrics.md.
func TestMetrics(t *testing.T) {
	t.Parallel()
	own := ownCluster(t)
	kubectl(t, own, "apply", "-f", "example/example-network.yaml")
	p := startProgram(t, "-kubeconfig="+own.Kubeconfig(), "-metrics-bind-address=127.0.0.1:0", "-resync-period=1s")
	p.waitFor(t, "create subnet")
	url := regexp.MustCompile(`"Serving metrics" url="([^"]+)"`).FindStringSubmatch(p.log.String())
	if url == nil {
		t.Fatalf("no URL of the metrics in\n%s", &p.log)
	}
	response, err := http.Get(url[1])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	served, documented := map[string]bool{}, map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^# TYPE (samplecrd_\w+)`).FindAllStringSubmatch(string(body), -1) {
		served[match[1]] = true
	}
	for _, match := range regexp.MustCompile("(?m)^\\| `(samplecrd_\\w+)").FindAllStringSubmatch(read(t, "docs/reference/metrics.md"), -1) {
		documented[match[1]] = true
	}
	if diff := cmp.Diff(documented, served); diff != "" {
		t.Errorf("metrics (-documented +served):\n%s", diff)
	}
	for _, want := range []string{`samplecrd_neutron_cache_refreshes_total{result="success"}`, "samplecrd_orphans 0", `samplecrd_neutron_info{cloud="embedded"} 1`} {
		if !strings.Contains(string(body), want) {
			t.Errorf("the metrics do not contain %s", want)
		}
	}
}

// TestStartsBeforeAPIServer: the API server is unavailable first, then has no
// CustomResourceDefinition, then an old one, then the current one. The controller
// logs what it waits for, recovers, and exits with code 0 after SIGTERM.
func TestStartsBeforeAPIServer(t *testing.T) {
	t.Parallel()
	bare, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bare.Stop() })
	if err := bare.StopAPIServer(); err != nil {
		t.Fatal(err)
	}

	p := startProgram(t, "-kubeconfig="+bare.Kubeconfig(), "-alsologtostderr=true", "-logging-format=json")
	p.waitFor(t, `"reason":"the API server is unavailable: .*connection refused"`)
	if err := bare.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.waitFor(t, `"reason":"the CustomResourceDefinition for Networks is not installed: run kubectl apply -f crd/"`)
	kubectl(t, bare, "apply", "-f", olderCRD(t, "mtu", "defaultMTU"))
	p.waitFor(t, `"reason":"the CustomResourceDefinition is older than the controller \(it lacks the fields status.defaultMTU, status.mtu\): install .* kubectl apply -f crd/"`)
	kubectl(t, bare, "apply", "-f", "crd/")
	p.waitFor(t, `"msg":"Starting workers"`)
	kubectl(t, bare, "apply", "-f", "example/example-network.yaml", "-f", "example/ipv6-network.yaml", "-f", "example/dns-network.yaml")
	kubectl(t, bare, "wait", "--for=condition=Ready", "networks", "--all", "--timeout=60s")

	p.signal(t, syscall.SIGTERM)
	p.wantExit(t, 0)
}

// olderCRD returns a file with the CustomResourceDefinition without some fields of
// the status.
func olderCRD(t *testing.T, without ...string) (path string) {
	t.Helper()
	text, err := yaml.ToJSON([]byte(read(t, "crd/network.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	var crd map[string]any
	if err := json.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
	status, ok, err := unstructured.NestedFieldNoCopy(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "status", "properties")
	if !ok || err != nil {
		t.Fatalf("the CustomResourceDefinition has no status: %v", err)
	}
	for _, field := range without {
		delete(status.(map[string]any), field)
	}
	if err := unstructured.SetNestedSlice(crd, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(crd); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "crd.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ownCluster returns a control plane for one test: without -namespaces, a
// controller reconciles the Networks of all namespaces.
func ownCluster(t *testing.T) *controlplane.Cluster {
	t.Helper()
	own, err := controlplane.Start(t.Context(), controlplane.Options{Apply: []string{"crd"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Stop() })
	return own
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

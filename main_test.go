package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/samplecrd/network-controller/pkg/debugpage"
	"github.com/samplecrd/network-controller/pkg/deployments"
	"github.com/samplecrd/network-controller/pkg/drift"
	"github.com/samplecrd/network-controller/pkg/reconcile"
	"github.com/samplecrd/network-controller/test/controlplane"
)

// The tests of this file start the program with flags: mistakes, where it finds Kubernetes
// and Neutron, what it serves and sends, and the command plan.

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

// TestNeutronMustBeNamedInPod: the environment of a pod makes the embedded Neutron a
// choice that somebody must have made.
func TestNeutronMustBeNamedInPod(t *testing.T) {
	t.Parallel()
	start := func(variable string, args ...string) *program {
		p := newProgram(t, append(args, "-kubeconfig="+cluster.Kubeconfig(), "-namespaces=default")...)
		p.Env = append(p.Env, "KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=1", variable)
		p.start(t)
		return p
	}
	p := start("OS_CLOUD=")
	p.wantExit(t, 2)
	for _, flag := range []string{"-cloud", "OS_CLOUD", "-neutron-endpoint", "-embedded-neutron"} {
		if !strings.Contains(p.log.String(), flag) {
			t.Errorf("the error does not name %s:\n%s", flag, &p.log)
		}
	}
	start("OS_CLOUD=", "-embedded-neutron").waitFor(t, "using the embedded Neutron")
	// A flag has priority over the environment.
	start("OS_CLOUD=nowhere", "-embedded-neutron").waitFor(t, "using the embedded Neutron")
	p = start("OS_CLOUD=", "-neutron-endpoint=http://127.0.0.1:1")
	p.waitFor(t, "Neutron is unavailable; starting anyway")
	p.waitFor(t, "Using Kubernetes")
	start("OS_CLOUD=nowhere").waitFor(t, "-cloud or OS_CLOUD: ")
}

// kubeconfigFile writes a kubeconfig file with one context, for a server without
// authentication.
func kubeconfigFile(t *testing.T, path, context, server string) string {
	t.Helper()
	text := `{"clusters": [{"name": "c", "cluster": {"server": "` + server + `"}}],
		"contexts": [{"name": "` + context + `", "context": {"cluster": "c"}}], "current-context": "` + context + `"}`
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
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
			p := newProgram(t, test.args...)
			p.Env = append(append(p.Env, "HOME="+home), test.env...)
			p.start(t)
			p.waitFor(t, strings.NewReplacer(".", `\.`, "?", `\?`).Replace(test.want))
		})
	}
}

// TestMaster: -master replaces the server of the kubeconfig file and nothing else.
func TestMaster(t *testing.T) {
	t.Parallel()
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	entry := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	server := entry.Server
	entry.Server = "https://127.0.0.1:1"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, "-kubeconfig="+path, "-namespaces=default", "-master="+server)
	p.waitFor(t, `"Using Kubernetes" server="`+server+`"`)
}

// TestProfiles: -profiling-bind-address serves profiles.
func TestProfiles(t *testing.T) {
	t.Parallel()
	p := startProgram(t, "-kubeconfig="+cluster.Kubeconfig(), "-namespaces=default", "-profiling-bind-address=127.0.0.1:0")
	p.waitFor(t, `"Serving profiles" url="http://127.0.0.1:\d+/debug/pprof/"`)
	address := p.served(t, "profiles")
	if err := responds(address+"goroutine?debug=1", "goroutine profile: total"); err != nil {
		t.Error(err)
	}
}

// plan runs the command plan for the test's namespace. It returns the output as text
// and the exit code.
func (h *harness) plan(args ...string) (output string, code int) {
	h.Helper()
	p := newProgram(h.T, append([]string{
		"plan", "-kubeconfig=" + cluster.Kubeconfig(), "-neutron-endpoint=" + h.neutronURL, "-cluster-name=" + h.settings.reconcile.Cluster,
	}, args...)...)
	var stdout, stderr bytes.Buffer
	p.Stdout, p.Stderr = &stdout, &stderr
	err := p.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		h.Fatal(err)
	}
	return stdout.String() + stderr.String(), p.ProcessState.ExitCode()
}

// TestPlanWritesNothing: a plan with steps of several kinds sends only requests that
// read, to both APIs, and few of them.
func TestPlanWritesNothing(t *testing.T) {
	h := newHarness(t)
	h.cloud = "noauth/" + strings.TrimPrefix(h.neutronURL, "http://")
	stop := h.startController()
	for _, name := range []string{"edited", "deleted", "drifted", "healthy"} {
		h.create(name, "10.0.0.0/24", "")
		h.waitReady(name)
	}
	stop()
	h.create("new", "10.0.0.0/24", "")
	h.createAdopting("blocked", "10.0.1.0/24", "does-not-exist")
	h.patch("edited", `{"spec":{"cidr":"10.9.0.0/24"}}`)
	h.delete("deleted")
	_, subnet := h.idsInNeutron("drifted")
	h.do(http.MethodPut, "/v2.0/subnets/"+subnet, `{"subnet":{"gateway_ip":null}}`, nil)
	h.postNetwork("orphan", h.marker("orphan"))
	h.forgetRequests()

	kubernetes := h.proxyKubernetes()
	sent := make(chan string, 100)
	record := func(r *http.Request) { sent <- r.Method }
	kubernetes.held.Store(&record)
	output, code := h.plan("-kubeconfig=", "-master="+kubernetes.URL, "-namespaces="+h.namespace)
	const want = "Plan: 3 to create, 3 to update, 2 to delete. 1 Network is as desired, 1 Network is blocked, 1 network is not in Kubernetes.\n"
	if code != 2 || !strings.Contains(output, want) {
		t.Errorf("exit code %d, want 2, and the plan lacks %q:\n%s", code, want, output)
	}
	if len(sent) != 1 || <-sent != http.MethodGet {
		t.Errorf("the plan sent %d more requests to the API server, want one list", len(sent))
	}
	lists := 0
	for _, r := range h.neutron.Requests() {
		if r.Method != http.MethodGet {
			t.Errorf("the plan sent %s %s", r.Method, r.Path)
		}
		if r.Path != "/v2.0/extensions" && listsAll(r.Path, r.Query) {
			lists++
		}
	}
	if lists != 2 {
		t.Errorf("the plan listed Neutron's state with %d requests, want one list of networks and one of subnets", lists)
	}
}

// spans is a collector that stores the spans it receives.
type spans struct {
	mu  sync.Mutex
	all []*tracev1.Span
}

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	request := &collector.ExportTraceServiceRequest{}
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, request) != nil {
		http.Error(w, "no traces", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			s.all = append(s.all, scope.Spans...)
		}
	}
}

// find returns the spans with a name; if below is set, only its children.
func (s *spans) find(name string, below *tracev1.Span) (found []*tracev1.Span) {
	for _, span := range s.all {
		if span.Name == name && (below == nil || string(span.ParentSpanId) == string(below.SpanId) && string(span.TraceId) == string(below.TraceId)) {
			found = append(found, span)
		}
	}
	return found
}

func attributeOf(span *tracev1.Span, key string) string {
	for _, attribute := range span.Attributes {
		if attribute.Key == key {
			return attribute.Value.GetStringValue()
		}
	}
	return ""
}

// TestTraces: each sync is a trace with a span for each step and each request to
// Neutron, linked to the sync's causes.
func TestTraces(t *testing.T) {
	h, sent := newHarness(t), &spans{}
	server := httptest.NewServer(sent)
	defer server.Close()
	p := h.createTraced(server.URL)

	steps := sent.find("CreateSubnet", nil)
	if len(steps) != 1 || attributeOf(steps[0], "samplecrd.step") != "create subnet: 10.0.0.0/24, gateway 10.0.0.1" {
		t.Fatalf("the spans are %v, want one for the step that creates a subnet", sent.all)
	}
	if requests := sent.find("create subnet", steps[0]); len(requests) != 1 {
		t.Errorf("the children of the step are %v, want one request to Neutron", requests)
	}
	var sync *tracev1.Span
	for _, span := range sent.find("sync", nil) {
		if string(span.SpanId) == string(steps[0].ParentSpanId) {
			sync = span
		}
	}
	if sync == nil || len(sync.ParentSpanId) != 0 || attributeOf(sync, "samplecrd.network") != h.namespace+"/example" {
		t.Fatalf("the parent of the step is %v, want a sync that is the root of its trace", sync)
	}
	if !regexp.MustCompile(`"Created subnet" network="` + h.namespace + `/example" sync="` + attributeOf(sync, "samplecrd.sync") + `" step="create subnet`).MatchString(p.log.String()) {
		t.Errorf("the log has no line of sync %q:\n%s", attributeOf(sync, "samplecrd.sync"), &p.log)
	}
	events := sent.find("event", nil)
	if len(events) == 0 || len(sync.Links) != 1 || string(sync.Links[0].SpanId) != string(events[0].SpanId) {
		t.Errorf("the sync is linked to %v, want the event %v", sync.Links, events)
	}
	if hex.EncodeToString(sync.TraceId) == hex.EncodeToString(events[0].TraceId) {
		t.Error("the event is in the trace of the sync, want it in its own trace")
	}
}

// TestNothingIsSampled: with -tracing-sampling-ratio=0, no sync is traced.
func TestNothingIsSampled(t *testing.T) {
	h, sent := newHarness(t), &spans{}
	server := httptest.NewServer(sent)
	defer server.Close()
	h.createTraced(server.URL, "-tracing-sampling-ratio=0")
	if len(sent.all) > 0 {
		t.Errorf("%d spans were sent, want none", len(sent.all))
	}
}

// TestCollectorUnavailable: an unavailable collector delays nothing.
func TestCollectorUnavailable(t *testing.T) {
	h := newHarness(t)
	h.createTraced("http://127.0.0.1:1")
}

// createTraced runs a controller that sends traces to an endpoint until it has
// created a Network.
func (h *harness) createTraced(endpoint string, args ...string) *program {
	h.Helper()
	p := startProgram(h.T, append(args, "-kubeconfig="+cluster.Kubeconfig(), "-neutron-endpoint="+h.neutronURL, "-cluster-name="+testCluster,
		"-namespaces="+h.namespace, "-tracing-endpoint="+endpoint)...)
	p.waitFor(h.T, "Starting workers")
	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")
	p.signal(h.T, syscall.SIGTERM)
	p.wantExit(h.T, 0)
	return p
}

// TestDebugPage: the program shows the journeys of a Network that is created, edited
// while Neutron fails, healed and deleted.
func TestDebugPage(t *testing.T) {
	h := newHarness(t)
	p := startProgram(t, "-kubeconfig="+cluster.Kubeconfig(), "-neutron-endpoint="+h.neutronURL, "-cluster-name="+testCluster,
		"-namespaces="+h.namespace, "-leader-elect=false", "-debug-bind-address=127.0.0.1:0")
	p.waitFor(t, "Starting workers")
	page := p.served(t, "the debug page")
	get := func(path string, value any) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		if err := json.NewDecoder(response.Body).Decode(value); err != nil {
			t.Fatal(err)
		}
	}
	// waitJourney waits for a journey that ended with an outcome because of a cause.
	waitJourney := func(cause, changed string, failed bool) (found debugpage.Journey) {
		t.Helper()
		h.eventually(func() error {
			var all []debugpage.Journey
			get("api/journeys?key="+url.QueryEscape(h.namespace+"/example"), &all)
			for _, found = range all {
				isCause := func(c debugpage.Cause) bool { return c.Type == cause && c.Changed == changed }
				if found.Ended != nil && found.Failed == failed && slices.ContainsFunc(found.Causes, isCause) {
					return nil
				}
			}
			return fmt.Errorf("the journeys are %+v, want one because of %s %s", all, cause, changed)
		})
		return found
	}
	wantStep := func(in debugpage.Journey, text, server string) {
		t.Helper()
		if !slices.ContainsFunc(in.Steps, func(s debugpage.JourneyStep) bool {
			return s.Text == text && slices.ContainsFunc(s.Requests, func(r debugpage.JourneyRequest) bool { return r.Server == server && r.Code != 0 })
		}) {
			t.Errorf("the journey is %+v, want the step %q with a request to %s", in, text, server)
		}
	}

	follow := newDefaultProgram(t, "follow", h.namespace+"/example", "-address="+strings.TrimSuffix(strings.TrimPrefix(page, "http://"), "/"))
	follow.start(t)
	follow.waitFor(t, "Following "+h.namespace+"/example")

	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")
	created := waitJourney("added", "", false)
	wantStep(created, "add finalizer", "Kubernetes")
	wantStep(created, "create subnet: 10.0.0.0/24, gateway 10.0.0.1", "Neutron")
	wantStep(created, "write the status", "Kubernetes")
	if created.Outcome != "Ready" || created.Worker == 0 || created.Taken == nil || created.Desired == "" || created.Actual == "" {
		t.Errorf("the journey is %+v, want one to Ready", created)
	}

	unavailable := func(r *http.Request) {
		if r.Method == http.MethodPut {
			panic(http.ErrAbortHandler)
		}
	}
	h.hold.Store(&unavailable)
	h.patch("example", `{"spec":{"gateway":"10.0.0.9"}}`)
	if failed := waitJourney("updated", "spec", true); failed.Retry == nil || failed.Retry.Reason != "backoff" || failed.Retry.Failures != 1 {
		t.Errorf("the journey is %+v, want one with a retry", failed)
	}
	h.hold.Store(nil)
	wantStep(waitJourney("retry", "", false), "write the status", "Kubernetes")
	h.delete("example")
	wantStep(waitJourney("updated", "deletionTimestamp", false), "remove finalizer", "Kubernetes")
	waitJourney("deleted", "", false)

	for _, line := range []string{"added to the queue: added", "taken by worker 1", "  plan: create subnet: 10.0.0.0/24", "  Neutron: create subnet: 201 in", "done: Ready", "failed; waiting for the retry: ", "done: Deleted"} {
		follow.waitFor(t, line)
	}
	follow.signal(t, syscall.SIGINT)
	follow.wantExit(t, 0)

	var state debugpage.State
	get("api/state", &state)
	informer := state.Informers[0]
	if !state.Process.Leads || !state.Process.MaySlowDown || informer.Activity != "watching" || informer.ResourceVersion == "" || informer.Watches == 0 ||
		state.Handlers.Add != 1 || state.Handlers.Delete != 1 || state.Neutron.Limit == 0 || state.Cache.Refreshed == nil || len(state.Workers) != 32 || len(state.Plans) == 0 {
		t.Errorf("the state is %+v", state)
	}
	p.signal(t, syscall.SIGTERM)
	p.wantExit(t, 0)
}

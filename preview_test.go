package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/preview"
)

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

// plannedSteps returns the steps of the Network example in a plan.
func (h *harness) plannedSteps(args ...string) (steps []string) {
	h.Helper()
	if h.settings.reconcile.AllowAdoption {
		args = append(args, "-allow-adoption")
	} else {
		args = append(args, "-namespaces="+h.namespace)
	}
	output, _ := h.plan(append(args, "-o=json")...)
	var p preview.Plan
	if err := json.Unmarshal([]byte(output), &p); err != nil {
		h.Fatalf("the plan is no JSON: %v: %s", err, output)
	}
	for _, network := range p.Networks {
		if network.Namespace != h.namespace {
			continue
		}
		for _, step := range network.Steps {
			steps = append(steps, step.Text)
		}
	}
	return steps
}

// appliedSteps returns the steps that write, according to the log of the latest
// controller.
func (h *harness) appliedSteps() (steps []string) {
	h.Helper()
	for _, match := range regexp.MustCompile(` step=("(?:[^"\\]|\\.)*")`).FindAllStringSubmatch(h.log.String(), -1) {
		step, err := strconv.Unquote(match[1])
		if err != nil {
			h.Fatal(err)
		}
		if !strings.HasPrefix(step, "find ") {
			steps = append(steps, step)
		}
	}
	return steps
}

// TestPlanMatchesController: the steps of a plan are those that the controller applies
// next, and then there is nothing to do.
func TestPlanMatchesController(t *testing.T) {
	dns := []string{"10.0.0.53"}
	everything := samplecrdv1.NetworkSpec{
		CIDR: "10.0.0.0/24", Gateway: "10.0.0.9", MTU: new(int32(1400)), Tags: []string{"b", "a"}, DNSNameservers: dns, PortSecurityEnabled: new(false),
	}
	for name, test := range map[string]struct {
		spec    samplecrdv1.NetworkSpec
		ready   bool // the controller has run before the change
		adoptID bool
		change  func(h *harness)
		want    string // a part of the steps
	}{
		"new":             {spec: everything, want: "add finalizer\ncreate network "},
		"from a pool":     {spec: samplecrdv1.NetworkSpec{SubnetPool: &samplecrdv1.SubnetPoolReference{Name: "campus", PrefixLength: 26}, Gateway: "None"}, want: "gateway (known after create) → none"},
		"nothing":         {spec: everything, ready: true},
		"edited settings": {spec: everything, ready: true, change: func(h *harness) { h.patch("example", `{"spec":{"mtu":null,"tags":["c"],"gateway":null}}`) }, want: "MTU 1400 → the largest allowed"},
		"edited range":    {spec: everything, ready: true, change: func(h *harness) { h.edit("10.1.0.0/24", "") }, want: "create subnet: 10.1.0.0/24, gateway 10.1.0.1\ndelete subnet: 10.0.0.0/24 is replaced by 10.1.0.0/24"},
		"deleted":         {spec: everything, ready: true, change: func(h *harness) { h.delete("example") }, want: "delete network "},
		"retained": {
			spec: samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", DeletionPolicy: samplecrdv1.DeletionPolicyRetain}, ready: true,
			change: func(h *harness) { h.delete("example") }, want: "retain network ",
		},
		"drift": {spec: everything, ready: true, change: func(h *harness) {
			network, subnet := h.idsInNeutron("example")
			h.do(http.MethodPut, "/v2.0/networks/"+network, `{"network":{"name":"mine","mtu":1300}}`, nil)
			h.do(http.MethodDelete, "/v2.0/subnets/"+subnet, "", nil)
		}, want: `name "mine" → `},
		"network lost": {spec: everything, ready: true, change: func(h *harness) {
			network, _ := h.idsInNeutron("example")
			h.do(http.MethodDelete, "/v2.0/networks/"+network, "", nil)
		}, want: "add tag \"a\" to network (known after create)"},
		"duplicate": {spec: everything, ready: true, change: func(h *harness) { h.postNetwork(h.namespace+"/example", h.requested("example", "another")) }, want: "duplicate of "},
		"drift is reported": {spec: samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", DriftPolicy: samplecrdv1.DriftPolicyReport}, ready: true, change: func(h *harness) {
			_, subnet := h.idsInNeutron("example")
			h.do(http.MethodDelete, "/v2.0/subnets/"+subnet, "", nil)
		}},
		"adopted": {spec: samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24"}, adoptID: true, want: "create subnet: 10.0.0.0/24"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.cloud = "noauth/" + strings.TrimPrefix(h.neutronURL, "http://")
			h.settings.drift.ResyncPeriod = shortResync
			h.post("/v2.0/subnetpools", `{"subnetpool":{"name":"campus","prefixes":["10.20.0.0/16"],"default_prefixlen":24}}`)
			if test.adoptID {
				h.settings.reconcile.AllowAdoption = true
				test.spec.NetworkID = h.postNetwork("theirs", "")
			}
			h.createWith("example", test.spec)
			if test.ready {
				stop := h.startController()
				h.waitReady("example")
				stop()
			}
			if test.change != nil {
				test.change(h)
			}
			planned := h.plannedSteps()
			if text := strings.Join(planned, "\n"); !strings.Contains(text, test.want) || (test.want == "") != (text == "") {
				t.Errorf("the plan is %q, want one with %q", planned, test.want)
			}

			h.startController()
			h.eventually(func() error {
				if rest := h.plannedSteps(); rest != nil {
					return errors.New("the plan still has " + strings.Join(rest, ", "))
				}
				return nil
			})
			if diff := cmp.Diff(planned, h.maskNew(h.appliedSteps(), planned)); diff != "" {
				t.Errorf("the controller applied other steps (-planned +applied):\n%s", diff)
			}
		})
	}
}

// maskNew replaces in applied steps what the plan could not know: IDs, and the gateway
// from a subnet pool.
func (h *harness) maskNew(applied, planned []string) (masked []string) {
	unknown := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|\b10\.20\.\d+\.\d+\b`)
	isKnown := strings.Join(planned, "\n")
	for _, step := range applied {
		masked = append(masked, unknown.ReplaceAllStringFunc(step, func(value string) string {
			if strings.Contains(isKnown, value) {
				return value
			}
			return plan.KnownAfterCreate
		}))
	}
	return masked
}

// TestPlanWritesNothing: a plan with steps of every kind sends only requests that
// read, to both APIs, and few of them.
func TestPlanWritesNothing(t *testing.T) {
	h := newHarness(t)
	neutron := h.record(&rest.Config{Host: h.neutronURL})
	h.neutronURL, h.cloud = neutron.URL, "noauth/"+strings.TrimPrefix(neutron.URL, "http://")
	stop := h.startController()
	for _, name := range []string{"edited", "deleted", "drifted", "healthy", "retained"} {
		spec := samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24"}
		if name == "retained" {
			spec.DeletionPolicy = samplecrdv1.DeletionPolicyRetain
		}
		h.createWith(name, spec)
		h.waitReady(name)
	}
	h.delete("retained")
	h.waitGone("retained")
	stop()
	h.create("new", "10.0.0.0/24", "")
	h.createWith("blocked", samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", NetworkID: "does-not-exist"})
	h.patch("edited", `{"spec":{"cidr":"10.9.0.0/24"}}`)
	h.delete("deleted")
	_, subnet := h.idsInNeutron("drifted")
	h.do(http.MethodPut, "/v2.0/subnets/"+subnet, `{"subnet":{"gateway_ip":null}}`, nil)
	h.postNetwork("orphan", h.marker("orphan"))

	kube := h.record(cluster.RESTConfig())
	neutron.forget()
	output, code := h.plan("-kubeconfig=", "-master="+kube.URL, "-namespaces="+h.namespace)
	if code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	for _, want := range []string{
		"Network " + h.namespace + "/new: new\n  ~ add finalizer\n  + create network ",
		"/edited: the spec was edited\n  + create subnet: 10.9.0.0/24, gateway 10.9.0.1\n  - delete subnet: 10.0.0.0/24 is replaced by 10.9.0.0/24\n",
		"/deleted: being deleted\n  - delete network ",
		"/drifted: Neutron differs from the spec, although the Network was Ready\n  ~ update subnet: gateway none → 10.0.0.1\n",
		"/blocked\n  ! blocked: AdoptionNotAllowed: ",
		"  Namespace " + h.namespace + ": 1 retained, 1 orphan\n",
		h.marker("orphan") + "        openstack network delete ",
		"Plan: 3 to create, 3 to update, 2 to delete. 1 Network is as desired, 1 Network is blocked, 2 networks are not in Kubernetes.\n",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("the plan lacks %q:\n%s", want, output)
		}
	}
	for _, server := range []*recording{kube, neutron} {
		if len(server.requests) == 0 {
			t.Error("a server has received no request: the plan used another one")
		}
		for _, request := range server.requests {
			if !strings.HasPrefix(request, "GET ") {
				t.Errorf("the plan sent %s", request)
			}
		}
	}
	lists := slices.DeleteFunc(neutron.requests, func(r string) bool {
		path, query, _ := strings.Cut(strings.TrimPrefix(r, "GET "), "?")
		return path == "/v2.0/extensions" || !listsAll(path, query)
	})
	if len(lists) != 2 {
		t.Errorf("the plan listed Neutron's state with %q, want one list of networks and one of subnets", lists)
	}
	if len(kube.requests) != 1 {
		t.Errorf("the plan sent %q to the API server, want one list", kube.requests)
	}
}

// recording is a server that passes requests on and records them.
type recording struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
}

func (r *recording) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = nil
}

// record returns a server in front of another one.
func (h *harness) record(config *rest.Config) *recording {
	h.Helper()
	transport, err := rest.TransportFor(config)
	if err != nil {
		h.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		h.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	recorded := &recording{}
	recorded.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorded.mu.Lock()
		recorded.requests = append(recorded.requests, r.Method+" "+r.URL.RequestURI())
		recorded.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	h.Cleanup(recorded.Close)
	return recorded
}

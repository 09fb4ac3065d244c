package main

import (
	"bytes"
	"errors"
	"net/http"
	"os/exec"
	"strings"
	"testing"
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
	h.createAdopting("blocked", "10.0.0.0/24", "does-not-exist")
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

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// replica is one of several controllers of a namespace, each a process of its
// own.
type replica struct{ *program }

// startReplica starts one, with a Lease that runs out sooner than by default,
// and waits until it is ready.
func (h *harness) startReplica(args ...string) *replica {
	h.Helper()
	p := newProgram(h.T, append([]string{
		"-kubeconfig=" + cluster.Kubeconfig(), "-neutron-endpoint=" + h.neutronURL, "-cluster-name=" + testCluster, "-namespaces=" + h.namespace,
		"-leader-elect", "-leader-elect-resource-namespace=" + h.namespace,
		"-leader-elect-lease-duration=4s", "-leader-elect-renew-deadline=2s", "-leader-elect-retry-period=500ms",
		"-health-probe-bind-address=127.0.0.1:0",
	}, args...)...)
	if err := p.Start(); err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGCONT)
		_ = p.Process.Kill()
		_ = p.Wait()
		if h.Failed() {
			h.Logf("the log of process %d:\n%s", p.Process.Pid, &p.log)
		}
	})
	p.waitFor(h.T, `"Serving health"`)
	h.eventually(func() error { return answers(p.readyz(), http.StatusOK, "ok") })
	return &replica{p}
}

// readyz is where a program says that it is ready, once it has said that it does.
func (p *program) readyz() string {
	return regexp.MustCompile(`"Serving health" url="([^"]+)"`).FindStringSubmatch(p.log.String())[1]
}

// answers asks a URL, and reports whether it answers that.
func answers(url string, status int, text string) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body := make([]byte, 4096)
	n, _ := response.Body.Read(body)
	if response.StatusCode != status || !strings.Contains(string(body[:n]), text) {
		return fmt.Errorf("%s answers with %s %q, want %d %q", url, response.Status, body[:n], status, text)
	}
	return nil
}

func (r *replica) works() bool { return strings.Contains(r.log.String(), `"Starting workers"`) }

// holder returns who has the lead.
func (h *harness) holder() string {
	lease, err := h.kube.CoordinationV1().Leases(h.namespace).Get(h.Context(), controllerName, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// TestHandOver: of two processes one works; the other takes over when it ends,
// however it ends, and has nothing to do for what is as it should be.
func TestHandOver(t *testing.T) {
	for name, test := range map[string]struct {
		signal   syscall.Signal
		atMost   time.Duration // half a minute beyond what it takes, for slow machines
		released bool
	}{
		"a clean stop gives the lease back": {syscall.SIGTERM, 30 * time.Second, true},
		"a kill lets it run out":            {syscall.SIGKILL, 36 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			first := h.startReplica()
			first.waitFor(t, `"Starting workers"`)
			second := h.startReplica()
			h.create("example", "10.0.0.0/24", "")
			before := h.waitReady("example")
			if second.works() {
				t.Fatal("both work")
			}
			wasHolder := h.holder()
			h.forgetRequests()

			stopped := time.Now()
			if err := first.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			_ = first.Wait()
			if released := h.holder() != wasHolder; released != test.released {
				t.Errorf("when the process has ended, the lease was given back: %v, want %v", released, test.released)
			}
			second.waitFor(t, `"Starting workers"`)
			took := time.Since(stopped)
			t.Logf("it took %v", took)
			if took > test.atMost {
				t.Errorf("it took %v until the second one worked, want at most %v", took, test.atMost)
			}

			h.create("another", "10.0.1.0/24", "")
			h.waitReady("another")
			if after := h.get("example"); after.ResourceVersion != before.ResourceVersion {
				t.Errorf("the Network that was there was written: %v → %v", before.Status, after.Status)
			}
			var writes []string
			for _, request := range h.neutronRequests() {
				if request.Method != http.MethodGet {
					writes = append(writes, request.Method+" "+request.Path)
				}
			}
			if diff := cmp.Diff([]string{"POST /v2.0/networks", "POST /v2.0/subnets"}, writes); diff != "" {
				t.Errorf("what Neutron was asked for (-for the new one +in fact):\n%s", diff)
			}
			h.wantCounts(2, 2)
		})
	}
}

// TestLostLease: a process that finds the lease in other hands ends at once, and
// makes nothing twice.
func TestLostLease(t *testing.T) {
	h := newHarness(t)
	first := h.startReplica()
	first.waitFor(t, `"Starting workers"`)
	second := h.startReplica()
	if err := first.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	second.waitFor(t, `"Starting workers"`)
	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")
	log := first.log.String()

	if err := first.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := first.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("ended with %v, want exit code 1", err)
	}
	if said := strings.TrimPrefix(first.log.String(), log); !strings.Contains(said, "Lost the lease") || strings.Contains(said, `"Applied step"`) {
		t.Errorf("said, after it woke up:\n%s\nwant that it has lost the lease, and nothing done", said)
	}
	h.wantCounts(1, 1)
}

// TestStandbyStops: a process that waits for the lead ends when it is asked.
func TestStandbyStops(t *testing.T) {
	h := newHarness(t)
	first := h.startReplica()
	first.waitFor(t, `"Starting workers"`)
	second := h.startReplica()
	wasHolder := h.holder()
	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if h.holder() != wasHolder || second.works() {
		t.Error("it has taken the lead")
	}
}

// TestShutdownTimeoutKeepsLease: a process that had to give up a request leaves the Lease to expire.
func TestShutdownTimeoutKeepsLease(t *testing.T) {
	h := newHarness(t)
	reached := h.holdCreateNetwork()
	first := h.startReplica("-shutdown-timeout=100ms")
	first.waitFor(t, `"Starting workers"`)
	h.create("example", "10.0.0.0/24", "")
	release := <-reached
	defer close(release)
	holder := h.holder()
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := first.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("ended with %v, want exit code 1", err)
	}
	if h.holder() != holder {
		t.Errorf("the Lease is held by %q, want it to be left to %q", h.holder(), holder)
	}
}

// TestNoLease: a process that cannot have the lead is not ready, and says why.
func TestNoLease(t *testing.T) {
	h := newHarness(t)
	p := newProgram(t, "-kubeconfig="+cluster.Kubeconfig(), "-neutron-endpoint="+h.neutronURL, "-cluster-name="+testCluster, "-namespaces="+h.namespace,
		"-leader-elect", "-leader-elect-resource-namespace=does-not-exist", "-health-probe-bind-address=127.0.0.1:0")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	p.waitFor(t, "Error initially creating lease lock")
	if err := answers(p.readyz(), http.StatusServiceUnavailable, "waiting: the Lease does-not-exist/samplecrd-controller"); err != nil {
		t.Error(err)
	}
}

// TestStandbyRefreshesCache: a process that takes over does not take for done what it saw
// in Neutron before a former leader changed it.
func TestStandbyRefreshesCache(t *testing.T) {
	h := newHarness(t)
	stop := h.startController()
	h.create("example", "10.0.0.0/24", "10.0.0.1")
	h.waitReady("example")
	ctx, cancel := context.WithCancel(t.Context())
	standby, start := h.newController(ctx)
	start()
	if !standby.WarmUp(ctx) {
		t.Fatal("the caches are not filled")
	}
	h.edit("example", "10.0.0.0/24", "10.0.0.2")
	h.eventually(func() error { return h.isReadyNow("example") })
	stop()
	h.edit("example", "10.0.0.0/24", "10.0.0.1")

	ended := make(chan error, 1)
	go func() { ended <- standby.Run(ctx, 1, time.Minute) }()
	h.eventually(func() error { return h.isReadyNow("example") })
	h.wantNeutron("example", "10.0.0.0/24", "10.0.0.1")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

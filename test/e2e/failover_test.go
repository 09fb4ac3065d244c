package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// leader returns the pod whose process has the Lease.
func leader(ctx context.Context) (pod string, err error) {
	identity, _, err := tryKubectl(ctx, "", "get", "lease", "-n", "kube-system", controller, "-o", "jsonpath={.spec.holderIdentity}")
	pod, _, _ = strings.Cut(identity, "_")
	return pod, err
}

// oneLeads checks that both replicas are ready, that one of them leads, and that the
// Service and the PodDisruptionBudget select both.
func (n *node) oneLeads(t *testing.T) {
	pods := n.available(t, 2)
	n.prints(t, "2 1", "get", "pdb", "-n", system, controller, "-o", "jsonpath={.status.currentHealthy} {.status.disruptionsAllowed}")
	n.prints(t, "true true", "get", "endpointslices", "-n", system, "-l", "kubernetes.io/service-name="+controller+"-metrics",
		"-o", "jsonpath={.items[*].endpoints[*].conditions.ready}")
	if first, err := leader(t.Context()); err != nil || first != pods[0] && first != pods[1] {
		t.Errorf("%q leads (%v), want one of %v", first, err, pods)
	}
}

// mustSurvive does something that must not touch the networks in Neutron. A Network that
// is created meanwhile becomes ready, and the controller changes Networks as before. They
// stay until the end of the test, because a new leader delays deletions for a while.
func (n *node) mustSurvive(t *testing.T, c *cloud, what string, run func(createAnother func())) {
	t.Helper()
	before, another := "before-"+what, "while-"+what
	n.apply(t, before, "10.5.0.1")
	n.ready(t, before)
	content := c.content(t)
	run(func() { n.apply(t, another, "10.5.0.1") })
	n.available(t, 2)
	n.ready(t, another)
	c.wantUntouched(t, content)
	n.apply(t, before, "10.5.0.2")
	n.ready(t, before)
}

// leaderDeleted deletes the pod of the leader, which then shuts down.
func (n *node) leaderDeleted(t *testing.T, c *cloud) {
	n.mustSurvive(t, c, "deleted", func(createAnother func()) {
		first, err := leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n.kubectl(t, "delete", "pod", "-n", system, first, "--wait=false")
		until(t, 10*time.Second, "another pod leads", func(ctx context.Context) error {
			now, err := leader(ctx)
			if err == nil && (now == first || now == "") {
				err = fmt.Errorf("the leader is %q", now)
			}
			return err
		})
		createAnother()
	})
}

// upgradeAndBack upgrades to another version, and downgrades again.
func (n *node) upgradeAndBack(t *testing.T, c *cloud) {
	version := func() string {
		pod := n.available(t, 2)[0]
		return n.kubectl(t, "exec", "-n", system, pod, "--", "/"+controller, "-version") // the image has no shell
	}
	first := version()
	n.mustSurvive(t, c, "upgrade", func(createAnother func()) {
		n.kubectl(t, "set", "image", "-n", system, "deployment/"+controller, "controller="+upgrade)
		createAnother()
	})
	if second := version(); second == first {
		t.Errorf("both images have the version %s", first)
	}
	n.mustSurvive(t, c, "downgrade", func(createAnother func()) {
		n.kubectl(t, "apply", "-k", "deploy/overlays/openstack")
		createAnother()
	})
	if third := version(); third != first {
		t.Errorf("the version is %s, want %s again", third, first)
	}
}

// nodeKilled kills all processes of the node, like a power failure.
func (n *node) nodeKilled(t *testing.T, c *cloud) {
	n.mustSurvive(t, c, "node", func(createAnother func()) {
		restarted := slices.Concat(podNames[:len(podNames)-1], []string{"jsonpath={.items[*].status.containerStatuses[*].restartCount}"})
		n.prints(t, "0 0", restarted...)
		kubelet, containerd := n.kill(t, "kubelet"), n.kill(t, "containerd")
		if count := n.killContainers(t); count < 4 {
			t.Errorf("%d processes of containers were killed, want at least two for each of two pods", count)
		}
		until(t, 30*time.Second, "kubelet is started again", kubelet)
		until(t, 30*time.Second, "containerd is started again", containerd)
		createAnother()
		n.prints(t, "1 1", restarted...)
	})
}

package e2e

import (
	"os"
	"strings"
	"testing"
	"time"
)

// The parts of TestEndToEnd depend on each other, so the first failure ends the test.
func TestEndToEnd(t *testing.T) {
	if os.Getenv("NODE_RUN_FOLDER") == "" {
		t.Skip("make e2e runs this test on a node")
	}
	if err := os.Chdir("../.."); err != nil {
		t.Fatal(err)
	}
	n := newNode()
	n.showOnFailure(t)
	n.kubectl(t, "create", "namespace", home)
	part(t, "without an OpenStack", n.embedded)
	part(t, "with an OpenStack", n.openStack)
}

// part runs a part of the test, and ends the test if it fails.
func part(t *testing.T, name string, run func(*testing.T)) {
	t.Helper()
	begun := time.Now()
	if !t.Run(name, run) {
		t.FailNow()
	}
	t.Logf("%6.1f s  %s", time.Since(begun).Seconds(), name)
}

// embedded tests deploy/overlays/embedded, which works in every cluster.
func (n *node) embedded(t *testing.T) {
	begun := time.Now()
	part(t, "two commands install it", func(t *testing.T) {
		n.kubectl(t, "apply", "-f", "crd/")
		n.kubectl(t, "apply", "-k", "deploy/overlays/embedded")
		n.available(t, 1)
	})
	part(t, "pods have no rights on the node", n.podsAreRestricted)
	part(t, "walkthrough", func(t *testing.T) { n.walkthrough(t, nil) })
	part(t, "a plan in the pod", n.planInPod)
	part(t, "nothing is forbidden", func(t *testing.T) { n.nothingForbidden(t, begun) })
	part(t, "uninstall everything", func(t *testing.T) { n.uninstall(t, nil, "-k", "deploy/overlays/embedded") })
}

// planInPod: plan has the flags of the controller in whose pod it runs.
func (n *node) planInPod(t *testing.T) {
	plan := n.kubectl(t, "exec", "-n", system, "deploy/"+controller, "--", "/"+controller, "plan")
	if !strings.HasPrefix(plan, "Nothing to do.") {
		t.Errorf("the plan in a pod, after a walkthrough: %s", plan)
	}
}

// openStack tests deploy/overlays/openstack.
func (n *node) openStack(t *testing.T) {
	c := startCloud(t, n.address)
	begun := time.Now()
	part(t, "pods wait for the Secret", func(t *testing.T) { n.installWithSecret(t, c) })
	part(t, "two replicas, one leads", n.oneLeads)
	part(t, "walkthrough", func(t *testing.T) { n.walkthrough(t, c) })
	part(t, "a plan in a pod", n.planInPod)
	part(t, "a Deployment gets a Network and loses it", n.deploymentGetsNetwork)
	part(t, "secrets appear nowhere", n.wantNoSecrets)
	part(t, "the leader's pod is deleted", func(t *testing.T) { n.leaderDeleted(t, c) })
	part(t, "upgrade and back", func(t *testing.T) { n.upgradeAndBack(t, c) })
	part(t, "the node is killed", func(t *testing.T) { n.nodeKilled(t, c) })
	part(t, "secrets appear nowhere after that", n.wantNoSecrets)
	part(t, "nothing is forbidden", func(t *testing.T) { n.nothingForbidden(t, begun) })
	part(t, "each right is used", func(t *testing.T) { n.allUsed(t, begun) })
	part(t, "uninstall everything", func(t *testing.T) { n.uninstall(t, c, "-f", installYAML) })
}

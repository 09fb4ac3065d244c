package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The parts of TestEndToEnd are the steps of an operator. They depend on each other,
// so the first failure ends the test.
func TestEndToEnd(t *testing.T) {
	t.Chdir(root(t))
	c := connect(t)
	// The test deletes all Networks, so it refuses a cluster that has some.
	if err := c.nothingLeft(t.Context()); err != nil {
		t.Fatalf("the controller, or a part of it, is already installed: %v", err)
	}
	c.namespace(t, home)
	c.keepLogs(t)
	c.showOnFailure(t)
	t.Cleanup(func() { c.summary(t) })
	part(t, "without an OpenStack", c.embedded)
	part(t, "with an OpenStack", c.openStack)
	part(t, "for some namespaces", c.someNamespaces)
}

// part runs a part of the test, and ends the test if it fails.
func part(t *testing.T, name string, run func(*testing.T)) {
	t.Helper()
	if !t.Run(name, run) {
		t.FailNow()
	}
}

// summary ends the log with the timings, and with the parts that did not run.
func (c *cluster) summary(t *testing.T) {
	t.Log("Measured:\n" + strings.Join(c.timings, "\n"))
	switch {
	case t.Failed():
		t.Log("NOT RUN: the parts after the one that failed")
	case len(c.notRun) > 0:
		t.Log("NOT RUN:\n" + strings.Join(c.notRun, "\n"))
	default:
		t.Log("No part was left out.")
	}
}

// embedded tests deploy/overlays/embedded, which works in every cluster.
func (c *cluster) embedded(t *testing.T) {
	used := c.watchRights(t)
	part(t, "two commands install it", func(t *testing.T) {
		begun := time.Now()
		c.kubectl(t, "apply", "-f", "crd/")
		c.kubectl(t, "apply", "-k", c.overlay(t, "embedded", c.image))
		c.available(t, 1, "")
		c.timed(t, "kubectl apply -f crd/ and -k deploy/overlays/embedded, until available", time.Since(begun))
	})
	part(t, "pods have no rights on the node", c.podsAreRestricted)
	part(t, "walkthrough", func(t *testing.T) { c.walkthrough(t, home, nil) })
	part(t, "nothing is forbidden", used.nothingForbidden)
	part(t, "uninstall everything", func(t *testing.T) { c.uninstall(t, "embedded", nil) })
}

// openStack tests deploy/overlays/openstack.
func (c *cluster) openStack(t *testing.T) {
	o := c.startCloud(t)
	used := c.watchRights(t)
	part(t, "pods wait for the Secret", func(t *testing.T) { c.installWithSecret(t, "openstack", o) })
	part(t, "two replicas, one leads", c.oneLeads)
	d := &drift{cluster: c, cloud: o}
	part(t, "a network is changed in Neutron", d.begin)
	part(t, "walkthrough", func(t *testing.T) { c.walkthrough(t, home, o) })
	part(t, "metrics for authorized clients", c.metricsOverHTTPS)
	part(t, "users", c.users)
	part(t, "the change is reverted", d.repaired)
	part(t, "it is changed again", d.begin)
	part(t, "a Deployment gets a Network and loses it", func(t *testing.T) { c.deploymentGetsNetwork(t, home, true) })
	part(t, "the second change is reverted", d.repaired)
	part(t, "an event that repeats is omitted", d.isRecordedOnce)
	part(t, "the leader's pod is deleted", func(t *testing.T) { c.leaderDeleted(t, o) })
	part(t, "the leader is killed", func(t *testing.T) { c.leaderKilled(t, o) })
	part(t, "upgrade and back", func(t *testing.T) { c.upgradeAndBack(t, o) })
	part(t, "an API server that does not stream lists", func(t *testing.T) { c.withoutStreams(t, o) })
	part(t, "the API server is killed", func(t *testing.T) { c.apiServerKilled(t, o) })
	part(t, "the node is killed", func(t *testing.T) { c.nodeKilled(t, o) })
	part(t, "the controller is removed and comes back", func(t *testing.T) { c.removedAndBack(t, o) })
	part(t, "secrets appear nowhere", func(t *testing.T) { c.wantNoSecrets(t, o.secrets()) })
	part(t, "nothing is forbidden", used.nothingForbidden)
	part(t, "each right is used", used.allUsed)
	part(t, "uninstall everything", func(t *testing.T) { c.uninstall(t, "openstack", o) })
}

// someNamespaces tests deploy/overlays/namespaces, which has only Roles.
func (c *cluster) someNamespaces(t *testing.T) {
	o := c.startCloud(t)
	used := c.watchRights(t)
	for _, namespace := range []string{"a", "b", "c"} {
		c.namespace(t, namespace)
	}
	part(t, "install it", func(t *testing.T) { c.installWithSecret(t, "namespaces", o, "a", "b") })
	for _, namespace := range []string{"a", "b"} {
		part(t, "walkthrough in "+namespace, func(t *testing.T) { c.walkthrough(t, namespace, o) })
		part(t, "a Deployment in "+namespace, func(t *testing.T) { c.deploymentGetsNetwork(t, namespace, false) })
	}
	part(t, "other namespaces are left alone", func(t *testing.T) { c.leftAlone(t, "c", o) })
	part(t, "metrics on loopback", c.metricsOnLoopback)
	part(t, "secrets appear nowhere", func(t *testing.T) { c.wantNoSecrets(t, o.secrets()) })
	part(t, "nothing is forbidden", used.nothingForbidden)
	part(t, "the Roles have the rules of the ClusterRole", func(t *testing.T) { c.sameRules(t, "a", "b") })
	part(t, "a watched namespace is deleted with a Network in it", func(t *testing.T) { c.namespaceDeleted(t, "a", o) })
	part(t, "uninstall everything", func(t *testing.T) { c.uninstall(t, "namespaces", o) })
}

// startCloud starts the OpenStack of a part of the test, or takes the real one.
func (c *cluster) startCloud(t *testing.T) *cloud {
	t.Helper()
	switch {
	case c.address == "":
		c.cannot(t, "pods must reach a Neutron in this test: set NEUTRON_ADDRESS to an address of this machine")
	case os.Getenv("OPENSTACK_CLOUDS") != "":
		return startReal(t, c.address)
	}
	return startEmbedded(t, c.address)
}

// root returns the root of the repository. `make e2e` runs this there, `go test` in
// the folder of the package.
func root(t *testing.T) string {
	t.Helper()
	for _, folder := range []string{".", "../.."} {
		if _, err := os.Stat(filepath.Join(folder, "deploy", "base")); err == nil {
			return folder
		}
	}
	t.Fatal("deploy/base is not found: run this in the root of the repository")
	return ""
}

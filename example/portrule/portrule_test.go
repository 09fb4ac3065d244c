package main

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"

	"github.com/samplecrd/network-controller/test/running"
)

const web = serverAddress + ":8080"

// TestAccess: what a PortRule does, with the permissions of deploy/ alone.
func TestAccess(t *testing.T) {
	m := newMachine(t, "access")
	for _, address := range []string{web, "udp:" + web, "[fd77::1]:8080", "10.77.0.1:9090", "10.77.0.1:7070"} {
		m.serve(address)
	}
	m.agent()
	m.eventually(m.passes(firstClient, web))

	m.rule("web", "{port: 8080, sources: [10.77.0.2/32, 10.77.0.2/31, 192.0.2.0/24]}")
	m.rule("other-host", "{port: 9090, host: 192.0.2.1, sources: [192.0.2.0/24]}")
	m.eventually(m.applied("web", "True 1"), m.applied("other-host", "True 1"))
	m.eventually(m.passes(firstClient, web), m.passes(secondClient, web),
		m.rejected("fd77::2", "[fd77::1]:8080"), // no IPv6 source
		m.passes(firstClient, "10.77.0.1:9090"), // the rule is about another host
		m.passes(firstClient, "10.77.0.1:7070")) // no rule names it

	// An edit while it is in use does not end a connection.
	connection, err := m.dial(firstClient, web)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	m.rule("web", "{port: 8080, sources: [10.77.0.3/32]}")
	m.eventually(m.applied("web", "True 2"), m.rejected(firstClient, web), m.passes(secondClient, web))
	if err := echo(connection); err != nil {
		t.Errorf("the connection from before has ended: %v", err)
	}

	// A second rule adds sources to a port.
	m.rule("web-v6", `{port: 8080, host: "fd77::1", sources: ["fd77::/64"]}`)
	m.eventually(m.applied("web-v6", "True 1"), m.passes("fd77::2", "[fd77::1]:8080"), m.rejected(firstClient, web))

	// UDP is not TCP: a rule for one does not concern the other.
	m.eventually(m.passes(firstClient, "udp:"+web))
	m.rule("udp", "{port: 8080, protocol: udp, host: 10.77.0.1, sources: [10.77.0.2/32]}")
	m.eventually(m.applied("udp", "True 1"), m.passes(firstClient, "udp:"+web), m.rejected(secondClient, "udp:"+web),
		m.rejected(firstClient, web), m.passes(secondClient, web))

	m.Do("delete", "ports", "web", "web-v6", "other-host", "udp")
	m.eventually(m.passes(firstClient, web), func() error {
		if rules := m.ruleset(); rules != "" {
			return fmt.Errorf("without a PortRule, the table exists:\n%s", rules)
		}
		return nil
	})
}

// TestCapabilities: the agent needs no capability but NET_ADMIN, as deploy/ grants it.
func TestCapabilities(t *testing.T) {
	m := newMachine(t, "capabilities")
	m.inside(m.node, func() error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		data := [2]unix.CapUserData{{Effective: 1 << unix.CAP_NET_ADMIN, Permitted: 1 << unix.CAP_NET_ADMIN}}
		if err := unix.Capset(&header, &data[0]); err != nil { // of this thread, which ends
			return err
		}
		a := access{rule: "web", port: port{protocol: "tcp", number: 8080}}
		return (&nft{}).Sync(t.Context(), []access{a})
	})
	if !strings.Contains(m.ruleset(), "dport 8080") {
		t.Errorf("the rules are\n%s", m.ruleset())
	}
}

// TestStops: an agent writes once for each rule, and after a restart nothing, neither to the
// kernel nor to Kubernetes. While it is down, rules stay. A rule that is deleted meanwhile is
// noticed by the first list. With -remove-rules, an agent leaves nothing.
func TestStops(t *testing.T) {
	m := newMachine(t, "stops")
	m.serve(web)
	page := httptest.NewServer(m.page.Handler())
	t.Cleanup(page.Close)
	m.agent()
	m.rule("web", `{port: 8080, sources: [10.77.0.3/32, 0.0.0.0/1, 224.0.0.0/3, "fd00::/8"]}`)
	m.rule("dns", "{port: 53, protocol: udp, host: 10.77.0.1}")
	m.eventually(m.applied("web", "True 1"), m.applied("dns", "True 1"), func() error {
		journeys, err := running.Get(page.URL + "/api/journeys?controller=Nodes&key=" + m.node)
		if err == nil && !strings.Contains(journeys, "patch ports status") {
			err = fmt.Errorf("the debug page shows %s", journeys)
		}
		return err
	})
	m.stop()
	versions := []string{"get", "ports", "-o", "jsonpath={.items[*].metadata.resourceVersion}"}
	before, version := m.ruleset(), m.Do(versions...)
	m.agent()
	m.stop() // after the sync has ended
	if after := m.ruleset(); after != before {
		t.Errorf("the agent has replaced\n%sby\n%s", before, after)
	}
	if after := m.Do(versions...); after != version || m.writes.Load() != 2 {
		t.Errorf("for 2 rules, the agents wrote %d times; the versions are %s and were %s", m.writes.Load(), after, version)
	}

	m.rule("web", "{port: 8080, sources: [10.77.0.3/32]}")
	m.agent()
	m.eventually(m.applied("web", "True 2"), m.rejected(firstClient, web))
	m.stop()
	m.Do("delete", "ports", "web")
	m.eventually(m.rejected(firstClient, web))
	m.removeRules = true
	m.agent()
	m.eventually(m.passes(firstClient, web))
	m.stop()
	m.eventually(m.applied("dns", ""))
	if rules := m.ruleset(); rules != "" {
		t.Errorf("the agent has left\n%s", rules)
	}
}

// TestDrift: what somebody else does to the table is undone at once, and tables of others stay.
func TestDrift(t *testing.T) {
	m := newMachine(t, "drift")
	m.serve(web)
	m.nft("add table inet foreign; add chain inet foreign input { type filter hook input priority 0; }; " +
		"add rule inet foreign input tcp dport 22 counter accept")
	foreign := m.nft("list", "table", "inet", "foreign")
	m.agent()
	m.rule("web", "{port: 8080, sources: [10.77.0.3/32]}")
	m.eventually(m.applied("web", "True 1"), m.rejected(firstClient, web))
	handle := func() string { // changes when the table is replaced
		_, after, _ := strings.Cut(m.ruleset(), "table inet portrule")
		line, _, _ := strings.Cut(after, "\n")
		return line
	}
	for _, drift := range []string{
		"delete table inet portrule",
		"flush chain inet portrule input",
		"insert rule inet portrule input tcp dport 8080 accept",
		"add chain inet portrule other",
		"add chain inet portrule input { policy drop; }",
	} {
		before := handle()
		m.nft(drift)
		m.eventually(func() error {
			if after := handle(); after == before || after == "" {
				return fmt.Errorf("%q was not undone", drift)
			}
			return nil
		}, m.rejected(firstClient, web), m.passes(secondClient, web))
	}
	m.stop()
	if after := m.nft("list", "table", "inet", "foreign"); after != foreign {
		t.Errorf("the table of others was\n%sand is\n%s", foreign, after)
	}
	if writes := m.writes.Load(); writes != 1 {
		t.Errorf("the agent wrote %d times to Kubernetes, want 1", writes)
	}
}

// TestTwoNodes: two agents keep their shares of one rule, and their entries of one status.
func TestTwoNodes(t *testing.T) {
	a, b := newMachine(t, "a"), newMachine(t, "b")
	for _, m := range []*machine{a, b} {
		m.serve(web)
		m.agent()
	}
	a.rule("web", "{port: 8080, sources: [10.77.0.3/32], nodeSelector: {disk: ssd}}")
	for _, m := range []*machine{a, b} {
		m.eventually(m.applied("web", "True 1"), m.rejected(firstClient, web), m.passes(secondClient, web))
	}
	// The labels of a node decide, too.
	b.Do("label", "node", b.node, "disk=hdd", "--overwrite")
	b.eventually(b.applied("web", ""), b.passes(firstClient, web))
	a.eventually(a.applied("web", "True 1"), a.rejected(firstClient, web))
	a.rule("web", "{port: 8080, sources: [10.77.0.3/32], nodeSelector: {disk: hdd}}")
	b.eventually(b.applied("web", "True 2"), b.rejected(firstClient, web))
	a.eventually(a.applied("web", ""), a.passes(firstClient, web))
	// A Node that is deleted does not remove rules: its labels are unknown.
	b.Do("delete", "node", b.node)
	b.nft("list", "table", "inet", "portrule")
	if a.writes.Load() != 2 || b.writes.Load() != 3 {
		t.Errorf("the agents wrote %d and %d times, want 2 and 3", a.writes.Load(), b.writes.Load())
	}
}

// TestForbidden: an agent that may not write the status applies rules nevertheless, and writes
// the status once it may.
func TestForbidden(t *testing.T) {
	m := newMachine(t, "forbidden")
	m.serve(web)
	m.Do("create", "clusterrole", "reader", "--verb=list,watch", "--resource=ports.firewalld.fedoraproject.org,nodes")
	m.Do("create", "clusterrolebinding", "reader", "--clusterrole=reader", "--user=guest")
	m.config = cluster.RESTConfig()
	m.config.Impersonate = rest.ImpersonationConfig{UserName: "guest"}
	m.agent()
	m.rule("web", "{port: 8080, sources: [10.77.0.3/32]}")
	m.eventually(m.rejected(firstClient, web), m.passes(secondClient, web), m.applied("web", ""))
	m.Do("create", "clusterrolebinding", "guest", "--clusterrole=portrule", "--user=guest")
	m.eventually(m.applied("web", "True 1"))
}

// TestHostileInput: the API server rejects what no firewall understands, and a huge list is
// one transaction.
func TestHostileInput(t *testing.T) {
	m := newMachine(t, "hostile")
	m.serve(web)
	m.agent()
	for spec, want := range map[string]string{
		"{port: 0}":                                                "spec.port",
		"{port: 65536}":                                            "spec.port",
		"{port: 80, protocol: icmp}":                               "spec.protocol",
		"{port: 80, host: web.example}":                            "must be an IPv4 or IPv6 address",
		"{port: 80, sources: [10.0.0.1]}":                          "must be a CIDR",
		`{port: 80, sources: ["::ffff:0:0/96"]}`:                   "must be a CIDR",
		`{port: 80, sources: ["10.0.0.0/8\" accept"]}`:             "must be a CIDR",
		"{port: 80, sources: [" + strings.Repeat("a,", 257) + "]}": "must have at most 256 items",
	} {
		if err := m.TryApply(portRule("hostile", spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is rejected with %v, want %q", spec, err, want)
		}
	}
	var huge strings.Builder
	for rule := range 20 {
		var sources []string
		for i := range 256 { // every second /24, so that nothing can be merged
			sources = append(sources, fmt.Sprintf("%d.%d.%d.0/24", 20+rule, i/128, i%128*2))
		}
		spec := fmt.Sprintf("{port: 8080, sources: [%s]}", strings.Join(sources, ","))
		huge.WriteString("---\n" + portRule(fmt.Sprintf("huge-%d", rule), spec) + "\n")
	}
	m.Apply(huge.String())
	m.eventually(m.applied("huge-19", "True 1"), m.rejected(firstClient, web))         // the last one, so all of them
	m.rule("web", "{port: 8080, sources: [10.77.0.0/24, 10.77.0.2/32, 10.77.0.0/25]}") // they overlap
	m.eventually(m.passes(firstClient, web))
}

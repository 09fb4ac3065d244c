package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/samplecrd/network-controller/pkg/glass"
	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/running"
)

var cluster *controlplane.Cluster

// The tests need root, for network namespaces.
func TestMain(m *testing.M) {
	if os.Getuid() != 0 {
		fmt.Fprintln(os.Stderr, "NOTHING WAS TESTED: the tests of example/portrule need root, for network namespaces")
		if os.Getenv("TEST_REQUIRE_ALL") == "yes" {
			os.Exit(1)
		}
		return
	}
	resyncPeriod = time.Hour                                           // what is tested is notified
	_ = os.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent") // the firewalld of this machine is not touched
	options := controlplane.Options{Apply: []string{"example/portrule/crd.yaml", "example/portrule/deploy"}}
	os.Exit(controlplane.RunTests(m, options, func(c *controlplane.Cluster) { cluster = c }))
}

// machine is a node with an agent. Clients are in another network namespace, at the addresses
// 10.77.0.2 and 10.77.0.3.
type machine struct {
	running.Kubectl
	node   string       // the name of the Node and of its network namespace
	client string       // the clients' network namespace
	config *rest.Config // of the agent: with the permissions of deploy/
	stop   func()       // ends the agent
	writes atomic.Int64 // of the agent, to Kubernetes

	removeRules bool // with the agent
	page        *glass.Page
}

const serverAddress, firstClient, secondClient = "10.77.0.1", "10.77.0.2", "10.77.0.3"

func newMachine(t *testing.T, name string) *machine {
	t.Helper()
	m := &machine{Kubectl: running.Kubectl{T: t, Cluster: cluster}, stop: func() {}}
	m.node = fmt.Sprintf("%s-%d", name, os.Getpid())
	m.client = m.node + "-clients"
	m.page = glass.New(glass.Process{Name: "portrule"})
	kubeconfig, err := cluster.KubeconfigFor(t.Context(), "portrule", "portrule")
	if err != nil {
		t.Fatal(err)
	}
	if m.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		t.Fatal(err)
	}
	for _, netns := range []string{m.node, m.client} {
		m.ip("netns", "add", netns)
		t.Cleanup(func() { m.ip("netns", "delete", netns) })
		m.ip("-n", netns, "link", "set", "lo", "up")
	}
	m.ip("-n", m.node, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", m.client)
	for _, address := range [][2]string{
		{m.node, serverAddress + "/24"}, {m.client, firstClient + "/24"}, {m.client, secondClient + "/24"},
		{m.node, "fd77::1/64"}, {m.client, "fd77::2/64"},
	} {
		m.ip("-n", address[0], "address", "add", address[1], "dev", "eth0", "nodad")
	}
	m.ip("-n", m.node, "link", "set", "eth0", "up")
	m.ip("-n", m.client, "link", "set", "eth0", "up")
	m.Apply(fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %q, labels: {disk: ssd}}", m.node))
	t.Cleanup(func() {
		m.stop()
		if t.Failed() {
			t.Logf("the rules of %s:\n%s", m.node, m.ruleset())
		}
	})
	return m
}

// ip runs the program ip and returns its output.
func (m *machine) ip(args ...string) string {
	m.Helper()
	output, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		m.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

// nft runs the program nft on the node.
func (m *machine) nft(args ...string) string {
	m.Helper()
	return m.ip(append([]string{"netns", "exec", m.node, "nft", "-a"}, args...)...)
}

// ruleset returns the rules of the node as text. Handles show whether a rule was replaced.
func (m *machine) ruleset() string {
	m.Helper()
	return m.nft("list", "ruleset")
}

func portRule(name, spec string) string {
	return "apiVersion: firewalld.fedoraproject.org/v1\nkind: PortRule\nmetadata: {name: " + name + "}\nspec: " + spec
}

// rule applies a PortRule.
func (m *machine) rule(name, spec string) {
	m.Helper()
	m.Apply(portRule(name, spec))
}

// agent starts an agent. It returns when the agent has synced once.
func (m *machine) agent() {
	m.Helper()
	config := rest.CopyConfig(m.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				m.writes.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	config.Wrap(m.page.Kubernetes)
	netns, err := os.Open("/run/netns/" + m.node)
	if err != nil {
		m.Fatal(err)
	}
	kernel := &nft{netns: int(netns.Fd())}
	var syncs atomic.Int64
	counted := func(ctx context.Context, desired []access) error {
		defer syncs.Add(1)
		return kernel.Sync(ctx, desired)
	}
	agent := options{
		node: m.node, removeRules: m.removeRules, page: m.page,
		firewalls: []func(context.Context, []access) error{counted, syncFirewalld}, watch: kernel.Watch,
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, config, agent) }()
	m.stop = func() {
		m.stop = func() {}
		cancel()
		if err := <-ended; err != nil {
			m.Errorf("the agent ended with %v", err)
		}
		_ = netns.Close()
	}
	m.eventually(func() error {
		if syncs.Load() == 0 {
			return errors.New("the agent has not synced yet")
		}
		return nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// eventually waits until all checks pass.
func (m *machine) eventually(checks ...func() error) {
	m.Helper()
	for _, check := range checks {
		running.Eventually(m.T, check)
	}
}

// inside calls a function in a network namespace.
func (m *machine) inside(netns string, f func() error) {
	m.Helper()
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		file, err := os.Open("/run/netns/" + netns)
		if err == nil {
			err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
			_ = file.Close()
		}
		if err == nil {
			err = f()
		}
		result <- err
	}()
	if err := <-result; err != nil {
		m.Fatal(err)
	}
}

// serve echoes what arrives at an address of the node, with TCP, or UDP after "udp:".
func (m *machine) serve(address string) {
	m.Helper()
	m.inside(m.node, func() error {
		if udp, ok := strings.CutPrefix(address, "udp:"); ok {
			server, err := net.ListenPacket("udp", udp)
			if err == nil {
				m.Cleanup(func() { _ = server.Close() })
				go echoPackets(server)
			}
			return err
		}
		server, err := net.Listen("tcp", address)
		if err == nil {
			m.Cleanup(func() { _ = server.Close() })
			go echoConnections(server)
		}
		return err
	})
}

func echoPackets(server net.PacketConn) {
	for buffer := make([]byte, 1); ; {
		_, from, err := server.ReadFrom(buffer)
		if err != nil {
			return
		}
		_, _ = server.WriteTo(buffer, from)
	}
}

func echoConnections(server net.Listener) {
	for {
		connection, err := server.Accept()
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(connection, connection) }()
	}
}

// dial connects from an address of the clients.
func (m *machine) dial(from, to string) (connection net.Conn, failed error) {
	m.Helper()
	dialer, network := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 10 * time.Second}, "tcp"
	if udp, ok := strings.CutPrefix(to, "udp:"); ok {
		dialer.LocalAddr, network, to = &net.UDPAddr{IP: net.ParseIP(from)}, "udp", udp
	}
	m.inside(m.client, func() error {
		connection, failed = dialer.DialContext(m.Context(), network, to)
		return nil
	})
	return connection, failed
}

func echo(connection net.Conn) error {
	_ = connection.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := connection.Write([]byte{7}); err != nil {
		return err
	}
	_, err := io.ReadFull(connection, make([]byte, 1))
	return err
}

// passes returns an error if a connection does not pass.
func (m *machine) passes(from, to string) func() error {
	return func() error {
		connection, err := m.dial(from, to)
		if err == nil {
			err = echo(connection)
			_ = connection.Close()
		}
		return err
	}
}

// rejected returns an error unless a firewall rejects a connection: without one, a port
// without a listener refuses it.
func (m *machine) rejected(from, to string) func() error {
	return func() error {
		err := m.passes(from, to)()
		if !errors.Is(err, unix.EHOSTUNREACH) && !errors.Is(err, unix.EACCES) {
			return fmt.Errorf("a connection from %s to %s is not rejected: %w", from, to, err)
		}
		return nil
	}
}

// applied returns an error unless the status of a rule has an entry of this node that begins
// with a text: the status, for which generation, and why. Without a text, it has none.
func (m *machine) applied(rule, want string) func() error {
	path := fmt.Sprintf(`jsonpath={range .status.nodes[?(@.node==%q)].conditions[*]}`, m.node) +
		`{.status} {.observedGeneration} {.reason}: {.message}{end}`
	if want == "" {
		want = "$"
	}
	return func() error { return m.Prints("^"+want, "get", "ports", rule, "-o", path) }
}

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
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	clientset "github.com/samplecrd/network-controller/example/portrule/client/clientset/versioned"
	"github.com/samplecrd/network-controller/pkg/glass"
	"github.com/samplecrd/network-controller/test/controlplane"
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
	os.Exit(controlplane.RunTests(m, controlplane.Options{Apply: []string{"example/portrule/crd.yaml", "example/portrule/deploy"}},
		func(c *controlplane.Cluster) { cluster = c }))
}

// machine is a node with an agent. Clients are in another network namespace, at two
// addresses: 10.77.0.2 and 10.77.0.3.
type machine struct {
	*testing.T
	node   string // the name of the Node and of its network namespace
	client string // the clients' network namespace
	stop   func() // ends the agent
	writes *atomic.Int64

	removeRules bool // with the agent
	page        *glass.Page
}

const serverAddress, firstClient, secondClient = "10.77.0.1", "10.77.0.2", "10.77.0.3"

func newMachine(t *testing.T, name string) *machine {
	t.Helper()
	m := &machine{T: t, node: fmt.Sprintf("%s-%d", name, os.Getpid()), stop: func() {}, writes: &atomic.Int64{}, page: new(glass.Page)}
	m.client = m.node + "-clients"
	for _, netns := range []string{m.node, m.client} {
		m.ip("netns", "add", netns)
		t.Cleanup(func() { m.ip("netns", "delete", netns) })
		m.ip("-n", netns, "link", "set", "lo", "up")
	}
	m.ip("-n", m.node, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", m.client)
	m.ip("-n", m.node, "address", "add", serverAddress+"/24", "dev", "eth0")
	for _, address := range []string{firstClient, secondClient} {
		m.ip("-n", m.client, "address", "add", address+"/24", "dev", "eth0")
	}
	m.ip("-n", m.node, "address", "add", "fd77::1/64", "dev", "eth0", "nodad")
	m.ip("-n", m.client, "address", "add", "fd77::2/64", "dev", "eth0", "nodad")
	for _, netns := range []string{m.node, m.client} {
		m.ip("-n", netns, "link", "set", "eth0", "up")
	}
	m.apply(fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %q, labels: {disk: ssd}}", m.node))
	t.Cleanup(func() { m.stop() })
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

// apply applies a manifest, and deletes it after the test.
func (m *machine) apply(manifest string) {
	m.Helper()
	file := filepath.Join(m.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		m.Fatal(err)
	}
	m.kubectl("apply", "--server-side", "--force-conflicts", "-f", file)
	m.Cleanup(func() {
		_, _ = cluster.Kubectl(context.Background(), "delete", "--ignore-not-found", "-f", file) // a Node may be gone
	})
}

func (m *machine) kubectl(args ...string) string {
	m.Helper()
	output, err := cluster.Kubectl(m.Context(), args...)
	if err != nil {
		m.Fatal(err)
	}
	return string(output)
}

// rule applies a PortRule that concerns the nodes of this test.
func (m *machine) rule(name, spec string) {
	m.Helper()
	m.apply(fmt.Sprintf("apiVersion: firewalld.fedoraproject.org/v1\nkind: PortRule\nmetadata: {name: %s}\nspec: %s", name, spec))
}

// agent starts an agent. It returns when the agent has synced once.
func (m *machine) agent(change ...func(*rest.Config)) {
	m.Helper()
	config := cluster.RESTConfig()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				m.writes.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	for _, f := range change {
		f(config)
	}
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

// serve accepts TCP connections to a port of the node, and echoes what it receives.
func (m *machine) serve(address string) {
	m.Helper()
	var listener net.Listener
	m.inside(m.node, func() (err error) {
		listener, err = (&net.ListenConfig{}).Listen(m.Context(), "tcp", address)
		return err
	})
	m.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(connection, connection) }()
		}
	}()
}

// serveUDP echoes datagrams to a port of the node.
func (m *machine) serveUDP(address string) {
	m.Helper()
	var server net.PacketConn
	m.inside(m.node, func() (err error) {
		server, err = (&net.ListenConfig{}).ListenPacket(m.Context(), "udp", address)
		return err
	})
	m.Cleanup(func() { _ = server.Close() })
	go func() {
		buffer := make([]byte, 1)
		for {
			_, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(buffer, from)
		}
	}()
}

// passesUDP returns an error if a datagram does not pass.
func (m *machine) passesUDP(from, to string) func() error {
	return func() error {
		var connection net.Conn
		m.inside(m.client, func() (err error) {
			dialer := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(from)}}
			connection, err = dialer.DialContext(m.Context(), "udp", to)
			return err
		})
		defer func() { _ = connection.Close() }()
		return echo(connection)
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

// dial connects from an address of the clients.
func (m *machine) dial(from, to string) (connection net.Conn, failed error) {
	m.Helper()
	m.inside(m.client, func() error {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 10 * time.Second}
		connection, failed = dialer.DialContext(m.Context(), "tcp", to)
		return nil
	})
	return connection, failed
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

func echo(connection net.Conn) error {
	_ = connection.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := connection.Write([]byte{7}); err != nil {
		return err
	}
	_, err := io.ReadFull(connection, make([]byte, 1))
	return err
}

// rejected returns an error unless a firewall rejects a connection: without one, a port
// without a listener refuses it.
func (m *machine) rejected(from, to string) func() error {
	return func() error {
		connection, err := m.dial(from, to)
		if err == nil {
			_ = connection.Close()
			return fmt.Errorf("a connection from %s to %s passes", from, to)
		}
		if !errors.Is(err, unix.EHOSTUNREACH) && !errors.Is(err, unix.EACCES) {
			return fmt.Errorf("a connection from %s to %s fails with %w, and is not rejected", from, to, err)
		}
		return nil
	}
}

// eventually waits until all checks pass.
func (m *machine) eventually(checks ...func() error) {
	m.Helper()
	deadline, tick := time.After(time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for _, check := range checks {
		for {
			err := check()
			if err == nil {
				break
			}
			select {
			case <-tick.C:
			case <-deadline:
				m.Fatalf("not within a minute: %v\n%s", err, m.ruleset())
			}
		}
	}
}

// ruleset returns the rules of the node as text. Handles show whether a rule was replaced.
func (m *machine) ruleset() string {
	m.Helper()
	return m.ip("netns", "exec", m.node, "nft", "-a", "list", "ruleset")
}

// applied returns an error unless the status of a rule has an entry of this node, with a
// status for a generation of the spec.
func (m *machine) applied(rule, want string) func() error {
	client, err := clientset.NewForConfig(cluster.RESTConfig())
	if err != nil {
		m.Fatal(err)
	}
	return func() error {
		object, err := client.FirewalldV1().PortRules().Get(m.Context(), rule, metav1.GetOptions{})
		got := ""
		for _, condition := range (&Controller{options: options{node: m.node}}).conditions(object) {
			got = fmt.Sprintf("%s %d %s: %s", condition.Status, condition.ObservedGeneration, condition.Reason, condition.Message)
		}
		if err != nil || !strings.HasPrefix(got, want) || want == "" && got != "" {
			return fmt.Errorf("the status of %s for %s is %q (%w), want %q", rule, m.node, got, err, want)
		}
		return nil
	}
}

// asServiceAccount is for agent: it has only the permissions of deploy/.
func asServiceAccount(t *testing.T) func(*rest.Config) {
	t.Helper()
	path, err := cluster.KubeconfigFor(t.Context(), "portrule", "portrule")
	if err != nil {
		t.Fatal(err)
	}
	own, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	return func(config *rest.Config) {
		wrap := config.WrapTransport
		*config = *own
		config.WrapTransport = wrap
	}
}

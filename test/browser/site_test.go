package browser

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/faults"
	"github.com/samplecrd/network-controller/test/internal/process"
	"github.com/samplecrd/network-controller/test/launch"
)

// site is a controller with its page, for one namespace, and a Neutron that can fail.
type site struct {
	testing.TB
	namespace  string
	neutron    *faults.Front
	server     *httptest.Server
	dir        string
	address    string // of the page
	controller *process.Process
}

// sites counts the sites of each namespace.
var sites = map[string]int{}

// newSite starts a controller for a namespace, which it creates. With -count, each time
// has a namespace of its own, since Networks stay in the one before.
func newSite(t testing.TB, namespace string) *site {
	t.Helper()
	if sites[namespace]++; sites[namespace] > 1 {
		namespace = fmt.Sprintf("%s-%d", namespace, sites[namespace])
	}
	s := &site{TB: t, namespace: namespace, dir: t.TempDir(), neutron: faults.New(embedded.New(embedded.Options{}))}
	s.kubectl("create", "namespace", namespace)
	s.server = httptest.NewServer(s.neutron)
	t.Cleanup(s.server.Close)
	var err error
	if s.address, err = launch.FreeAddress(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	s.start()
	t.Cleanup(func() {
		s.controller.Stop(patience)
		if t.Failed() {
			t.Logf("the controller's log:\n%s", s.controller.Log())
		}
	})
	return s
}

// start starts the controller, and waits until it reconciles.
func (s *site) start() {
	s.Helper()
	args := []string{
		built, "-kubeconfig=" + cluster.Kubeconfig(), "-namespaces=" + s.namespace, "-neutron-endpoint=" + s.server.URL,
		"-debug-bind-address=" + s.address, "-resync-period=5s", "-workers=8", "-leader-elect=false",
	}
	var err error
	if s.controller, err = process.Start(s.dir, process.Program{Name: "controller", Args: args}); err != nil {
		s.Fatal(err)
	}
	eventually(s, "the controller works", func() error {
		if !strings.Contains(s.controller.Log(), `"Starting workers"`) {
			return errors.Join(s.controller.Check(), errors.New("not yet"))
		}
		return nil
	})
}

// open opens the page until a test ends.
func (s *site) open(t testing.TB, l look) *tab {
	t.Helper()
	p := openTab(t, "http://"+s.address+"/", l)
	p.waitFor("the page is connected", `document.querySelector('#connection[data-state=open]')`)
	return p
}

func (s *site) kubectl(args ...string) (output string) {
	s.Helper()
	return kubectl(s, append(args, "-n", s.namespace)...)
}

// kubectl runs kubectl, which must succeed.
func kubectl(t testing.TB, args ...string) (output string) {
	t.Helper()
	printed, err := cluster.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, printed)
	}
	return string(printed)
}

// apply applies objects.
func apply(t testing.TB, objects ...string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(objects, "\n---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "apply", "-f", path)
}

// create creates Networks and waits until they are ready.
func (s *site) create(names ...string) {
	s.Helper()
	var networks []string
	for i, name := range names {
		networks = append(networks, fmt.Sprintf("{apiVersion: samplecrd.k8s.io/v1, kind: Network, "+
			"metadata: {name: %s, namespace: %s}, spec: {cidr: 10.0.%d.0/24}}", name, s.namespace, i))
	}
	apply(s, networks...)
	s.kubectl("wait", "network", "--all", "--for=condition=Ready", "--timeout=60s")
}

// setGateway edits a Network.
func (s *site) setGateway(name, gateway string) {
	s.Helper()
	s.kubectl("patch", "network", name, "--type=merge", "-p", `{"spec":{"gateway":"`+gateway+`"}}`)
}

// failEdit lets edits of a Network fail in Neutron, edits it, and waits until that has failed.
func (s *site) failEdit(name, gateway string) (heal func()) {
	s.Helper()
	subnet := s.kubectl("get", "network", name, "-o", "jsonpath={.status.subnetID}")
	heal = s.neutron.Inject(faults.Fault{Method: http.MethodPut, Path: "/subnets/" + subnet, Status: http.StatusServiceUnavailable})
	s.setGateway(name, gateway)
	s.kubectl("wait", "network", name, "--for=condition=Ready=False", "--timeout=60s")
	return heal
}

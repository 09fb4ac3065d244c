package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/faults"
	"github.com/samplecrd/network-controller/test/launch"
	"github.com/samplecrd/network-controller/test/running"
)

// site is a controller with its page, for one namespace, and a Neutron that can fail.
type site struct {
	running.Kubectl
	namespace  string
	neutron    *faults.Front
	server     *httptest.Server
	address    string // of the page
	controller *running.Program
}

// newSite starts a controller for a namespace, which it creates.
func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{
		Kubectl: running.Kubectl{T: t, Cluster: cluster}, namespace: "site-" + rand.String(5),
		neutron: faults.New(embedded.New(embedded.Options{})), address: freeAddress(t),
	}
	s.server = httptest.NewServer(s.neutron)
	t.Cleanup(s.server.Close)
	s.Do("create", "namespace", s.namespace)
	s.start()
	return s
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := launch.FreeAddress(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// start starts the controller, and waits until it reconciles.
func (s *site) start() {
	s.Helper()
	s.controller = running.Start(s, nil, built, "-kubeconfig="+cluster.Kubeconfig(), "-namespaces="+s.namespace,
		"-neutron-endpoint="+s.server.URL, "-debug-bind-address="+s.address, "-resync-period=5s",
		"-workers=8", "-leader-elect=false")
	s.controller.WaitFor(`"Starting workers"`)
}

// open opens the page until a test ends, and follows a Network.
func (s *site) open(t testing.TB, l look, name string) *tab {
	t.Helper()
	p := openTab(t, "http://"+s.address+"/", l)
	p.waitFor("the page is connected", `document.querySelector('#connection[data-state=open]')`)
	p.follow(s.namespace + "/" + name)
	return p
}

// create creates Networks and waits until they are ready.
func (s *site) create(names ...string) {
	s.Helper()
	for i, name := range names {
		s.Apply(fmt.Sprintf("{apiVersion: samplecrd.k8s.io/v1, kind: Network, "+
			"metadata: {name: %s, namespace: %s}, spec: {cidr: 10.0.%d.0/24}}", name, s.namespace, i))
	}
	s.Do("wait", "network", "--all", "-n", s.namespace, "--for=condition=Ready", "--timeout=60s")
}

// setGateway edits a Network.
func (s *site) setGateway(name, gateway string) {
	s.Helper()
	s.Do("patch", "network", "-n", s.namespace, name, "--type=merge", "-p", `{"spec":{"gateway":"`+gateway+`"}}`)
}

// failEdit lets edits of a Network fail in Neutron, edits it, and waits until that has failed.
func (s *site) failEdit(name, gateway, body string) (heal func()) {
	s.Helper()
	subnet := s.Do("get", "network", "-n", s.namespace, name, "-o", "jsonpath={.status.subnetID}")
	heal = s.neutron.Inject(faults.Fault{
		Method: http.MethodPut, Path: "/subnets/" + subnet, Status: http.StatusServiceUnavailable, Body: body,
	})
	s.setGateway(name, gateway)
	s.Do("wait", "network", "-n", s.namespace, name, "--for=condition=Ready=False", "--timeout=60s")
	return heal
}

package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	networkclient "github.com/samplecrd/network-controller/pkg/client/clientset/versioned/typed/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/faults"
	"github.com/samplecrd/network-controller/test/internal/process"
)

// site is a controller with its page, for one namespace, and a Neutron that can fail.
type site struct {
	testing.TB
	namespace string
	networks  networkclient.NetworkInterface
	neutron   *faults.Front
	server    *httptest.Server
	dir       string
	address   string // of the page
	flags     []string

	controller *process.Process
}

// newSite starts a controller for a namespace, which it creates.
func newSite(t testing.TB, namespace string, flags ...string) *site {
	t.Helper()
	s := &site{TB: t, namespace: namespace, dir: t.TempDir(), flags: flags}
	kube, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	networks, err := clientset.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := kube.CoreV1().Namespaces().Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.networks = networks.SamplecrdV1().Networks(namespace)
	s.neutron = faults.New(embedded.New(embedded.Options{}))
	s.server = httptest.NewServer(s.neutron)
	t.Cleanup(s.server.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	_ = listener.Close()
	s.start()
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			t.Logf("the controller's log ends with\n%s", process.LastLinesOf(s.dir+"/controller.log"))
		}
	})
	return s
}

// start starts the controller, and waits until it reconciles.
func (s *site) start() {
	s.Helper()
	args := append([]string{
		built,
		"-kubeconfig=" + cluster.Kubeconfig(),
		"-namespaces=" + s.namespace,
		"-neutron-endpoint=" + s.server.URL,
		"-debug-bind-address=" + s.address,
		"-resync-period=5s",
	}, s.flags...)
	var err error
	if s.controller, err = process.Start(s.dir, process.Program{Name: "controller", Args: args}); err != nil {
		s.Fatal(err)
	}
	s.eventually("the controller leads", func() error {
		if err := s.controller.Check(); err != nil {
			return err
		}
		now, err := fetch[state](s, "/api/state")
		if err == nil && !now.Process.Leads {
			return fmt.Errorf("the holder of the Lease is %q", now.Process.Holder)
		}
		return err
	})
}

// stop stops the controller as the kubelet does. Further calls do nothing.
func (s *site) stop() {
	s.controller.Stop(patience)
	s.controller = nil
}

func (s *site) url() string { return "http://" + s.address + "/" }

// open opens the page until a test ends.
func (s *site) open(t testing.TB, l look) *tab {
	t.Helper()
	p := openTab(t, s.url(), l)
	p.waitFor("the page is connected", `document.querySelector('#connection[data-state=open]')`)
	return p
}

// state and journey are what the tests use of the page's JSON.
type (
	state struct {
		Process struct {
			Leads            bool
			Holder           string
			SlowMilliseconds int
		}
	}
	journey struct {
		Ended  *time.Time
		Failed bool
		Steps  []struct{ Text string }
		Retry  *struct{ Failures int }
	}
)

// fetch reads JSON of the page.
func fetch[T any](s *site, path string) (value T, err error) {
	response, err := http.Get("http://" + s.address + path)
	if err != nil {
		return value, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return value, fmt.Errorf("%s: %s", path, response.Status)
	}
	return value, json.NewDecoder(response.Body).Decode(&value)
}

// journeys returns the journeys of a Network, the newest first.
func (s *site) journeys(name string) []journey {
	s.Helper()
	journeys, err := fetch[[]journey](s, "/api/journeys?key="+url.QueryEscape(s.namespace+"/"+name))
	if err != nil {
		s.Fatal(err)
	}
	return journeys
}

func (s *site) create(name, cidr string) {
	s.Helper()
	network := &samplecrdv1.Network{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: samplecrdv1.NetworkSpec{CIDR: cidr}}
	if _, err := s.networks.Create(s.Context(), network, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// patch changes a Network.
func (s *site) patch(name, patch string) {
	s.Helper()
	if _, err := s.networks.Patch(s.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *site) delete(name string) {
	s.Helper()
	if err := s.networks.Delete(s.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// waitForReady waits until Networks whose names begin with a prefix are ready.
func (s *site) waitForReady(prefix string, count int) {
	s.Helper()
	s.eventually("the Networks are ready", func() error {
		list, err := s.networks.List(s.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := 0
		for _, network := range list.Items {
			for _, condition := range network.Status.Conditions {
				if strings.HasPrefix(network.Name, prefix) && condition.Type == samplecrdv1.ConditionReady && condition.Status == metav1.ConditionTrue {
					ready++
				}
			}
		}
		if ready != count {
			return fmt.Errorf("%d of %d are", ready, count)
		}
		return nil
	})
}

var errNotYet = errors.New("not yet")

// eventually waits until a check passes.
func (s *site) eventually(what string, check func() error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	var last error
	err := process.Poll(ctx, time.Second/4, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		s.Fatalf("waiting until %s: %v: %v", what, err, last)
	}
}

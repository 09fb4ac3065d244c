package clouds_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	networkfake "github.com/samplecrd/network-controller/pkg/client/clientset/versioned/fake"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions"
	networkinformers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/clouds"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
	"github.com/samplecrd/network-controller/pkg/observe"
	"github.com/samplecrd/network-controller/pkg/store"
	"github.com/samplecrd/network-controller/test/keystone"
)

// world is a Set whose time passes only when all of it waits. It has an OpenStack with the
// projects first and second, which is called without a network.
type world struct {
	*testing.T
	kube          *fake.Clientset
	networks      *networkfake.Clientset
	cloud         *keystone.Cloud
	first, second *keystone.Project
	version       int         // of the latest Secret
	isAway        atomic.Bool // the API server
	isForbidden   atomic.Bool // the controller may not read Secrets: its RoleBinding is gone
	isBusy        atomic.Bool // a request to Neutron has no response

	mu      sync.Mutex
	running map[*controller]bool
	began   int // controllers
}

// controller is that of one cloud. It changes nothing.
type controller struct {
	w      *world
	client neutron.Client // nil for the controller's own cloud
	part   *store.Networks
	added  map[string]bool // the namespaces of the Networks whose events it has received
}

func (w *world) newController(client neutron.Client, part *store.Networks) *controller {
	return &controller{w: w, client: client, part: part, added: map[string]bool{}}
}

func (c *controller) WarmUp(_ context.Context, skipNamespaces ...string) bool {
	if !slices.Equal(skipNamespaces, []string{"forbidden"}) {
		c.w.Errorf("a cloud waits for all namespaces but %q", skipNamespaces)
	}
	return true
}
func (*controller) TakeOver(string, []*samplecrdv1.Network) {}
func (c *controller) HasRequests(string) bool               { return c.w.isBusy.Load() }
func (c *controller) IsIdle() bool                          { return !c.w.isBusy.Load() }

func (c *controller) Run(ctx context.Context, _ int, _ time.Duration) error {
	err := c.part.AddHandlers(klog.FromContext(ctx), store.Handlers{
		AddFunc:    func(n *samplecrdv1.Network, _ bool) { c.w.locked(func() { c.added[n.Namespace] = true }) },
		UpdateFunc: func(_, _ *samplecrdv1.Network) {},
		DeleteFunc: func(cache.DeletedObject[*samplecrdv1.Network]) {},
	})
	c.w.locked(func() { c.w.running[c], c.w.began = true, c.w.began+1 })
	<-ctx.Done()
	c.w.locked(func() { delete(c.w.running, c) })
	return err
}

func (w *world) locked(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// served returns which controllers run, and for which namespaces, such as
// "first: b c, own: a". One without a cloud has its problem as its name.
func (w *world) served() string {
	var running []*controller
	w.locked(func() { running = slices.Collect(maps.Keys(w.running)) })
	var all []string
	for _, c := range running {
		name, namespaces := "own", map[string]bool{}
		if c.client != nil {
			var err error
			var failure *neutron.Error
			if name, err = c.client.Cloud(w.Context()); errors.As(err, &failure) {
				name, _, _ = strings.Cut("none, as "+failure.Message, ".")
			}
			name = strings.TrimSuffix(strings.TrimPrefix(name, "RegionOne/"), "-id")
		}
		for _, network := range c.part.List() {
			if _, err := c.part.Get(cache.MetaObjectToName(network)); err == nil && c.added[network.Namespace] {
				namespaces[network.Namespace] = true
			}
		}
		all = append(all, strings.TrimSpace(name+": "+strings.Join(slices.Sorted(maps.Keys(namespaces)), " ")))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// inProcess calls a server without a network: time stands still in a bubble while somebody
// waits for one.
type inProcess struct{ http.Handler }

func (s inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	response := httptest.NewRecorder()
	s.ServeHTTP(response, r)
	return response.Result(), nil
}

// putNetwork creates or updates the Network of a namespace.
func (w *world) putNetwork(namespace string, deleted *metav1.Time, finalizers ...string) {
	network := &samplecrdv1.Network{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "example", DeletionTimestamp: deleted, Finalizers: finalizers,
	}}
	networks := w.networks.SamplecrdV1().Networks(namespace)
	if _, err := networks.Update(w.Context(), network, metav1.UpdateOptions{}); err != nil {
		_, err = networks.Create(w.Context(), network, metav1.CreateOptions{})
		w.must(err)
	}
}

func (w *world) setSecret(namespace, cloudsYAML string) {
	w.version++
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: clouds.SecretName, ResourceVersion: strconv.Itoa(w.version)},
		Data:       map[string][]byte{"clouds.yaml": []byte(cloudsYAML)},
	}
	if err := w.kube.Tracker().Update(secrets, secret, namespace); err != nil {
		w.must(w.kube.Tracker().Create(secrets, secret, namespace))
	}
}

// actions are what happens in a namespace, or to all.
var actions = map[string]func(w *world, namespace string){
	"network":  func(w *world, in string) { w.putNetwork(in, nil, samplecrdv1.Finalizer) },
	"new":      func(w *world, in string) { w.putNetwork(in, nil) },
	"deleting": func(w *world, in string) { w.putNetwork(in, &metav1.Time{Time: time.Now()}, samplecrdv1.Finalizer) },
	"gone": func(w *world, in string) {
		w.must(w.networks.SamplecrdV1().Networks(in).Delete(w.Context(), "example", metav1.DeleteOptions{}))
	},
	"first":  func(w *world, in string) { w.setSecret(in, w.first.CloudsYAML()) }, // a Secret for the project
	"second": func(w *world, in string) { w.setSecret(in, w.second.CloudsYAML()) },
	"another": func(w *world, in string) { // looks like another user
		w.setSecret(in, strings.Replace(w.first.CloudsYAML(), "username: 'first'", "user_id: 'first-user'", 1))
	},
	"unusable":    func(w *world, in string) { w.setSecret(in, "") },
	"without":     func(w *world, in string) { w.must(w.kube.Tracker().Delete(secrets, in, clouds.SecretName)) },
	"busy":        func(w *world, _ string) { w.isBusy.Store(true) },
	"idle":        func(w *world, _ string) { w.isBusy.Store(false) },
	"away":        func(w *world, _ string) { w.isAway.Store(true) },
	"back":        func(w *world, _ string) { w.isAway.Store(false) },
	"forbidden":   func(w *world, _ string) { w.isForbidden.Store(true) },
	"allowed":     func(w *world, _ string) { w.isForbidden.Store(false) },
	"newpassword": func(w *world, _ string) { w.first.SetPassword("new") },
	"oldpassword": func(w *world, _ string) { w.first.SetPassword("password-of-first") },
	"revoke":      func(w *world, _ string) { w.cloud.Revoke() },
	"slow":        func(w *world, _ string) { w.cloud.Change(func(s *keystone.Settings) { s.Fault = slow }) },
}

// slow makes Keystone respond after a while.
func slow(_ http.ResponseWriter, r *http.Request) bool {
	select {
	case <-time.After(20 * time.Second):
	case <-r.Context().Done():
	}
	return false
}

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// The periods of the Set.
const (
	checkPeriod = 30 * time.Second
	gracePeriod = time.Minute
	moveDelay   = time.Minute
)

// start starts a Set whose own cloud has an identity, and stops it at the end of the bubble.
func (w *world) start(identity string) (stop func()) {
	factory := informers.NewSharedInformerFactory(w.networks, 0)
	informer := factory.Samplecrd().V1().Networks()
	networks, err := store.New(klog.Background(),
		store.ByNamespace[networkinformers.TypedNetworkInformer]{metav1.NamespaceAll: informer}, nil, observe.Nothing{})
	w.must(err)
	set, err := clouds.New(clouds.Config{
		Options: clouds.Options{
			AllowedURLs: []string{w.cloud.URL}, CheckPeriod: checkPeriod, GracePeriod: gracePeriod, MoveDelay: moveDelay,
		},
		Networks: networks, Secrets: w.kube.CoreV1(),
		Connect: func() openstack.Options {
			server := inProcess{w.cloud.Config.Handler}
			return openstack.Options{Transport: func(http.RoundTripper) http.RoundTripper { return server }}
		},
		New: func(client neutron.Client, part *store.Networks) clouds.Controller {
			return w.newController(client, part)
		},
		Identity:       func() (string, bool) { return identity, true },
		SkipNamespaces: []string{"forbidden"},
	})
	w.must(err)
	ctx, cancel := context.WithCancel(w.Context())
	factory.StartWithContext(ctx)
	ended := make(chan error, 1)
	go func() { ended <- set.Run(ctx, w.newController(nil, set.Rest()), 1, time.Minute) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			w.Error(err)
		}
		factory.Shutdown()
		if len(w.running) > 0 {
			w.Errorf("%d controllers still run", len(w.running))
		}
	}
}

// TestSet has which cloud serves which namespace, over time. The controller's own cloud has
// the identity "own", and all namespaces without another one. A step has actions (in the
// namespace a, if they name no other), the time that passes, which clouds serve which
// namespaces then, and, in some, how many controllers have begun.
func TestSet(t *testing.T) {
	const inFirst, bad = "first: a, own:", "none, as the Secret a/samplecrd-cloud has no clouds"
	for name, steps := range map[string][]string{
		"no Secret": {"network | 3s | own: a"},
		"the API server fails": {
			"away network | 1h | own:",
			"back | 10s | own: a",
		},
		"a cloud begins with the first Network, and ends after the last": {
			"first | 1h | own:",
			"network | 0s | " + inFirst,
			"gone | 4m | first:, own:",
			"| 2m | own:",
			"network | 0s | " + inFirst,
		},
		"two namespaces share a project": {
			"first first=b network network=b network=c | 3s | first: a b, own: c",
			"without | 2m | first: b, own: a c | 2",
		},
		"two users of a project": {
			"first another=b network network=b | 0s | first: a, first: b, own:",
			"without gone | 2m | first: b, own:",
		},
		"one of two namespaces gets another user": {
			"first first=b network network=b | 0s | first: a b, own:",
			"another=b | 30s | first:, first: a, own:", // requests of the first user end
			"| 1m | first: a, first: b, own:",
			"another | 90s | first: a b, own: | 3",
		},
		"the Secret comes a little later than the Network": {
			"network | 0s | own:",
			"first | 3s | " + inFirst,
		},
		"the Secret comes later": {
			"network | 3s | own: a",
			"first | 30s | " + inFirst,
		},
		"the Secret is deleted": {
			"first network | 0s | " + inFirst,
			"without | 1m | " + inFirst,
			"| 1m | own: a",
		},
		"the Secret is deleted, and a Network is, too": {
			"first network | 0s | " + inFirst,
			"deleting without | 1h | " + inFirst,
			"gone | 6m | own:",
		},
		"the Secret is deleted, and a new Network comes": {
			"first network | 0s | " + inFirst,
			"without | 30s | " + inFirst,
			"gone new | 0s | first:, own:",
			"| 90s | own: a",
		},
		"the Secret is deleted while a request has no response": {
			"first network | 0s | " + inFirst,
			"busy without | 10m | " + inFirst,
			"idle | 30s | own: a",
		},
		"the Secret is deleted while a cloud is dead": {
			"first network | 0s | " + inFirst,
			"busy without | 22m | own: a",
		},
		"the Secret is deleted, and comes back in time": {
			"first network | 0s | " + inFirst,
			"without | 30s | " + inFirst,
			"first | 1h | " + inFirst,
			"without | 1m | " + inFirst + " | 2", // the time begins again
		},
		"the right to read the Secret goes for a moment": {
			"first network | 0s | " + inFirst,
			"forbidden | 30s | " + inFirst,
			"allowed | 1m | " + inFirst,
			"gone new | 1h | " + inFirst, // new Networks are begun again
		},
		"the right to read the Secret goes for a moment, twice": {
			"first network | 0s | " + inFirst,
			"forbidden | 30s | " + inFirst,
			"allowed | 1h | " + inFirst,
			"forbidden | 30s | " + inFirst, // the time begins again
		},
		"another password": {
			"first network | 0s | " + inFirst,
			"newpassword first | 30s | " + inFirst,
			"revoke | 1m | " + inFirst + " | 2",
		},
		"another project": {
			"first network | 0s | " + inFirst,
			"second | 30s | own:, second: a",
		},
		"another project while a request has no response": {
			"first network | 0s | " + inFirst,
			"busy second | 10m | " + inFirst,
			"idle | 30s | own:, second: a",
		},
		"another Secret that is unusable": {
			"first network | 0s | " + inFirst,
			"unusable | 1h | " + inFirst,
		},
		"the Secret is deleted, and an unusable one comes": {
			"first network | 0s | " + inFirst,
			"without | 30s | " + inFirst,
			"unusable gone new | 1h | " + inFirst, // new Networks are begun again
		},
		"the first Secret is unusable": {
			"unusable network | 0s | " + bad + ": a, own:",
			"first | 30s | " + inFirst,
		},
		"an unusable Secret is deleted": {
			"unusable network network=b | 3s | " + bad + ": a, own: b",
			"without | 30s | own: a b",
		},
		"Keystone takes long": {
			"slow first network | 4s | none, as the login with the Secret samplecrd-cloud takes long: a, own:",
			"| 1h | first: a, own:",
		},
		"Keystone takes long, after an unusable Secret": {
			"unusable network | 0s | " + bad + ": a, own:",
			"without | 5s | own: a",
			"slow first | 34s | none, as the login with the Secret samplecrd-cloud takes long: a, own:",
			"| 1h | first: a, own:",
		},
		"Keystone accepts the login later": {
			"first newpassword network | 0s | none, as The request you have made requires authentication: a, own:",
			"oldpassword | 3m | " + inFirst,
		},
	} {
		t.Run(name, func(t *testing.T) { run(t, "own", steps...) })
	}
	// Both would create the network of a Network, so the requests of the first one end first.
	t.Run("to the project that the controller itself has", func(t *testing.T) {
		run(t, "RegionOne/first-id", "network | 3s | own: a", "first | 30s | first:, own:", "| 1m | first: a, own:")
	})
}

func run(t *testing.T, identity string, steps ...string) {
	t.Helper()
	cloud := keystone.Start() // its listener waits outside of the bubble
	defer cloud.Close()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			T: t, kube: fake.NewClientset(), networks: networkfake.NewSimpleClientset(), running: map[*controller]bool{},
			cloud: cloud, first: cloud.AddProject("first"), second: cloud.AddProject("second"),
		}
		w.kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			if w.isForbidden.Load() {
				return true, nil, apierrors.NewForbidden(secrets.GroupResource(), clouds.SecretName, nil)
			}
			return w.isAway.Load(), nil, errors.New("the API server is away")
		})
		defer w.start(identity)()
		synctest.Wait()
		for _, step := range steps {
			w.play(step)
		}
	})
}

func (w *world) play(step string) {
	w.Helper()
	parts := strings.Split(step, "|")
	for action := range strings.FieldsSeq(parts[0]) {
		name, namespace, _ := strings.Cut(action, "=")
		actions[name](w, cmp.Or(namespace, "a"))
	}
	after, err := time.ParseDuration(strings.TrimSpace(parts[1]))
	w.must(err)
	time.Sleep(after + time.Millisecond) //nolint:forbidigo // no time passes in a bubble
	synctest.Wait()
	if got := w.served(); got != strings.TrimSpace(parts[2]) {
		w.Fatalf("after %q, the clouds serve %q", step, got)
	}
	if len(parts) > 3 && strings.TrimSpace(parts[3]) != strconv.Itoa(w.began) {
		w.Fatalf("after %q, %d controllers have begun", step, w.began)
	}
}

package clouds_test

import (
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
// "own: a, RegionOne/first-id: b c". One without a cloud has its problem as its name.
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

// The actions of users.

func (w *world) addNetwork(namespace string, finalizers ...string) {
	network := &samplecrdv1.Network{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "example", Finalizers: finalizers,
	}}
	_, err := w.networks.SamplecrdV1().Networks(namespace).Create(w.Context(), network, metav1.CreateOptions{})
	w.must(err)
}

func (w *world) deleteNetwork(namespace string) {
	w.must(w.networks.SamplecrdV1().Networks(namespace).Delete(w.Context(), "example", metav1.DeleteOptions{}))
}

// beginDeletion marks the Network of a namespace as being deleted.
func (w *world) beginDeletion(namespace string) {
	network := &samplecrdv1.Network{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "example", DeletionTimestamp: &metav1.Time{Time: time.Now()}, Finalizers: []string{samplecrdv1.Finalizer},
	}}
	_, err := w.networks.SamplecrdV1().Networks(namespace).Update(w.Context(), network, metav1.UpdateOptions{})
	w.must(err)
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

func (w *world) deleteSecret(namespace string) {
	w.must(w.kube.Tracker().Delete(secrets, namespace, clouds.SecretName))
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

// step is something that happens, and which clouds serve which namespaces some time later.
type step struct {
	do    func(*world)
	after time.Duration
	want  string
}

// TestSet has which cloud serves which namespace, over time. The controller's own cloud has
// the identity "own", and all namespaces without another one.
func TestSet(t *testing.T) {
	const first, second = "RegionOne/first-id", "RegionOne/second-id"
	both := func(actions ...func(*world)) func(*world) {
		return func(w *world) {
			for _, do := range actions {
				do(w)
			}
		}
	}
	network := func(namespace string) func(*world) {
		return func(w *world) { w.addNetwork(namespace, samplecrdv1.Finalizer) }
	}
	newNetwork := func(w *world) { w.addNetwork("a") }
	gone := func(w *world) { w.deleteNetwork("a") }
	busy := func(is bool) func(*world) { return func(w *world) { w.isBusy.Store(is) } }
	toFirst := func(namespace string) func(*world) {
		return func(w *world) { w.setSecret(namespace, w.first.CloudsYAML()) }
	}
	asAnother := func(namespace string) func(*world) { // which looks like another user
		return func(w *world) {
			w.setSecret(namespace, strings.Replace(w.first.CloudsYAML(), "username: 'first'", "user_id: 'first-user'", 1))
		}
	}
	toSecond := func(w *world) { w.setSecret("a", w.second.CloudsYAML()) }
	secret := func(text string) func(*world) { return func(w *world) { w.setSecret("a", text) } }
	withoutSecret := func(w *world) { w.deleteSecret("a") }
	nothing := func(*world) {}
	began := func(want int) func(*world) {
		return func(w *world) {
			if w.began != want {
				w.Errorf("%d controllers have begun, want %d", w.began, want)
			}
		}
	}
	const inFirst, bad = first + ": a, own:", "none, as the Secret a/samplecrd-cloud has no clouds"
	for name, steps := range map[string][]step{
		"no Secret": {{network("a"), 3 * time.Second, "own: a"}},
		"the API server fails": {
			{both(func(w *world) { w.isAway.Store(true) }, network("a")), time.Hour, "own:"},
			{func(w *world) { w.isAway.Store(false) }, 10 * time.Second, "own: a"},
		},
		"a cloud begins with the first Network, and ends after the last": {
			{toFirst("a"), time.Hour, "own:"},
			{network("a"), 0, inFirst},
			{gone, 4 * time.Minute, first + ":, own:"},
			{nothing, 2 * time.Minute, "own:"},
			{network("a"), 0, inFirst},
		},
		"two namespaces share a project": {
			{both(toFirst("a"), toFirst("b"), network("a"), network("b"), network("c")), 3 * time.Second, first + ": a b, own: c"},
			{withoutSecret, 2 * time.Minute, first + ": b, own: a c"},
			{began(2), 0, first + ": b, own: a c"},
		},
		"two users of a project": {
			{both(toFirst("a"), asAnother("b"), network("a"), network("b")), 0, first + ": a, " + first + ": b, own:"},
			{both(withoutSecret, gone), 2 * time.Minute, first + ": b, own:"},
		},
		"one of two namespaces gets another user": {
			{both(toFirst("a"), toFirst("b"), network("a"), network("b")), 0, first + ": a b, own:"},
			{asAnother("b"), checkPeriod, first + ":, " + first + ": a, own:"}, // requests of the first user end
			{nothing, moveDelay, first + ": a, " + first + ": b, own:"},
			{asAnother("a"), checkPeriod + moveDelay, first + ": a b, own:"},
			{began(3), 0, first + ": a b, own:"},
		},
		"the Secret comes a little later than the Network": {
			{network("a"), 0, "own:"},
			{toFirst("a"), 3 * time.Second, inFirst},
		},
		"the Secret comes later": {
			{network("a"), 3 * time.Second, "own: a"},
			{toFirst("a"), checkPeriod, inFirst},
		},
		"the Secret is deleted": {
			{both(toFirst("a"), network("a")), 0, inFirst},
			{withoutSecret, gracePeriod, inFirst},
			{nothing, 2 * checkPeriod, "own: a"},
		},
		"the Secret is deleted, and a Network is, too": {
			{both(toFirst("a"), network("a")), 0, inFirst},
			{both(func(w *world) { w.beginDeletion("a") }, withoutSecret), time.Hour, inFirst},
			{gone, 6 * time.Minute, "own:"},
		},
		"the Secret is deleted, and a new Network comes": {
			{both(toFirst("a"), network("a")), 0, inFirst},
			{withoutSecret, checkPeriod, inFirst},
			{both(gone, newNetwork), 0, first + ":, own:"},
			{nothing, gracePeriod + checkPeriod, "own: a"},
		},
		"the Secret is deleted while a request has no response": {
			{both(toFirst("a"), network("a")), 0, inFirst},
			{both(busy(true), withoutSecret), 10 * time.Minute, inFirst},
			{busy(false), checkPeriod, "own: a"},
		},
		"the Secret is deleted while a cloud is dead": {
			{both(toFirst("a"), network("a")), 0, inFirst},
			{both(busy(true), withoutSecret), 22 * time.Minute, "own: a"},
		},
		"the Secret is deleted, and comes back in time": {
			{both(toFirst("a"), network("a")), 0, inFirst},
			{withoutSecret, checkPeriod, inFirst},
			{toFirst("a"), time.Hour, inFirst},
			{withoutSecret, gracePeriod, inFirst}, // the time begins again
			{began(2), 0, inFirst},
		},
		"another password": {
			{both(toFirst("a"), network("a")), 0, inFirst},
			{both(func(w *world) { w.first.SetPassword("new") }, toFirst("a")), checkPeriod, inFirst},
			{func(w *world) { w.cloud.Revoke() }, time.Minute, inFirst},
			{began(2), 0, inFirst},
		},
		"another project": {
			{both(toFirst("a"), network("a")), 0, inFirst},
			{toSecond, checkPeriod, second + ": a, own:"},
		},
		"another project while a request has no response": {
			{both(toFirst("a"), network("a")), 0, inFirst},
			{both(busy(true), toSecond), 10 * time.Minute, inFirst},
			{busy(false), checkPeriod, second + ": a, own:"},
		},
		"another Secret that is unusable": {
			{both(toFirst("a"), network("a")), 0, inFirst},
			{secret(""), time.Hour, inFirst},
		},
		"the first Secret is unusable": {
			{both(secret(""), network("a")), 0, bad + ": a, own:"},
			{toFirst("a"), checkPeriod, inFirst},
		},
		"an unusable Secret is deleted": {
			{both(secret(""), network("a"), network("b")), 3 * time.Second, bad + ": a, own: b"},
			{withoutSecret, checkPeriod, "own: a b"},
		},
		"Keystone accepts the login later": {
			{both(toFirst("a"), func(w *world) { w.first.SetPassword("new") }, network("a")), 0,
				"none, as The request you have made requires authentication: a, own:"},
			{func(w *world) { w.first.SetPassword("password-of-first") }, 3 * time.Minute, inFirst},
		},
	} {
		t.Run(name, func(t *testing.T) { run(t, "own", steps) })
	}
	// Both would create the network of a Network, so the requests of the first one end first.
	t.Run("to the project that the controller itself has", func(t *testing.T) {
		run(t, first, []step{
			{network("a"), 3 * time.Second, "own: a"},
			{toFirst("a"), checkPeriod, first + ":, own:"},
			{nothing, moveDelay, first + ": a, own:"},
		})
	})
}

func run(t *testing.T, identity string, steps []step) {
	t.Helper()
	cloud := keystone.Start() // its listener waits outside of the bubble
	defer cloud.Close()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			T: t, kube: fake.NewClientset(), networks: networkfake.NewSimpleClientset(), running: map[*controller]bool{},
			cloud: cloud, first: cloud.AddProject("first"), second: cloud.AddProject("second"),
		}
		w.kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return w.isAway.Load(), nil, errors.New("the API server is away")
		})
		defer w.start(identity)()
		synctest.Wait()
		for i, step := range steps {
			step.do(w)
			time.Sleep(step.after + time.Millisecond) //nolint:forbidigo // no time passes in a bubble
			synctest.Wait()
			if got := w.served(); got != step.want {
				t.Fatalf("step %d: the clouds serve %q, want %q", i+1, got, step.want)
			}
		}
	})
}

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	testingclock "k8s.io/utils/clock/testing"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/client/clientset/versioned/fake"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions"
	networkinformers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
	"github.com/samplecrd/network-controller/pkg/store"
)

// The memory of a key is all that a replica remembers between two syncs. These
// tests need no Neutron and no API server: they look at the memory alone.

const (
	maxInFlight = 30 * time.Second
	maxLateness = 10 * time.Minute
)

var key = cache.NewObjectName("default", "example")

// newReconciler returns a Reconciler whose store contains these Networks.
func newReconciler(t testing.TB, networks ...*samplecrdv1.Network) (*Reconciler, *testingclock.FakeClock) {
	t.Helper()
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Samplecrd().V1().Networks()
	known, err := store.New(klog.Background(), store.ByNamespace[networkinformers.TypedNetworkInformer]{metav1.NamespaceAll: informer}, nil, store.Unobserved{})
	if err != nil {
		t.Fatal(err)
	}
	for _, network := range networks {
		if err := informer.Informer().GetStore().Add(network); err != nil {
			t.Fatal(err)
		}
	}
	clock := testingclock.NewFakeClock(time.Unix(1_000_000, 0))
	return New(nil, known, neutron.NewCache(nil, clock.Now), nil, clock, Options{MaxInFlight: maxInFlight, MaxLateness: maxLateness, Retry: DefaultRetryDelays()}), clock
}

func object(uid types.UID, networkID string) *samplecrdv1.Network {
	network := &samplecrdv1.Network{Status: samplecrdv1.NetworkStatus{NetworkID: networkID}}
	network.Namespace, network.Name, network.UID, network.Generation, network.Finalizers = key.Namespace, key.Name, uid, 1, []string{samplecrdv1.Finalizer}
	return network
}

var (
	timeout  = &neutron.Error{Op: "create network", Class: neutron.ErrUnavailable}
	noLogin  = &neutron.Error{Op: "login", Class: neutron.ErrUnavailable, Status: 503, Keystone: "https://keystone/v3"}
	rejected = &neutron.Error{Op: "create network", Class: neutron.ErrUnavailable, Type: "DBError", Status: 503}
)

// TestPendingCreate: as long as a create request may be pending, nothing is created
// and the finalizer stays, also for another object of the same name.
func TestPendingCreate(t *testing.T) {
	ownRange, fromPool := plan.Desired{}, plan.Desired{SubnetPool: &plan.SubnetPool{Name: "campus"}}
	adopted := plan.Desired{Adopted: "net-1"}
	for name, test := range map[string]struct {
		desired plan.Desired
		step    plan.Step
		err     error
		waits   bool
	}{
		"network, no response":                 {ownRange, plan.CreateNetwork{}, timeout, true},
		"network, rejected by Neutron":         {ownRange, plan.CreateNetwork{}, rejected, false},
		"network, and the login failed":        {ownRange, plan.CreateNetwork{}, noLogin, false},
		"network, created":                     {ownRange, plan.CreateNetwork{}, nil, false},
		"subnet of the user's range":           {ownRange, plan.CreateSubnet{}, timeout, false},
		"subnet from a subnet pool":            {fromPool, plan.CreateSubnet{}, timeout, true},
		"subnet on an adopted network":         {adopted, plan.CreateSubnet{}, timeout, true},
		"a look that failed":                   {ownRange, plan.FindNetwork{}, timeout, false},
		"an update that failed":                {ownRange, plan.UpdateNetwork{}, timeout, false},
		"Kubernetes failed, and nothing else":  {ownRange, plan.AddFinalizer{}, errOutdated, false},
		"a deletion that got no response":      {ownRange, plan.DeleteNetwork{}, timeout, false},
		"a create that another error stopped":  {ownRange, plan.CreateNetwork{}, errOutdated, false},
		"a subnet from a pool, and it is made": {fromPool, plan.CreateSubnet{}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, clock := newReconciler(t)
			if err := r.begin(key, test.desired, test.step); err != nil {
				t.Fatal(err)
			}
			r.end(key, attempt{desired: test.desired, step: test.step, err: test.err})
			for _, network := range []*samplecrdv1.Network{object("uid-1", ""), object("uid-2", "")} {
				for _, next := range []plan.Step{plan.CreateNetwork{}, plan.RemoveFinalizer{}} {
					if err := r.checkPending(key, network, test.desired, next, false); (err != nil) != test.waits {
						t.Errorf("before %q: %v, want to wait: %v", next, err, test.waits)
					}
				}
			}
			if err := r.checkPending(key, object("uid-1", ""), test.desired, plan.FindNetwork{}, false); err != nil {
				t.Errorf("a look has to wait: %v", err)
			}
			clock.SetTime(clock.Now().Add(maxInFlight))
			if err := r.checkPending(key, object("uid-1", ""), test.desired, plan.CreateNetwork{}, false); err != nil {
				t.Errorf("after the time in which a request can be pending: %v", err)
			}
		})
	}
}

// TestInheritedCreate: after a replica starts leading, a finalizer stays as long as
// a request of the former leader may be pending.
func TestInheritedCreate(t *testing.T) {
	ready := func(network *samplecrdv1.Network, since time.Duration) *samplecrdv1.Network {
		network.Status.Conditions = []metav1.Condition{{
			Type: samplecrdv1.ConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Unix(1_000_000, 0).Add(-since)),
		}}
		return network
	}
	old := func() *samplecrdv1.Network { return ready(object("uid-1", "net-1"), time.Hour) }
	without := old()
	without.Finalizers = nil
	for name, test := range map[string]struct {
		before, now *samplecrdv1.Network
		found       bool
		waits       bool
	}{
		"not ready":                   {object("uid-1", ""), object("uid-1", ""), false, true},
		"ready for long, found":       {old(), old(), true, false},
		"ready for long, not found":   {old(), old(), false, true},
		"ready for long, now another": {old(), ready(object("uid-1", "net-2"), time.Hour), true, true},
		"ready just now":              {ready(object("uid-1", "net-1"), time.Second), ready(object("uid-1", "net-1"), time.Second), true, true},
		"another object of the name":  {object("uid-0", ""), object("uid-1", ""), false, false},
		"not worked on before":        {without, old(), false, false},
		"created after the start":     {nil, object("uid-1", ""), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			var existing []*samplecrdv1.Network
			if test.before != nil {
				existing = append(existing, test.before)
			}
			r, clock := newReconciler(t, existing...)
			r.Start(t.Context())
			if err := r.checkPending(key, test.now, plan.Desired{}, plan.RemoveFinalizer{}, test.found); (err != nil) != test.waits {
				t.Errorf("checkPending() = %v, want to wait: %v", err, test.waits)
			}
			if err := r.checkPending(key, test.now, plan.Desired{}, plan.CreateNetwork{}, test.found); err != nil {
				t.Errorf("a create has to wait, which looks first: %v", err)
			}
			clock.SetTime(clock.Now().Add(maxInFlight))
			if err := r.checkPending(key, test.now, plan.Desired{}, plan.RemoveFinalizer{}, test.found); err != nil {
				t.Errorf("after the time in which a request can be pending: %v", err)
			}
		})
	}
}

// create returns the step that creates a network with a request.
func create(request string) plan.CreateNetwork {
	return plan.CreateNetwork{Network: neutron.NewNetwork{Name: owner.String(), Description: owner.NetworkMarker(request, false)}}
}

var owner = neutron.Owner{Namespace: key.Namespace, Name: key.Name}

// TestOrphan: networks of an object that does not exist are deleted if the drift
// detector requests it, or if they were created while the object was being removed.
func TestOrphan(t *testing.T) {
	r, _ := newReconciler(t)
	isOrphan := func() bool { return r.Observe(key, nil, r.Desired(key, nil)).Finalizer }
	if isOrphan() {
		t.Error("a key without a record is an orphan")
	}
	r.DeleteOrphan(key)
	if !isOrphan() {
		t.Error("an orphan whose time has come is none")
	}
	r.Observe(key, object("uid-1", ""), plan.Desired{})
	if isOrphan() {
		t.Error("an orphan whose object exists again is still one")
	}

	created := plan.Actual{}.WithNetworks(neutron.NetworkFilter{Name: owner.String()}, nil).
		WithNetwork(neutron.Network{ID: "net-1", Description: owner.NetworkMarker("r1", false)})
	if err := r.begin(key, plan.Desired{}, create("r1")); err != nil {
		t.Fatal(err)
	}
	r.end(key, attempt{step: create("r1"), after: created})
	if !isOrphan() {
		t.Error("a network that no status names is no orphan")
	}
	r.Observe(key, object("uid-1", "net-2"), plan.Desired{})
	if !isOrphan() {
		t.Error("a network is forgotten because the status names another one")
	}
	r.Observe(key, object("uid-1", "net-1"), plan.Desired{}) // also if the response to the status update was lost
	if isOrphan() {
		t.Error("a network that the status names is an orphan")
	}
}

// TestMemoryLifetime: a memory ends with its object, and what may exist in Neutron stays
// in the ledger until a list has shown that it does not.
func TestMemoryLifetime(t *testing.T) {
	r, clock := newReconciler(t)
	report := func(outcome error) error {
		return r.Report(t.Context(), key, nil, plan.Desired{}, plan.Actual{}, outcome, nil)
	}
	r.Observe(key, object("uid-1", ""), plan.Desired{})
	if err := report(nil); err != nil || len(r.memories) != 0 {
		t.Errorf("Report() = %v, and %d records are left", err, len(r.memories))
	}

	if err := r.begin(key, plan.Desired{}, create("r1")); err != nil {
		t.Fatal(err)
	}
	r.end(key, attempt{step: create("r1"), err: timeout})
	if err := report(nil); err != nil || len(r.ledger) != 1 {
		t.Errorf("Report() = %v, and the ledger has %d accounts, want one", err, len(r.ledger))
	}
	r.Listed(clock.Now().Add(maxLateness))
	if len(r.ledger) != 1 {
		t.Error("a request is forgotten although its network may still appear")
	}
	r.Listed(clock.Now().Add(maxLateness + time.Second))
	if len(r.ledger) != 0 {
		t.Errorf("the ledger has %+v after the time of the request", r.ledger)
	}

	r.DeleteOrphan(key)
	if err := report(timeout); err == nil || len(r.ledger) != 0 {
		t.Errorf("Report() = %v after a failure, and an orphan is deleted without another look at its grace period", err)
	}
}

// TestNothingOutlivesItsKey counts all that is kept for keys whose objects came, failed in
// each way, and went.
func TestNothingOutlivesItsKey(t *testing.T) {
	r, clock := newReconciler(t)
	r.Start(t.Context())
	failures := []error{nil, timeout, rejected, refused, errOutdated, context.Canceled}
	for i := range 10_000 {
		key := cache.NewObjectName("default", fmt.Sprint("network-", i))
		network := object(types.UID(strconv.Itoa(i)), "")
		network.Name = key.Name
		r.Observe(key, network, r.Desired(key, network))
		step, failure := create(fmt.Sprint("r", i)), failures[i%len(failures)]
		if err := r.begin(key, plan.Desired{}, step); err != nil {
			t.Fatal(err)
		}
		r.end(key, attempt{step: step, err: failure})
		if failure != nil {
			r.noteRejection(key, network, failure)
		}
		r.StatusOverwritten(network, object(network.UID, "other"))
		r.EditDelay(network)
		switch i % 4 {
		case 0:
			r.end(key, attempt{step: plan.RemoveFinalizer{}})
		case 1:
			r.noteRejection(key, nil, refused)
		case 2:
			r.DeleteOrphan(key)
		}
		if err := r.Report(t.Context(), key, nil, plan.Desired{}, plan.Actual{}, failure, nil); failure == nil && err != nil {
			t.Fatal(err)
		}
	}
	clock.SetTime(clock.Now().Add(maxLateness + r.options.Retry.Rejected + time.Second))
	r.Listed(clock.Now())
	if len(r.memories) != 0 || len(r.ledger) != 0 {
		t.Errorf("%d records and %d accounts are left", len(r.memories), len(r.ledger))
	}
}

// TestStatusOverwritten: a replica recognizes its own status, and only for the
// object that it belongs to.
func TestStatusOverwritten(t *testing.T) {
	r, _ := newReconciler(t)
	before, own, foreign := object("uid-1", ""), object("uid-1", "net-1"), object("uid-1", "net-2")
	r.update(own, func(memory *memory) { memory.status = status.Hash(own.Status) })
	for name, test := range map[string]struct {
		after *samplecrdv1.Network
		want  bool
	}{
		"unchanged":                  {before, false},
		"written by this replica":    {own, false},
		"written by another client":  {foreign, true},
		"own status, another object": {object("uid-2", "net-1"), true},
	} {
		delay, got := r.StatusOverwritten(before, test.after)
		if got != test.want || got && (delay < 5*time.Second || delay > 8*time.Second) {
			t.Errorf("%s: StatusOverwritten() = %v, %v, want %v", name, delay, got, test.want)
		}
	}
}

// TestOverwrittenStatusSlowsDown: as long as another client overwrites each correction, the
// next one comes later. A list does not correct the status before that.
func TestOverwrittenStatusSlowsDown(t *testing.T) {
	networks := readyNetworks(1)
	r, clock := newReconciler(t, networks...)
	r.options.Cluster = ownerOf(0).Cluster
	r.neutron = neutron.NewCache(&many{count: 1}, clock.Now)
	r.Start(t.Context())
	refresh(t, r)
	syncAll(t, r, networks)
	theirs := networks[0].DeepCopy()
	theirs.Status.NetworkID, theirs.Status.MTU = "theirs", 9000
	var last time.Duration
	// want lets the other client write, and the time pass until the correction.
	want := func(doing string, shortest time.Duration) {
		t.Helper()
		delay, _ := r.StatusOverwritten(networks[0], theirs)
		again, _ := r.StatusOverwritten(networks[0], theirs)
		if delay < shortest || delay > shortest*3/2 || again != delay {
			t.Errorf("%s: the delay is %v, then %v; want %v to %v", doing, delay, again, shortest, shortest*3/2)
		}
		clock.Step(delay - time.Millisecond)
		if needsSync, _ := r.Drift(theirs); needsSync {
			t.Errorf("%s: a list corrects the status before the delay of %v", doing, delay)
		}
		clock.Step(time.Millisecond)
		if needsSync, _ := r.Drift(theirs); !needsSync {
			t.Errorf("%s: a list does not correct the status after the delay of %v", doing, delay)
		}
		last = delay
	}
	want("at first", 5*time.Second)
	for _, delay := range []time.Duration{10, 20, 40, 80, 160, 320, 600, 600, 600} {
		clock.Step(last) // so long does the other controller wait
		want("again", delay*time.Second)
	}
	clock.Step(20*time.Minute - time.Millisecond)
	want("in the last moment", 10*time.Minute)
	clock.Step(20 * time.Minute)
	want("after a while", 5*time.Second)
	want("at once", 10*time.Second)
	theirs.UID = "another object of the same name"
	if delay, _ := r.StatusOverwritten(networks[0], theirs); delay > 8*time.Second {
		t.Errorf("another object waits for %v", delay)
	}
}

// TestDisagreement: of two controllers that overwrite each other's status, at least one
// slows down, also if the other one has just started.
func TestDisagreement(t *testing.T) {
	const day, start = 24 * time.Hour, 5 * time.Second
	d := RetryDelays{OverwrittenStatus: start}
	began := time.Unix(1_000_000, 0)
	for name, corrections := range map[string][2]correction{
		"both new": {},
		"one new":  {0: {delay: 10 * time.Minute, due: began}},
	} {
		now, writes := began, 0
		for ; now.Sub(began) < day; writes++ {
			own := &corrections[writes%2]
			*own = d.correctionAfter(*own, now)
			now = own.due
		}
		if most := 2*int(day/(10*time.Minute)) + 20; writes > most {
			t.Errorf("%s: they wrote %d times in a day, want at most %d", name, writes, most)
		}
	}
}

// TestEditDelay: a Network that is edited without end is synced ten times at once, and
// then once a second. Its deletion, and an edit after a pause, do not wait.
func TestEditDelay(t *testing.T) {
	r, clock := newReconciler(t)
	network := object("1", "")
	sync := func() { r.Observe(key, network, plan.Desired{}) }
	want := func(doing string, want time.Duration) {
		t.Helper()
		if got := r.EditDelay(network).Round(time.Millisecond); got != want {
			t.Errorf("%s: EditDelay() = %v, want %v", doing, got, want)
		}
	}
	for range 20 {
		sync()
	}
	want("syncs without an edit", 0)
	for range editBurst {
		network.Generation++
		want("an edit of the burst", 0)
		sync()
		sync()
	}
	want("after the burst", time.Second)
	want("another edit meanwhile", time.Second)
	clock.SetTime(clock.Now().Add(400 * time.Millisecond))
	want("a little later", 600*time.Millisecond)
	clock.SetTime(clock.Now().Add(600 * time.Millisecond))
	want("a second later", 0)
	network.Generation++
	sync()
	want("after another sync", time.Second)
	network.DeletionTimestamp = new(metav1.Now())
	want("a deletion", 0)
	network.DeletionTimestamp, network.UID = nil, "2"
	want("another object of the same name", 0)
	network.UID = "1"
	clock.SetTime(clock.Now().Add(time.Hour))
	for range editBurst {
		want("after a pause", 0)
		network.Generation++
		sync()
	}
	want("after another burst", time.Second)
}

// TestRejectionWithoutFinalizer: a finalizer that was removed is restored although
// Neutron has just rejected a request.
func TestRejectionWithoutFinalizer(t *testing.T) {
	r, _ := newReconciler(t)
	network := object("uid", "net-1")
	network.Finalizers = []string{samplecrdv1.Finalizer}
	r.noteRejection(key, network, refused)
	if r.rejection(key, network) == nil {
		t.Error("the rejection is forgotten")
	}
	network = network.DeepCopy()
	network.Finalizers = nil
	if err := r.rejection(key, network); err != nil {
		t.Errorf("without the finalizer, the outcome is still %v", err)
	}
}

// refused is the outcome of a sync of which Neutron has rejected a request.
var refused = &status.StepError{Step: plan.DeleteNetwork{}, Err: &neutron.Error{Class: neutron.ErrRefused, Status: 403, Type: "PolicyNotAuthorized"}}

// TestRejectionOfOrphan: a list that finds an orphan again does not repeat a request
// that Neutron has just rejected.
func TestRejectionOfOrphan(t *testing.T) {
	r, clock := newReconciler(t)
	r.DeleteOrphan(key)
	r.noteRejection(key, nil, refused)
	if err := r.reportDeleted(key, nil); err != nil { // a retry that is older than the rejection
		t.Fatal(err)
	}
	if r.rejection(key, nil) == nil {
		t.Error("the rejection is forgotten")
	}
	clock.SetTime(clock.Now().Add(time.Hour))
	if err := r.reportDeleted(key, nil); err != nil {
		t.Fatal(err)
	}
	r.Listed(clock.Now())
	if len(r.memories) != 0 {
		t.Errorf("the records are %+v, want none", r.memories)
	}
}

// TestReportOfDeployment: an error of the Deployment is retried although the Network
// itself waits for another spec.
func TestReportOfDeployment(t *testing.T) {
	network := object("uid", "")
	r, _ := newReconciler(t)
	failed := errors.New("updating the Network of a Deployment: unavailable")
	invalid := status.BlockedError{Blocked: plan.Blocked{Reason: plan.ReasonInvalidSpec, Message: "no range"}}
	err := r.Report(t.Context(), key, network, plan.Desired{}, plan.Actual{}, invalid, failed)
	if retry, _ := r.Retry(err); retry != RetrySoon {
		t.Errorf("the retry of %v is %v, want RetrySoon", err, retry)
	}
}

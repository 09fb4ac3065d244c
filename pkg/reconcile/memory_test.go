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
func newReconciler(t *testing.T, networks ...*samplecrdv1.Network) (*Reconciler, *testingclock.FakeClock) {
	t.Helper()
	clock := testingclock.NewFakeClock(epoch)
	dependencies := Dependencies{Networks: known(t, networks...), Neutron: neutron.NewCache(nil, clock.Now), Clock: clock}
	options := Options{MaxInFlight: maxInFlight, MaxLateness: maxLateness, Retry: DefaultRetryDelays()}
	return New(dependencies, options), clock
}

// known returns a store with these Networks.
func known(t *testing.T, networks ...*samplecrdv1.Network) *store.Networks {
	t.Helper()
	known, err := store.NewStatic(klog.Background(), store.ByNamespace[[]*samplecrdv1.Network]{metav1.NamespaceAll: networks})
	if err != nil {
		t.Fatal(err)
	}
	return known
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
		"a router":                             {ownRange, plan.AttachRouter{}, timeout, true},
		"a look that failed":                   {ownRange, plan.FindNetwork{}, timeout, false},
		"an update that failed":                {ownRange, plan.UpdateNetwork{}, timeout, false},
		"Kubernetes failed, and nothing else":  {ownRange, plan.AddFinalizer{}, errOutdated, false},
		"a deletion that got no response":      {ownRange, plan.DeleteNetwork{}, timeout, false},
		"a create that another error stopped":  {ownRange, plan.CreateNetwork{}, errOutdated, false},
		"a subnet from a pool, and it is made": {fromPool, plan.CreateSubnet{}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, clock := newReconciler(t)
			pass := &Pass{Reconciler: r, key: key, desired: test.desired}
			if err := pass.begin(test.step); err != nil {
				t.Fatal(err)
			}
			pass.end(test.step, plan.Actual{}, test.err)
			waits := func(network *samplecrdv1.Network, next plan.Step) bool {
				return (&Pass{Reconciler: r, key: key, network: network, desired: test.desired}).checkPending(next) != nil
			}
			for _, network := range []*samplecrdv1.Network{object("uid-1", ""), object("uid-2", "")} {
				for _, next := range []plan.Step{plan.CreateNetwork{}, plan.RemoveFinalizer{}, plan.RecordRouter{Replaces: "router-1"}} {
					if waits(network, next) != test.waits {
						t.Errorf("%q waits: %v, want %v", next, !test.waits, test.waits)
					}
				}
			}
			if waits(object("uid-1", ""), plan.FindNetwork{}) || waits(object("uid-1", ""), plan.RecordRouter{ID: "router-1"}) {
				t.Error("a look or a record has to wait")
			}
			if clock.Step(maxInFlight); waits(object("uid-1", ""), plan.CreateNetwork{}) {
				t.Error("a create waits after the time in which a request can be pending")
			}
		})
	}
}

// TestInheritedCreate: after a replica starts leading, a finalizer stays as long as
// a request of the former leader may be pending.
func TestInheritedCreate(t *testing.T) {
	ready := func(networkID string, since time.Duration) *samplecrdv1.Network {
		network := object("uid-1", networkID)
		network.Status.Conditions = []metav1.Condition{{
			Type: samplecrdv1.ConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(epoch.Add(-since)),
		}}
		return network
	}
	old, recent := ready("net-1", maxInFlight+time.Second), ready("net-1", maxInFlight)
	without, created := old.DeepCopy(), object("uid-1", "")
	without.Finalizers, created.Finalizers = nil, nil
	for name, test := range map[string]struct {
		before, now *samplecrdv1.Network
		found       bool
		waits       bool
	}{
		"not ready":                   {object("uid-1", ""), object("uid-1", ""), false, true},
		"ready for long, found":       {old, old, true, false},
		"ready for long, not found":   {old, old, false, true},
		"ready for long, now another": {old, ready("net-2", time.Hour), true, true},
		"ready for a short time":      {recent, recent, true, true},
		"another object of the name":  {object("uid-0", ""), created, false, false},
		"another set the finalizer":   {without, old, false, true},
		"created after the start":     {created, created, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, clock := newReconciler(t)
			r.Start(t.Context())
			_, _ = r.Begin(key, test.before)
			_, _ = r.Begin(key, test.now)
			waits := func(next plan.Step) bool {
				return (&Pass{Reconciler: r, key: key, network: test.now, found: test.found}).checkPending(next) != nil
			}
			if waits(plan.RemoveFinalizer{}) != test.waits {
				t.Errorf("the finalizer waits: %v, want %v", !test.waits, test.waits)
			}
			if waits(plan.CreateNetwork{}) {
				t.Error("a create waits, although it looks first")
			}
			if clock.Step(maxInFlight); waits(plan.RemoveFinalizer{}) {
				t.Error("the finalizer waits after the time in which a request can be pending")
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
	isOrphan := func() bool { return r.observe(key, nil, r.Desired(key, nil)).Finalizer }
	if isOrphan() {
		t.Error("a key without a record is an orphan")
	}
	r.DeleteOrphan(key)
	if !isOrphan() {
		t.Error("an orphan whose time has come is none")
	}
	_, _ = r.Begin(key, object("uid-1", ""))
	if isOrphan() {
		t.Error("an orphan whose object exists again is still one")
	}
	r.DeleteOrphan(key)
	if err := (&Pass{Reconciler: r, key: key, outcome: timeout}).Report(t.Context()); !errors.Is(err, timeout) || isOrphan() {
		t.Errorf("after a failure (%v), the next list does not decide again whether it is an orphan", err)
	}

	created := plan.Actual{}.After(create("r1"), neutron.Network{ID: "net-1", Description: owner.NetworkMarker("r1", false)})
	pass := &Pass{Reconciler: r, key: key}
	if err := pass.begin(create("r1")); err != nil {
		t.Fatal(err)
	}
	pass.end(create("r1"), created, nil)
	if !isOrphan() {
		t.Error("a network that no status names is no orphan")
	}
	_, _ = r.Begin(key, object("uid-1", "net-2"))
	if !isOrphan() {
		t.Error("a network is forgotten because the status names another one")
	}
	_, _ = r.Begin(key, object("uid-1", "net-1")) // also if the response to the status update was lost
	if isOrphan() {
		t.Error("a network that the status names is an orphan")
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
		pass, err := r.Begin(key, network)
		if err != nil {
			t.Fatal(err)
		}
		step, failure := create(fmt.Sprint("r", i)), failures[i%len(failures)]
		if err := pass.begin(step); err != nil {
			t.Fatal(err)
		}
		pass.end(step, plan.Actual{}, failure)
		if failure != nil {
			pass.noteRejection(failure)
		}
		_ = pass.correct(t.Context())
		gone := &Pass{Reconciler: r, key: key, outcome: failure}
		switch i % 4 {
		case 0:
			pass.end(plan.RemoveFinalizer{}, plan.Actual{}, nil)
		case 1:
			gone.noteRejection(refused)
		case 2:
			r.DeleteOrphan(key)
		}
		if err := gone.Report(t.Context()); failure == nil && err != nil {
			t.Fatal(err)
		}
	}
	clock.SetTime(clock.Now().Add(maxLateness + r.options.Retry.Rejected + time.Second))
	r.Listed(clock.Now())
	if len(r.memories) != 0 || len(r.ledger) != 0 {
		t.Errorf("%d records and %d accounts are left", len(r.memories), len(r.ledger))
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
			own.pending = false // it is written
			now = own.due
		}
		if most := 2*int(day/(10*time.Minute)) + 20; writes > most {
			t.Errorf("%s: they wrote %d times in a day, want at most %d", name, writes, most)
		}
	}
}

// TestEditDelay: a Network that is edited without end is synced ten times at once, and
// then once a second. Its deletion does not wait.
func TestEditDelay(t *testing.T) {
	r, clock := newReconciler(t)
	network := object("1", "")
	want := func(doing string, want time.Duration) {
		t.Helper()
		_, err := r.Begin(key, network)
		var waits status.WaitError
		if errors.As(err, &waits); waits.Left.Round(time.Millisecond) != want || (err == nil) != (want == 0) {
			t.Errorf("%s: Begin() = %v, for %v, want %v", doing, err, waits.Left, want)
		}
	}
	for range editBurst + 1 { // the first one is no edit
		network.Generation++
		want("an edit of the burst", 0)
		want("the same edit", 0)
	}
	network.Generation++
	want("after the burst", time.Second)
	clock.Step(400 * time.Millisecond)
	want("a little later", 600*time.Millisecond)
	clock.Step(600 * time.Millisecond)
	want("a second later", 0)
	network.Generation++
	want("after another sync", time.Second)
	network.DeletionTimestamp = new(metav1.Now())
	want("a deletion", 0)
}

// refused is the outcome of a sync of which Neutron has rejected a request.
var refused = &status.StepError{
	Step: plan.DeleteNetwork{}, Err: &neutron.Error{Class: neutron.ErrRefused, Status: 403, Type: "PolicyNotAuthorized"},
}

// TestRejection: a rejected request is not repeated before its time, unless a user requests
// it or the finalizer is to be set. For an orphan, no list repeats it either.
func TestRejection(t *testing.T) {
	network := object("1", "net-1")
	annotated := func(key, value string) *samplecrdv1.Network {
		changed := network.DeepCopy()
		changed.Annotations = map[string]string{key: value}
		return changed
	}
	retried, released := annotated(samplecrdv1.AnnotationRetry, "now"), network.DeepCopy()
	released.Finalizers = nil
	for name, test := range map[string]struct {
		rejected, now *samplecrdv1.Network
		passed        time.Duration
		repeats       bool
	}{
		"the same spec":              {network, network, 0, false},
		"another annotation":         {network, annotated("example.com/note", "a label of somebody"), 0, false},
		"a requested retry":          {network, retried, 0, true},
		"the same requested retry":   {retried, retried, 0, false},
		"the finalizer was removed":  {network, released, 0, true},
		"an orphan":                  {nil, nil, 0, false},
		"an orphan, after some time": {nil, nil, time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, clock := newReconciler(t)
			(&Pass{Reconciler: r, key: key, network: test.rejected}).noteRejection(refused)
			clock.Step(test.passed)
			r.Listed(clock.Now())
			if err := (&Pass{Reconciler: r, key: key, network: test.now}).rejection(); (err == nil) != test.repeats {
				t.Errorf("rejection() = %v, want that the request is repeated: %v", err, test.repeats)
			}
		})
	}
}

// TestTakeOver: what another Reconciler has worked on since is forgotten, and what the status
// says of a range stays true: a start writes nothing.
func TestTakeOver(t *testing.T) {
	r, clock := newReconciler(t)
	network := func(name string, age time.Duration) *samplecrdv1.Network {
		return &samplecrdv1.Network{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, CreationTimestamp: metav1.NewTime(clock.Now().Add(-age))},
			Spec:       samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24"},
		}
	}
	older, younger := network("older", time.Hour), network("younger", time.Minute)
	r.memories[cache.MetaObjectToName(older)] = memory{inSync: true}
	r.memories[cache.NewObjectName("b", "older")] = memory{inSync: true}
	r.TakeOver("a", []*samplecrdv1.Network{younger, older})
	if len(r.memories) != 1 {
		t.Errorf("the memories are %v, want only that of the other namespace", r.memories)
	}
	if r.laterOfRange[cache.MetaObjectToName(older)] || !r.laterOfRange[cache.MetaObjectToName(younger)] {
		t.Error("the younger Network does not have the range of the older one")
	}
}

// TestHasOwnStatus: the event of a status that this process writes needs no sync, even if it
// arrives before the response, or after the next write has begun. Every other status does.
func TestHasOwnStatus(t *testing.T) {
	network := object("uid-1", "")
	r, _ := newReconciler(t, network)
	r.client = fake.NewClientset() // no write has a response
	want := func(own bool, networkIDs ...string) {
		t.Helper()
		for _, id := range networkIDs {
			if got := r.HasOwnStatus(object("uid-1", id)); got != own {
				t.Errorf("HasOwnStatus() of %q = %v, want %v", id, got, own)
			}
		}
	}
	want(false, "", "first")
	for _, id := range []string{"first", "second", "third"} {
		_ = (&Pass{Reconciler: r, key: key, network: network}).writeStatus(t.Context(), object("", id).Status)
	}
	want(false, "", "first", "of another controller")
	want(true, "second", "third", "third")
	want(false, "second") // long ago
}

package drift

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/store"
	"github.com/samplecrd/network-controller/pkg/watchdog"
)

const (
	period = 30 * time.Second
	grace  = 10 * time.Minute
)

// lists is a Neutron that only lists. It counts the lists.
type lists struct {
	neutron.Client
	networks []neutron.Network
	err      error
	listed   chan struct{}
	stuck    chan struct{} // closed to end the lists, or nil
	take     func()        // lets the time of a list pass
}

func (l *lists) Cloud(context.Context) (string, error) { return "cloud", nil }

func (l *lists) Networks(context.Context, neutron.NetworkFilter) ([]neutron.Network, error) {
	l.listed <- struct{}{}
	if l.stuck != nil {
		<-l.stuck
	}
	l.take()
	return l.networks, l.err
}

func (l *lists) Subnets(context.Context, neutron.SubnetFilter) ([]neutron.Subnet, error) {
	return nil, l.err
}

func (l *lists) RouterInterfaces(context.Context, string) ([]neutron.RouterInterface, error) {
	return nil, l.err
}

func (l *lists) Extensions(context.Context) ([]string, error) { return nil, l.err }

// leader is a Reconciler for which the Networks of some names have drifted.
type leader struct {
	started time.Time
	drifted []string
	orphans []cache.ObjectName
	// leftovers are the names of objects whose networks the controller itself left.
	leftovers []string
	listed    []time.Time
}

func (l *leader) StartedAt() time.Time { return l.started }

func (l *leader) Drift(network *samplecrdv1.Network) (needsSync, drifted bool) {
	isDrifted := slices.Contains(l.drifted, network.Name)
	return isDrifted, isDrifted
}

func (l *leader) Listed(began time.Time) (keys []cache.ObjectName) {
	l.listed = append(l.listed, began)
	for _, name := range l.leftovers {
		keys = append(keys, cache.NewObjectName("default", name))
	}
	return keys
}

func (l *leader) HasLeftover(key cache.ObjectName) bool {
	return slices.Contains(l.leftovers, key.Name)
}

func (l *leader) DeleteOrphan(key cache.ObjectName) { l.orphans = append(l.orphans, key) }

// world is a Detector with everything around it.
type world struct {
	*Detector
	recorder *record.FakeRecorder
	neutron  *lists
	leader   *leader
	clock    *testingclock.FakeClock
	watchdog *watchdog.Watchdog

	mu       sync.Mutex
	enqueued []string
}

// newWorld returns a world with the Networks a and b of the namespace default.
func newWorld(t *testing.T) *world {
	t.Helper()
	networks, err := store.NewStatic(klog.Background(),
		store.ByNamespace[[]*samplecrdv1.Network]{metav1.NamespaceAll: {network("a"), network("b")}})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		recorder: record.NewFakeRecorder(10), neutron: &lists{listed: make(chan struct{}, 100), take: func() {}},
		leader: &leader{}, clock: testingclock.NewFakeClock(time.Unix(1_000_000, 0)),
	}
	w.watchdog = watchdog.New(w.clock)
	w.Detector = New(Dependencies{
		Neutron: neutron.NewCache(w.neutron, w.clock.Now), Networks: networks, Reconciler: w.leader, Events: w.recorder,
		Observer: w.watchdog, Clock: w.clock,
	}, Options{Cluster: "c1", ResyncPeriod: period, StartTimeout: time.Minute, OrphanGracePeriod: grace})
	w.Detector.enqueue = w.enqueue
	t.Cleanup(w.metrics.Close)
	return w
}

func network(name string) *samplecrdv1.Network {
	return &samplecrdv1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func (w *world) enqueue(key cache.ObjectName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.enqueued = append(w.enqueued, key.Name)
}

// resyncLater lets time pass, and lists. It returns the keys that were enqueued.
func (w *world) resyncLater(ctx context.Context, pause time.Duration) []string {
	w.clock.Step(pause)
	w.enqueued = nil
	_, _ = w.resync(ctx)
	slices.Sort(w.enqueued)
	return w.enqueued
}

// waitForTimer waits until the Detector waits for its next list.
func (w *world) waitForTimer(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !w.clock.HasWaiters(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the detector does not wait for its next list")
		}
	}
}

// TestPeriod: the first list comes at once, and each further one within the period,
// but not much earlier.
func TestPeriod(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.Start(ctx, w.enqueue)
	<-w.neutron.listed
	for range 5 {
		w.waitForTimer(t)
		w.clock.Step(period*3/4 - time.Millisecond)
		select {
		case <-w.neutron.listed:
			t.Error("listed before three quarters of the period")
		default:
		}
		w.clock.Step(period/4 + time.Millisecond)
		select {
		case <-w.neutron.listed:
		case <-time.After(10 * time.Second):
			t.Fatal("no list within the period")
		}
	}
	cancel()
	w.Stop()
}

// TestStuckList: a list that never ends, even if its context does, delays neither
// the start nor the end for long, and the watchdog notices it.
func TestStuckList(t *testing.T) {
	w := newWorld(t)
	w.neutron.stuck = make(chan struct{})
	defer close(w.neutron.stuck)
	within := func(limit time.Duration, doing string, call, waitUntilBegun func()) {
		t.Helper()
		done := make(chan struct{})
		go func() { defer close(done); call() }()
		waitUntilBegun()
		w.waitForTimer(t)
		w.clock.Step(limit - time.Millisecond)
		select {
		case <-done:
			t.Errorf("%s did not wait", doing)
		default:
		}
		w.clock.Step(time.Millisecond)
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s waits for a stuck list", doing)
		}
	}
	within(w.options.StartTimeout, "Start", func() { w.Start(t.Context(), w.enqueue) }, func() { <-w.neutron.listed })
	if err := w.watchdog.Check(w.options.StartTimeout); err != nil {
		t.Errorf("the list is stuck at once: %v", err)
	}
	w.clock.Step(time.Minute)
	if err := w.watchdog.Check(time.Minute); err == nil || err.Error() != "the list of Neutron's state is stuck: no progress for 2m0s" {
		t.Errorf("Check() = %v", err)
	}
	within(stopTimeout, "Stop", w.Stop, func() {})
}

// TestRequestedList: a sync can request a list before its time, but not from a Neutron whose
// last list failed.
func TestRequestedList(t *testing.T) {
	for err, want := range map[error]int{nil: 2, &neutron.Error{Class: neutron.ErrUnavailable}: 1} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.neutron.err, w.Detector.clock = err, clock.RealClock{} // that of the bubble
			w.Start(t.Context(), w.enqueue)
			w.Detector.neutron.RequestRefresh(w.clock.Now().Add(time.Hour))
			synctest.Wait()
			if got := len(w.neutron.listed); got != want {
				t.Errorf("after the result %v and a request, there were %d lists, want %d", err, got, want)
			}
			w.Stop()
		})
	}
}

// TestStartEnds: a context that ends ends the start.
func TestStartEnds(t *testing.T) {
	w := newWorld(t)
	w.neutron.stuck = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.Start(ctx, w.enqueue)
	close(w.neutron.stuck)
	w.Stop()
}

// TestPause: lists take at most a tenth of the time. Nothing is concluded from a list that
// fails, and Retry-After extends the pause, within bounds.
func TestPause(t *testing.T) {
	unavailable := func(after time.Duration, kind string) error {
		return &neutron.Error{Class: neutron.ErrUnavailable, RetryAfter: after, Type: kind}
	}
	withoutCloud := &neutron.Error{Class: neutron.ErrUnavailable, Cause: neutron.ErrNoCloud}
	const short = period * 3 / 4
	for name, test := range map[string]struct {
		err         error
		took        time.Duration
		least, most time.Duration
	}{
		"a fast list":               {nil, time.Second, short, period},
		"a slow list":               {nil, 9 * time.Second, 81 * time.Second, 81 * time.Second},
		"unavailable":               {unavailable(0, ""), 0, short, period},
		"Retry-After":               {unavailable(time.Minute, ""), 0, time.Minute, time.Minute},
		"an hour until Retry-After": {unavailable(time.Hour, ""), 0, maxRetryAfter, maxRetryAfter},
		"timed out":                 {unavailable(0, ""), 15 * time.Second, 135 * time.Second, 135 * time.Second},
		"waited, and was not sent":  {unavailable(0, neutron.NotSent), 15 * time.Second, short, period},
		"without a cloud":           {withoutCloud, 0, maxRetryAfter, maxRetryAfter},
		"another error":             {errors.New("closed"), 0, short, period},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.leader.started, w.leader.drifted, w.neutron.err = w.clock.Now(), []string{"a"}, test.err
			w.clock.Step(time.Second)
			w.neutron.take = func() { w.clock.Step(test.took) }
			pause, err := w.resync(t.Context())
			if !errors.Is(err, test.err) || pause < test.least || pause > test.most {
				t.Errorf("resync() = %v, %v, want %v to %v, %v", pause, err, test.least, test.most, test.err)
			}
			if (len(w.enqueued) > 0) != (test.err == nil) {
				t.Errorf("enqueued %v", w.enqueued)
			}
			// It is 0 until a replica is ready: an alert fires.
			if got := metric(t, "neutron_cache_period_seconds"); got != int(pause.Seconds()) {
				t.Errorf("the metric has a pause of %d s, want %v", got, pause)
			}
		})
	}
}

// TestOnlyTheLeaderEnqueues: a standby only fills the cache, and a new leader does
// not trust a list that began before it started leading.
func TestOnlyTheLeaderEnqueues(t *testing.T) {
	w := newWorld(t)
	w.leader.drifted = []string{"a"}
	if got := w.resyncLater(t.Context(), period); len(got) > 0 {
		t.Errorf("a standby enqueued %v", got)
	}
	w.leader.started = w.clock.Now().Add(period)
	if got := w.resyncLater(t.Context(), period); len(got) > 0 {
		t.Errorf("a list that began when this replica started leading enqueued %v", got)
	}
	if diff := cmp.Diff([]string{"a"}, w.resyncLater(t.Context(), period)); diff != "" {
		t.Errorf("the leader enqueued (-want +got):\n%s", diff)
	}
}

// owned returns a network that was created for a Network of the namespace default.
func owned(id, name string) neutron.Network {
	return neutron.Network{ID: id, Description: neutron.Owner{Cluster: "c1", Namespace: "default", Name: name}.Marker()}
}

// TestOrphans: a network whose object does not exist is deleted when all networks
// of that object have been orphans for the grace period.
func TestOrphans(t *testing.T) {
	w := newWorld(t)
	w.leader.started = w.clock.Now()
	want := func(step string, enqueued ...string) {
		t.Helper()
		got := w.resyncLater(t.Context(), grace/2)
		var deleted []string
		for _, key := range w.leader.orphans {
			deleted = append(deleted, key.Name)
		}
		if !slices.Equal(got, enqueued) || !slices.Equal(deleted, enqueued) {
			t.Errorf("%s: enqueued %v, and deletes %v, want %v", step, got, deleted, enqueued)
		}
		w.leader.orphans = nil
	}
	w.neutron.networks = []neutron.Network{
		owned("net-1", "a"), owned("net-2", "gone"),
		{ID: "net-3", Description: neutron.Owner{Cluster: "c1", Namespace: "default", Name: "gone"}.RetainedMarker()},
		{ID: "net-4", Description: neutron.Owner{Cluster: "c2", Namespace: "default", Name: "gone"}.Marker()},
		{ID: "net-5", Description: "samplecrd.k8s.io owner: c1/nonsense"},
	}
	want("found")
	want("half of the grace period")
	w.neutron.networks = append(w.neutron.networks, owned("net-6", "gone"))
	want("the grace period, but another network of the object was found")
	want("half of its grace period")
	want("the grace period of both", "gone")
	want("as long as it exists", "gone")
	w.neutron.networks = w.neutron.networks[:1]
	want("deleted")

	w.neutron.networks, w.leader.leftovers = []neutron.Network{owned("net-7", "late")}, []string{"late"}
	if got := w.resyncLater(t.Context(), grace/2); !slices.Equal(got, []string{"late"}) || w.leader.orphans != nil {
		t.Errorf("what the controller left: enqueued %v, and deletes %v as orphans; want no grace period", got, w.leader.orphans)
	}
	if len(w.leader.listed) != 8 || w.leader.listed[7] != w.clock.Now() {
		t.Errorf("the leader was told of the lists %v", w.leader.listed)
	}

	w.leader.leftovers = nil

	w.options.OrphanGracePeriod = 0
	w.neutron.networks = []neutron.Network{owned("net-2", "gone")}
	for range 5 {
		want("without -delete-orphans")
	}
}

// TestTooManyOrphans: if there are more orphans than the limit, none is deleted. An event
// reports it when their number changes, and names the flag.
func TestTooManyOrphans(t *testing.T) {
	w := newWorld(t)
	w.leader.started = w.clock.Now()
	for _, test := range []struct {
		step     string
		limit    int
		orphans  string // the names of the objects whose networks exist
		paused   int
		reported bool
		deleted  string
	}{
		{"found", 3, "1 2 3 3", 0, false, ""},
		{"four networks of three objects", 3, "1 2 3 3", 4, true, ""},
		{"as long as they exist", 3, "1 2 3 3", 4, false, ""},
		{"one more, which is not due", 3, "1 2 3 3 5", 5, true, ""},
		{"all are due", 3, "1 2 3 3 5", 5, false, ""},
		{"one more than confirmed, which is not due", 5, "1 2 3 3 5 6", 6, true, ""},
		{"confirmed", 5, "1 2 3 3 5", 0, false, "1 2 3 5"},
		{"not confirmed", 3, "1 2 3 3 5", 5, true, ""},
		{"fewer are left", 3, "1 2 3", 0, false, "1 2 3"},
		{"one more, without a limit", 0, "1 2 3 4", 0, false, "1 2 3"},
		{"without a limit", 0, "1 2 3 4", 0, false, "1 2 3 4"},
	} {
		w.options.MaxOrphanDeletions, w.neutron.networks, w.leader.orphans = test.limit, nil, nil
		for i, name := range strings.Fields(test.orphans) {
			w.neutron.networks = append(w.neutron.networks, owned(fmt.Sprint("net-", i), name))
		}
		enqueued := strings.Join(w.resyncLater(t.Context(), grace), " ")
		if enqueued != test.deleted || len(w.leader.orphans) != len(strings.Fields(test.deleted)) || metric(t, "orphan_deletions_paused") != test.paused {
			t.Errorf("%s: enqueued %s, deletes %v, paused are %d: %+v", test.step, enqueued, w.leader.orphans, metric(t, "orphan_deletions_paused"), test)
		}
		event := ""
		if len(w.recorder.Events) > 0 {
			event = <-w.recorder.Events
		}
		cure := fmt.Sprintf("-max-orphan-deletions=%d.", test.paused)
		isRight := strings.HasPrefix(event, "Warning OrphanDeletionsPaused ") && strings.HasSuffix(event, cure)
		if isRight != test.reported || (event != "") != test.reported {
			t.Errorf("%s: the event is %q", test.step, event)
		}
	}
}

// metric returns a gauge without labels.
func metric(t *testing.T, name string) int {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "samplecrd_"+name {
			return int(family.GetMetric()[0].GetGauge().GetValue())
		}
	}
	return -1
}

package reconcile

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/client/clientset/versioned/fake"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
	"github.com/samplecrd/network-controller/pkg/status"
)

// scene is a Reconciler with an embedded Neutron and an API server in memory, which keeps
// no object because of its finalizers: the test deletes it.
type scene struct {
	*testing.T
	server *embedded.Server
	kube   *fake.Clientset
	cloud  neutron.Client
	clock  *testingclock.FakeClock
	r      *Reconciler
}

// slow is a Neutron that executes the first creation of a subnet late.
type slow struct {
	neutron.Client
	isSlow bool
	late   func()
}

func (s *slow) CreateSubnet(ctx context.Context, subnet neutron.NewSubnet) (neutron.Subnet, error) {
	if s.isSlow {
		s.isSlow, s.late = false, func() { _, _ = s.Client.CreateSubnet(ctx, subnet) }
		return neutron.Subnet{}, timeout
	}
	return s.Client.CreateSubnet(ctx, subnet)
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{
		T: t, server: embedded.New(embedded.Options{}), kube: fake.NewSimpleClientset(),
		clock: testingclock.NewFakeClock(epoch),
	}
	s.must(s.server.Listen(""))
	t.Cleanup(func() { _ = s.server.Close() })
	var err error
	s.cloud, err = openstack.New(s.server.URL(), openstack.Options{CloudIdentity: "test"})
	s.must(err)
	s.restart(s.cloud)
	return s
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// restart begins a new process.
func (s *scene) restart(client neutron.Client) {
	s.clock.Step(time.Minute)
	s.r = New(Dependencies{
		Client: s.kube, Networks: known(s.T), Neutron: neutron.NewCache(client, s.clock.Now),
		Events: record.NewFakeRecorder(1000), Clock: s.clock,
	}, Options{
		Cluster: "test", FieldManager: "test", AllowAdoption: Namespaces{""}, MaxInFlight: maxInFlight,
		MaxLateness: maxLateness, Retry: DefaultRetryDelays(),
		IsDefinitionDeleted: func(context.Context) (bool, error) { return false, nil },
	})
	s.r.Start(s.Context())
	s.clock.Step(time.Minute)
	s.list()
}

// list lists Neutron's state, as the drift detector does, and syncs what is left over.
func (s *scene) list() {
	s.clock.Step(30 * time.Second)
	listing, err := s.r.neutron.Refresh(s.Context())
	s.must(err)
	s.store()
	for _, leftover := range s.r.Listed(listing.Began) {
		if leftover == key {
			_ = s.sync() // what is pending is tried again after the next list
		}
	}
}

// listUntilLate lists until nothing late can appear any more.
func (s *scene) listUntilLate() {
	for range 60 {
		s.list()
	}
}

func (s *scene) get() *samplecrdv1.Network {
	network, err := s.kube.SamplecrdV1().Networks(key.Namespace).Get(s.Context(), key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.must(err)
	return network
}

// store makes the informers up to date.
func (s *scene) store() *samplecrdv1.Network {
	network := s.get()
	if network == nil {
		s.r.networks = known(s.T)
	} else {
		s.r.networks = known(s.T, network)
	}
	return network
}

// step syncs once.
func (s *scene) step() error {
	s.Helper()
	pass, err := s.r.Begin(key, s.store())
	s.must(err)
	pass.Observe()
	pass.Apply(s.Context())
	return pass.Report(s.Context())
}

// sync syncs until the outcome needs no retry within a minute, at most five times.
func (s *scene) sync() (err error) {
	s.Helper()
	for range 5 {
		network := s.store()
		var pass *Pass
		if pass, err = s.r.Begin(key, network); err != nil {
			return err
		}
		pass.Observe()
		pass.Apply(s.Context())
		if err = pass.Report(s.Context()); err == nil {
			return nil
		}
		s.Logf("sync: %v", err)
		s.clock.Step(31 * time.Second)
	}
	return err
}

func (s *scene) create(uid types.UID, spec samplecrdv1.NetworkSpec, metadata metav1.ObjectMeta) {
	network := &samplecrdv1.Network{ObjectMeta: metadata, Spec: spec}
	network.Namespace, network.Name, network.UID, network.Generation = key.Namespace, key.Name, uid, 1
	_, err := s.kube.SamplecrdV1().Networks(key.Namespace).Create(s.Context(), network, metav1.CreateOptions{})
	s.must(err)
}

// remove deletes the object as kubectl delete does, and then syncs the key until it is gone.
func (s *scene) remove() {
	s.Helper()
	network := s.get()
	network.DeletionTimestamp, network.Generation = &metav1.Time{Time: s.clock.Now()}, network.Generation+1
	_, err := s.kube.SamplecrdV1().Networks(key.Namespace).Update(s.Context(), network, metav1.UpdateOptions{})
	s.must(err)
	if err := s.sync(); err != nil {
		s.Logf("deletion: %v", err)
	}
	if HasFinalizer(s.get()) {
		s.Fatal("the finalizer is still set")
	}
	s.vanish()
}

// vanish lets the object disappear, as if somebody had removed its finalizer.
func (s *scene) vanish() {
	s.must(s.kube.SamplecrdV1().Networks(key.Namespace).Delete(s.Context(), key.Name, metav1.DeleteOptions{}))
	_ = s.sync()
}

func (s *scene) wantExists(networkID, subnetID string) {
	s.Helper()
	networks, err := s.cloud.Networks(s.Context(), neutron.NetworkFilter{ID: networkID})
	s.must(err)
	subnets, err := s.cloud.Subnets(s.Context(), neutron.SubnetFilter{NetworkID: networkID})
	s.must(err)
	if len(networks) != 1 {
		s.Errorf("the network %s was deleted", networkID)
	}
	if subnetID != "" && (len(subnets) != 1 || subnets[0].ID != subnetID) {
		s.Errorf("the subnet %s was deleted", subnetID)
	}
}

func (s *scene) foreignNetwork() string {
	network, err := s.cloud.CreateNetwork(s.Context(), neutron.NewNetwork{Name: "foreign", Description: "of somebody"})
	s.must(err)
	return network.ID
}

var ordinary = samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24"}

// TestForcedFinalizer: the network of an object whose finalizer a person removes by
// force stays, and is an orphan (docs/operate/troubleshooting.md).
func TestForcedFinalizer(t *testing.T) {
	for name, recreate := range map[string]func(*scene, metav1.ObjectMeta){
		"control: created again": func(s *scene, _ metav1.ObjectMeta) { s.create("second", ordinary, metav1.ObjectMeta{}) },
		"created again from its saved YAML, which has the finalizer": func(s *scene, saved metav1.ObjectMeta) {
			s.create("second", ordinary, metav1.ObjectMeta{Finalizers: saved.Finalizers, Annotations: saved.Annotations})
		},
		"created again, and the response to the finalizer is lost": func(s *scene, _ metav1.ObjectMeta) {
			s.create("second", ordinary, metav1.ObjectMeta{})
			s.loseFinalizer()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.create("first", ordinary, metav1.ObjectMeta{})
			s.must(s.sync())
			saved := s.get().ObjectMeta
			s.remove()
			s.list()
			recreate(s, saved)
			s.must(s.sync())
			created := s.get().Status
			for range 10 { // ten hours later
				s.clock.Step(time.Hour)
				s.list()
			}
			s.vanish() // kubectl patch --type=json, as documented
			for range 5 {
				s.list()
			}
			s.wantExists(created.NetworkID, created.SubnetID)
		})
	}
}

// loseFinalizer lets the response to the next change of the finalizers be lost.
func (s *scene) loseFinalizer() {
	lost := false
	s.kube.PrependReactor("patch", "networks", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if lost || action.GetSubresource() != "" {
			return false, nil, nil
		}
		lost = true
		_, _, err := clienttesting.ObjectReaction(s.kube.Tracker())(action)
		return true, nil, errors.Join(err, errors.New("no response"))
	})
}

// TestLateNetwork: what a former leader has requested is deleted if it comes after the
// deletion of the object, also if the response to the removal of the finalizer is lost.
func TestLateNetwork(t *testing.T) {
	s := newScene(t)
	s.create("first", ordinary, metav1.ObjectMeta{})
	s.must(s.sync())
	s.restart(s.cloud)
	s.loseFinalizer()
	s.remove()
	late := create("late").Network
	late.Description = s.r.owner(key).NetworkMarker("late", false)
	_, err := s.cloud.CreateNetwork(t.Context(), late)
	s.must(err)
	s.listUntilLate()
	networks, err := s.cloud.Networks(t.Context(), neutron.NetworkFilter{Name: late.Name})
	s.must(err)
	if len(networks) != 0 || len(s.r.ledger) != 0 {
		t.Errorf("left are %d networks and %d accounts: %+v", len(networks), len(s.r.ledger), s.r.ledger)
	}
}

// TestOrphanOfAdopting: without -delete-orphans, an orphan stays, also if an object of its
// name adopts another network, and is deleted.
func TestOrphanOfAdopting(t *testing.T) {
	s := newScene(t)
	s.create("first", ordinary, metav1.ObjectMeta{})
	s.must(s.sync())
	orphan := s.get().Status
	s.vanish()
	s.restart(s.cloud)
	s.list()
	s.wantExists(orphan.NetworkID, orphan.SubnetID)
	s.create("second", adopting(s.foreignNetwork()), metav1.ObjectMeta{})
	s.must(s.sync())
	s.remove()
	for range 5 {
		s.list()
	}
	s.wantExists(orphan.NetworkID, orphan.SubnetID)
}

func adopting(networkID string) samplecrdv1.NetworkSpec {
	return samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", NetworkID: networkID}
}

// TestRetainOnAdopted: deletionPolicy: Retain keeps everything.
func TestRetainOnAdopted(t *testing.T) {
	s := newScene(t)
	id := s.foreignNetwork()
	spec := adopting(id)
	spec.DeletionPolicy = samplecrdv1.DeletionPolicyRetain
	s.create("first", spec, metav1.ObjectMeta{})
	s.kube.PrependReactor("patch", "networks", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.GetSubresource() == "status", nil, errors.New("somebody has deleted the object: conflict")
	})
	_ = s.step()
	subnets, err := s.cloud.Subnets(t.Context(), neutron.SubnetFilter{NetworkID: id})
	s.must(err)
	if len(subnets) != 1 {
		t.Fatal("there is no subnet")
	}
	s.remove()
	for range 5 {
		s.list()
	}
	s.wantExists(id, subnets[0].ID)
}

// TestMemoryWithoutCloud: nothing outlives its key, also in a controller without a cloud.
func TestMemoryWithoutCloud(t *testing.T) {
	s := newScene(t)
	none := openstack.NewUnavailable(func() neutron.Error { return neutron.Error{Message: "no cloud"} })
	s.r.neutron = neutron.NewCache(none, s.clock.Now)
	s.create("first", ordinary, metav1.ObjectMeta{})
	_ = s.sync()
	s.vanish()
	for range 10 {
		s.clock.Step(time.Hour)
		if listing, err := s.r.neutron.Refresh(t.Context()); err == nil { // as the drift detector does
			s.r.Listed(listing.Began)
		}
	}
	if len(s.r.memories) != 0 {
		t.Errorf("%d memories are left", len(s.r.memories))
	}
}

// TestOverwrittenStatusSlowsDown: as long as another client overwrites each correction, the
// next one comes later. A sync before that writes nothing, and says how long it waits.
func TestOverwrittenStatusSlowsDown(t *testing.T) {
	s := newScene(t)
	s.create("first", ordinary, metav1.ObjectMeta{})
	s.must(s.sync())
	events := s.r.events.(*record.FakeRecorder).Events
	// want lets the other client write, and the time pass until the correction.
	want := func(doing string, shortest time.Duration) (waited time.Duration) {
		t.Helper()
		theirs := s.get()
		ours := theirs.Status
		theirs.Status.MTU = 9000
		_, err := s.kube.SamplecrdV1().Networks(key.Namespace).UpdateStatus(t.Context(), theirs, metav1.UpdateOptions{})
		s.must(err)
		for len(events) > 0 {
			<-events
		}
		var waits, again status.WaitError
		if !errors.As(s.step(), &waits) || !errors.As(s.step(), &again) || waits.Left != again.Left ||
			waits.Left < shortest || waits.Left > shortest*3/2 {
			t.Errorf("%s: the sync waits for %v, then %v; want %v to %v", doing, waits.Left, again.Left, shortest, shortest*3/2)
		}
		s.clock.Step(waits.Left - time.Millisecond)
		if err := s.step(); err == nil || s.get().Status.MTU != 9000 || len(events) > 0 {
			t.Errorf("%s: the status is corrected before the delay of %v", doing, waits.Left)
		}
		s.clock.Step(time.Millisecond)
		if err := s.step(); err != nil || !status.IsSame(s.get().Status, ours) || len(events) != 1 {
			t.Errorf("%s: the status is not corrected after the delay of %v: %v, %d events", doing, waits.Left, err, len(events))
		}
		return waits.Left
	}
	last := want("at first", 5*time.Second)
	for _, delay := range []time.Duration{10, 20, 40, 80, 160, 320, 600, 600, 600} {
		s.clock.Step(last) // so long does the other controller wait
		last = want("again", delay*time.Second)
	}
	s.clock.Step(20*time.Minute - time.Millisecond)
	want("in the last moment", 10*time.Minute)
	s.clock.Step(20 * time.Minute)
	want("after a while", 5*time.Second)
	want("at once", 10*time.Second)
	edited := s.get()
	edited.Generation, edited.Spec.Gateway, edited.Status.MTU = 2, "10.0.0.1", 9000 // nothing to change in Neutron
	_, err := s.kube.SamplecrdV1().Networks(key.Namespace).Update(t.Context(), edited, metav1.UpdateOptions{})
	s.must(err)
	s.must(s.step()) // the status for another spec does not wait
}

// rejectStatus makes the API server reject the statuses that name a network.
func (s *scene) rejectStatus() {
	s.kube.PrependReactor("patch", "networks", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := string(action.(clienttesting.PatchAction).GetPatch())
		return strings.Contains(patch, "networkID"), nil, errors.New("rejected")
	})
}

func (s *scene) createRouter() {
	response, err := http.Post(s.server.URL()+"/v2.0/routers", "", strings.NewReader(`{"router":{"name":"edge"}}`))
	s.must(err)
	s.must(response.Body.Close())
}

// TestRouterOfAdopted: an adopted subnet is detached if the spec has another range by now, or
// if the object is deleted then.
func TestRouterOfAdopted(t *testing.T) {
	for name, edits := range map[string][]string{
		"deleted":                            nil,
		"another range":                      {"10.1.0.0/24"},
		"one that overlaps":                  {"10.0.0.0/16"},
		"one that overlaps, and another":     {"10.0.0.0/16", "10.1.0.0/24"},
		"another range, and the first again": {"10.1.0.0/24", "10.0.0.0/24"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.createRouter()
			spec := adopting(s.foreignNetwork())
			spec.Router = &samplecrdv1.RouterReference{Name: "edge"}
			theirs, err := s.cloud.CreateSubnet(t.Context(), neutron.NewSubnet{
				NetworkID: spec.NetworkID, CIDR: netip.MustParsePrefix(spec.CIDR),
				SubnetSettings: neutron.SubnetSettings{Gateway: new(netip.MustParseAddr("10.0.0.1"))},
			})
			s.must(err)
			want := func(count int) {
				t.Helper()
				attached, err := s.cloud.RouterInterfaces(t.Context(), spec.NetworkID)
				s.must(err)
				if len(attached) != count {
					t.Errorf("%d subnets are attached, want %d: %+v", len(attached), count, attached)
				}
			}
			s.create("first", spec, metav1.ObjectMeta{})
			s.must(s.sync())
			want(1)
			for _, cidr := range edits {
				network := s.get()
				network.Spec.CIDR, network.Generation = cidr, network.Generation+1
				_, err := s.kube.SamplecrdV1().Networks(key.Namespace).Update(t.Context(), network, metav1.UpdateOptions{})
				s.must(err)
				_ = s.sync()
				want(1)
			}
			s.remove()
			want(0)
			s.wantExists(spec.NetworkID, theirs.ID)
		})
	}
}

// TestNothingLeftOnAdopted: a subnet of ours on an adopted network is deleted if its object is
// gone before a status names the subnet, however late it comes, although it is attached, and
// although there is another object of the name meanwhile.
func TestNothingLeftOnAdopted(t *testing.T) {
	for name, play := range map[string]func(*scene, samplecrdv1.NetworkSpec, *slow){
		"attached to a router": func(s *scene, spec samplecrdv1.NetworkSpec, _ *slow) {
			spec.Router = &samplecrdv1.RouterReference{Name: "edge"}
			s.rejectStatus()
			s.create("first", spec, metav1.ObjectMeta{})
			_ = s.step()
			s.vanish()
		},
		"late": func(s *scene, spec samplecrdv1.NetworkSpec, client *slow) {
			client.isSlow = true
			s.create("first", spec, metav1.ObjectMeta{})
			_ = s.step()
			s.vanish()
			client.late()
		},
		"late, and the object is created again for another network": func(s *scene, spec samplecrdv1.NetworkSpec, client *slow) {
			client.isSlow = true
			s.create("first", spec, metav1.ObjectMeta{})
			_ = s.step()
			s.remove()
			s.create("second", adopting(s.foreignNetwork()), metav1.ObjectMeta{})
			s.must(s.sync())
			client.late() // about a minute after the deletion
			s.list()
			s.remove()
		},
		"late, and the policy is Delete": func(s *scene, spec samplecrdv1.NetworkSpec, client *slow) {
			spec.DeletionPolicy, client.isSlow = samplecrdv1.DeletionPolicyDelete, true
			s.rejectStatus()
			s.create("first", spec, metav1.ObjectMeta{})
			_ = s.step()
			s.remove()
			client.late()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			client := &slow{Client: s.cloud}
			s.restart(client)
			s.createRouter()
			id := s.foreignNetwork()
			play(s, adopting(id), client)
			s.listUntilLate()
			s.wantExists(id, "")
			subnets, err := s.cloud.Subnets(t.Context(), neutron.SubnetFilter{NetworkID: id})
			s.must(err)
			if len(subnets) != 0 || len(s.r.ledger) != 0 {
				t.Errorf("left are %d subnets and %d accounts: %+v", len(subnets), len(s.r.ledger), s.r.ledger)
			}
		})
	}
}

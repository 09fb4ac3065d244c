package stories

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/faults"
)

const (
	stormKills    = 12 // unless STORM_KILLS is set
	stormNetworks = 250
	stormUsers    = 4
	// maxLife is how long a controller lives at most before it is killed.
	maxLife = time.Second
)

// weather is the storm. Users create, change and delete hundreds of Networks;
// Neutron is slow, and requests and responses get lost. The controller is killed
// at random moments, and started again immediately, with leader election.
type weather struct {
	*story
	first   *controller
	changes atomic.Int32
}

// storm checks that in the end Neutron has the desired network of each Network,
// once: no duplicate, no orphan, no lost deletion. STORM_SEED repeats the
// random choices of a run, and STORM_KILLS is the number of kills.
func storm(t *testing.T, clusters clusterPool) {
	if testing.Short() || realNeutron != "" {
		t.Skip("the storm takes half a minute; a real Neutron in one Python process would take an hour")
	}
	seed := envNumber(t, "STORM_SEED", uint64(time.Now().UnixNano()))
	kills := envNumber(t, "STORM_KILLS", stormKills)
	t.Logf("STORM_SEED=%d STORM_KILLS=%d", seed, kills)
	s, err := newStory(t, clusters)
	if err != nil {
		t.Fatal(err)
	}
	defer s.end()
	w := &weather{story: s, first: newController(t)}
	s.controllers["first"] = w.first

	w.rage(seed, kills)
	calm := time.Now()
	if err := s.eventually(w.converged); err != nil {
		t.Fatal(err)
	}
	left, err := s.client.SamplecrdV1().Networks(s.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) == 0 {
		t.Fatalf("there are no Networks left: %v", err)
	}
	t.Logf("%d kills, %d changes by users, %d requests to Neutron; %v later, %d Networks had converged",
		kills, w.changes.Load(), len(s.neutron.Requests()), time.Since(calm).Round(time.Second), len(left.Items))
}

func envNumber(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	number, err := strconv.ParseUint(cmp.Or(os.Getenv(name), strconv.FormatUint(otherwise, 10)), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return number
}

// rage runs the storm. It ends with a running controller.
func (w *weather) rage(seed, kills uint64) {
	ctx, calm := context.WithCancel(w.Context())
	var users sync.WaitGroup
	for user := range stormUsers {
		random := rand.New(rand.NewPCG(seed, uint64(user)))
		users.Go(func() { w.changeNetworks(ctx, random, user) })
	}
	random := rand.New(rand.NewPCG(seed, stormUsers))
	for range kills {
		w.start()
		w.injectFaults(random)
		pause(ctx, time.Duration(random.Int64N(int64(maxLife))))
		_ = w.first.end(syscall.SIGKILL) // which is an error of the process
		w.releaseLease()
	}
	calm()
	users.Wait()
	w.start()
}

func (w *weather) start() {
	leaderElection := []string{"-leader-elect", "-leader-elect-resource-namespace=" + w.namespace}
	if err := w.startController(w.first, append(leaderElection, "-resync-period=1s", "-workers=20")...); err != nil {
		w.Fatal(err)
	}
}

// releaseLease lets the next controller start at once. The killed one has ended, so to
// wait for the end of its Lease would only take time.
func (w *weather) releaseLease() {
	leases := w.kube.CoordinationV1().Leases(w.namespace)
	err := leases.DeleteCollection(w.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

// injectFaults replaces the faults: one request is lost, and Neutron creates some
// networks long after the controller that requested them was killed.
func (w *weather) injectFaults(random *rand.Rand) {
	_, _ = w.fault([]string{"off"})
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}
	lost := faults.Fault{Times: 1, Method: methods[random.IntN(len(methods))]}
	lost.DropAnswer = random.IntN(2) == 0
	lost.DropRequest = !lost.DropAnswer
	for _, fault := range []faults.Fault{
		lost,
		{Method: http.MethodPost, Path: "^/v2.0/networks", Work: 2 * maxLife, Times: 10},
		{Method: http.MethodPost, Path: "^/v2.0/networks", Work: maxLife / 5},
	} {
		w.neutron.heal = append(w.neutron.heal, w.neutron.Inject(fault))
	}
}

// changeNetworks applies and deletes Networks at random. Each user has some.
func (w *weather) changeNetworks(ctx context.Context, random *rand.Rand, user int) {
	for ctx.Err() == nil {
		number := random.IntN(stormNetworks/stormUsers)*stormUsers + user
		name := "n" + strconv.Itoa(number)
		var err error
		switch random.IntN(6) {
		case 0:
			err = w.delete(ctx, name)
		case 1:
			_, err = w.apply([]string{name, fmt.Sprintf("cidr=10.1.%d.0/24", number)})
		default:
			gateway := fmt.Sprintf("gateway=10.0.%d.%d", number, 1+random.IntN(254))
			_, err = w.apply([]string{name, fmt.Sprintf("cidr=10.0.%d.0/24", number), gateway})
		}
		if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			w.Errorf("user %d, with %s: %v", user, name, err)
		}
		w.changes.Add(1)
		pause(ctx, time.Duration(random.Int64N(int64(50*time.Millisecond))))
	}
}

// delete deletes a Network that has its finalizer. A deletion at the moment at which that is
// set may remove the object all the same (kubernetes/kubernetes#77988). If the controller is
// killed as well, its network is an orphan. TestChaos has both, with -delete-orphans.
func (w *weather) delete(ctx context.Context, name string) error {
	networks := w.client.SamplecrdV1().Networks(w.namespace)
	network, err := networks.Get(ctx, name, metav1.GetOptions{})
	if err != nil || !slices.Contains(network.Finalizers, samplecrdv1.Finalizer) {
		return err
	}
	return networks.Delete(ctx, name, metav1.DeleteOptions{})
}

// converged checks that Neutron has the desired network of every Network, once, and
// no other network with the cluster's owner marker.
func (w *weather) converged() error {
	list, err := w.client.SamplecrdV1().Networks(w.namespace).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	objects, err := w.objects()
	if err != nil {
		return err
	}
	byOwner := map[neutron.Owner][]neutronNetwork{}
	for _, network := range objects {
		owner, ok := neutron.ParseMarker(network.Description)
		if !ok {
			return fmt.Errorf("a network without an owner marker: %+v", network)
		}
		byOwner[owner] = append(byOwner[owner], network)
	}
	for _, network := range list.Items {
		owner := w.owner(network.Name)
		owned := byOwner[owner]
		delete(byOwner, owner)
		gateway := cmp.Or(network.Spec.Gateway, strings.TrimSuffix(network.Spec.CIDR, "0/24")+"1")
		switch want := (neutronSubnet{CIDR: network.Spec.CIDR, Gateway: gateway}).String(); {
		case readyCell(&network) != "True Provisioned" || network.DeletionTimestamp != nil:
			return fmt.Errorf("%s: the condition is %q, deleted at %v",
				network.Name, readyCell(&network), network.DeletionTimestamp)
		case len(owned) != 1 || owned[0].ID != network.Status.NetworkID:
			return fmt.Errorf("%s: the status has the network %q, and Neutron has %+v",
				network.Name, network.Status.NetworkID, owned)
		case len(owned[0].subnets) != 1 || owned[0].subnets[0].String() != want ||
			!owner.HasMarker(owned[0].subnets[0].Description):
			return fmt.Errorf("%s: Neutron has the subnets %+v, want %s", network.Name, owned[0].subnets, want)
		}
	}
	if len(byOwner) > 0 {
		return fmt.Errorf("no Network has these: %+v", byOwner)
	}
	return nil
}

// pause ends early if the context ends.
func pause(ctx context.Context, duration time.Duration) {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

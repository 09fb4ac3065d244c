package reconcile

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
)

// many is a Neutron that has a network and a subnet for each of a number of Networks.
// Each list consists of new values, as one that was read over a connection does.
type many struct {
	lists
	count int
}

func ownerOf(i int) neutron.Owner {
	return neutron.Owner{Cluster: "8d1f7a4e-5d0f-4b5c-9f0e-2f8d0c6a1b3c", Namespace: fmt.Sprintf("tenant-%02d", i%20), Name: fmt.Sprintf("network-%05d", i)}
}

func idOf(kind string, i int) string { return fmt.Sprintf("%s-%028d", kind, i) }

func rangeOf(i int) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("10.%d.%d.0/24", i/256, i%256))
}

func (*many) Cloud(context.Context) (string, error) { return "cloud", nil }

func (m *many) Networks(context.Context, neutron.NetworkFilter) (all []neutron.Network, _ error) {
	for i := range m.count {
		all = append(all, neutron.Network{
			ID: idOf("network", i), Name: ownerOf(i).String(), Description: ownerOf(i).Marker(),
			NetworkSettings: neutron.NetworkSettings{AdminStateUp: new(true), PortSecurity: new(true), MTU: new(1450), DNSDomain: new("")},
			SubnetIDs:       []string{idOf("subnets", i)}, CreatedAt: time.Unix(1_000, 0).UTC(), Revision: 2,
		})
	}
	return all, nil
}

func (m *many) Subnets(context.Context, neutron.SubnetFilter) (all []neutron.Subnet, _ error) {
	for i := range m.count {
		base := rangeOf(i).Addr()
		gateway := base.Next()
		all = append(all, neutron.Subnet{
			ID: idOf("subnets", i), NetworkID: idOf("network", i), Name: ownerOf(i).String(), Description: ownerOf(i).Marker(),
			CIDR: rangeOf(i), Gateway: gateway, Pools: []neutron.Pool{{Start: gateway.Next(), End: netip.AddrFrom4([4]byte{10, byte(i / 256), byte(i % 256), 254})}},
			DHCP: true, CreatedAt: time.Unix(1_000, 0).UTC(),
		})
	}
	return all, nil
}

// readyNetworks returns Networks that are Ready with the networks and subnets of many.
func readyNetworks(count int) (all []*samplecrdv1.Network) {
	for i := range count {
		owner := ownerOf(i)
		gateway := rangeOf(i).Addr().Next().String()
		all = append(all, &samplecrdv1.Network{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: owner.Namespace, Name: owner.Name, UID: types.UID(idOf("objects", i)), Generation: 1,
				Finalizers: []string{samplecrdv1.Finalizer}, Annotations: map[string]string{samplecrdv1.AnnotationCloud: "cloud"},
			},
			Spec: samplecrdv1.NetworkSpec{CIDR: rangeOf(i).String()},
			Status: samplecrdv1.NetworkStatus{
				ObservedGeneration: 1, MatchedGeneration: 1, NetworkID: idOf("network", i), SubnetID: idOf("subnets", i), Cloud: "cloud",
				CIDR: rangeOf(i).String(), Gateway: gateway, MTU: 1450, DefaultMTU: 1450,
				Conditions: []metav1.Condition{{
					Type: samplecrdv1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Provisioned", ObservedGeneration: 1,
					Message: fmt.Sprintf("Neutron has the network and its subnet %s with gateway %s.", rangeOf(i), gateway),
				}},
			},
		})
	}
	return all
}

// TestMemory: what a replica remembers of a healthy Network and of Neutron's state
// stays small, and another list of the same state adds nothing to it.
func TestMemory(t *testing.T) {
	const count, limit = 5000, 3000 // bytes; 1,300 were measured
	networks := readyNetworks(count)
	before := liveBytes()
	r, clock := newReconciler(t, networks...)
	r.options.Cluster = ownerOf(0).Cluster
	r.neutron = neutron.NewCache(&many{count: count}, clock.Now)
	r.Start(t.Context())
	refresh(t, r)
	syncAll(t, r, networks)
	once := (liveBytes() - before) / count
	refresh(t, r)
	syncAll(t, r, networks)
	twice := (liveBytes() - before) / count
	t.Logf("%d bytes for each Network, %d after another list", once, twice)
	if once > limit || twice > limit || twice > once+once/4 {
		t.Errorf("%d bytes are kept for each Network, and %d after another list; at most %d are permitted", once, twice, limit)
	}
	runtime.KeepAlive(r)
}

func liveBytes() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func refresh(t *testing.T, r *Reconciler) {
	t.Helper()
	if _, err := r.neutron.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// syncAll syncs Networks for which nothing is left to do.
func syncAll(t *testing.T, r *Reconciler, networks []*samplecrdv1.Network) {
	t.Helper()
	for _, network := range networks {
		key := cache.MetaObjectToName(network)
		pass, err := r.Begin(key, network)
		if err != nil {
			t.Fatal(err)
		}
		pass.Observe()
		pass.Apply(t.Context())
		if err := pass.Report(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

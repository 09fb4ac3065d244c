package reconcile

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
)

// lists is a Neutron that only lists networks.
type lists struct {
	neutron.Client
	networks []neutron.Network
}

func (l *lists) Networks(context.Context, neutron.NetworkFilter) ([]neutron.Network, error) {
	return l.networks, nil
}

func (*lists) Subnets(context.Context, neutron.SubnetFilter) ([]neutron.Subnet, error) {
	return nil, nil
}

func (*lists) RouterInterfaces(context.Context, string) ([]neutron.RouterInterface, error) {
	return nil, nil
}

func (*lists) Extensions(context.Context) ([]string, error) { return []string{}, nil }

// TestLimit: a create request counts from the moment before it is sent until the cache of
// Neutron's state shows what became of it.
func TestLimit(t *testing.T) {
	const limit = 2
	r, clock := newReconciler(t)
	r.options.Cluster, r.options.MaxNetworksPerNamespace = "c", limit
	server := &lists{networks: []neutron.Network{
		{ID: "1", Description: neutron.Owner{Cluster: "c", Namespace: "default", Name: "kept"}.RetainedMarker()},
		{ID: "2", Description: neutron.Owner{Cluster: "c", Namespace: "other", Name: "kept"}.Marker()},
		{ID: "3", Description: neutron.Owner{Cluster: "another", Namespace: "default", Name: "kept"}.Marker()},
		{ID: "4", Description: "default"},
	}}
	r.neutron = neutron.NewCache(server, clock.Now)
	refresh := func() {
		t.Helper()
		clock.SetTime(clock.Now().Add(time.Second))
		if _, err := r.neutron.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	a, b := cache.NewObjectName("default", "a"), cache.NewObjectName("default", "b")
	want := func(doing string, key cache.ObjectName, waits bool, text string) {
		t.Helper()
		err := (&Pass{Reconciler: r, key: key}).begin(create(key.Name))
		var blocked plan.Blocked
		switch {
		case !waits && text == "" && err == nil:
		case waits && errors.As(err, new(status.WaitError)):
		case text != "" && errors.As(err, &blocked) && blocked.Reason == plan.ReasonNamespaceLimit && strings.Contains(blocked.Message, text):
		default:
			t.Errorf("%s: begin(%s) = %v, want to wait: %v, and a message with %q", doing, key, err, waits, text)
		}
	}
	full := "2 networks in Neutron, and -max-networks-per-namespace allows 2; 1 of them were retained by deletionPolicy and 0 are orphans"

	want("before the first list", a, true, "")
	refresh()
	want("one is retained", a, false, "")
	want("again, for the same key", a, false, "")
	want("while another is being created", b, false, full)
	(&Pass{Reconciler: r, key: a}).end(create("a"), plan.Actual{}, rejected)
	want("after Neutron rejected it", b, false, "")

	(&Pass{Reconciler: r, key: b}).end(create("b"), plan.Actual{}, timeout)
	want("the response was lost", a, false, full)
	refresh()
	want("Neutron may still execute the request", a, false, full)
	clock.SetTime(clock.Now().Add(maxInFlight))
	want("the list is older than the request", a, false, full)
	refresh()
	want("a later list does not have it", a, false, "")
	(&Pass{Reconciler: r, key: a}).end(create("a"), plan.Actual{}, nil)

	server.networks = append(server.networks, neutron.Network{ID: "5", Description: r.owner(a).Marker()})
	refresh()
	want("an orphan", b, false, "1 of them were retained by deletionPolicy and 1 are orphans")
	r.options.MaxNetworksPerNamespace = 1
	want("the limit was lowered", b, false, "has 2 networks in Neutron, and -max-networks-per-namespace allows 1;")
	want("in another namespace", cache.NewObjectName("third", "a"), false, "")
}

// TestLimitAfterHandover: the list of a standby is older than what the former leader
// created last. The status of these Networks counts instead.
func TestLimitAfterHandover(t *testing.T) {
	created := func(change func(*samplecrdv1.Network)) *samplecrdv1.Network {
		network := object("uid-a", "net-a")
		network.Name, network.Annotations = "a", map[string]string{samplecrdv1.AnnotationCloud: "test"}
		change(network)
		return network
	}
	for name, test := range map[string]struct {
		network *samplecrdv1.Network
		marker  func(neutron.Owner) string // of the network, if it is in the list
		limit   int                        // the smallest with which another is created
	}{
		"created":            {created(func(*samplecrdv1.Network) {}), nil, 2},
		"created and listed": {created(func(*samplecrdv1.Network) {}), neutron.Owner.Marker, 2},
		"being retained":     {created(func(*samplecrdv1.Network) {}), neutron.Owner.RetainedMarker, 2},
		"adopted":            {created(func(n *samplecrdv1.Network) { n.Spec.NetworkID = "net-a" }), nil, 1},
		"not created yet":    {created(func(n *samplecrdv1.Network) { n.Status.NetworkID = "" }), nil, 1},
		"in another cloud":   {created(func(n *samplecrdv1.Network) { n.Annotations[samplecrdv1.AnnotationCloud] = "old" }), nil, 1},
		"a false annotation": {created(func(n *samplecrdv1.Network) {
			n.Status.Cloud, n.Annotations[samplecrdv1.AnnotationCloud] = "test", "old"
		}), nil, 2},
		"a lost annotation": {created(func(n *samplecrdv1.Network) {
			n.Status.Cloud, n.Annotations = "old", nil
		}), nil, 1},
		"in another namespace":  {created(func(n *samplecrdv1.Network) { n.Namespace = "other" }), nil, 1},
		"of the Network itself": {created(func(n *samplecrdv1.Network) { n.Name = "b" }), nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, clock := newReconciler(t, test.network)
			r.options.Cluster = "c"
			server := &lists{}
			if test.marker != nil {
				server.networks = []neutron.Network{{ID: "net-a", Description: test.marker(r.owner(cache.MetaObjectToName(test.network)))}}
			}
			r.neutron = neutron.NewCache(server, clock.Now)
			if _, err := r.neutron.Cloud(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := r.neutron.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			clock.SetTime(clock.Now().Add(20 * time.Second))
			r.Start(t.Context())
			for limit := 1; limit <= test.limit; limit++ {
				r.options.MaxNetworksPerNamespace = limit
				err := (&Pass{Reconciler: r, key: cache.NewObjectName(key.Namespace, "b")}).begin(create("b"))
				if (err == nil) != (limit == test.limit) {
					t.Errorf("with the limit %d, begin() = %v, want that one is created with %d", limit, err, test.limit)
				}
			}
		})
	}
}

func (*lists) Cloud(context.Context) (string, error) { return "test", nil }

// TestQuota: Networks that exceeded the quota are retried after something was created or
// deleted, few at first, and twice as many as that succeeded with.
func TestQuota(t *testing.T) {
	const waiting = 100
	r, clock := newReconciler(t)
	networks := make([]*samplecrdv1.Network, waiting)
	reject := func(failure error) {
		for i := range networks {
			networks[i] = object("1", "")
			networks[i].Name = strconv.Itoa(i)
			(&Pass{Reconciler: r, key: cache.MetaObjectToName(networks[i]), network: networks[i]}).noteRejection(failure)
		}
	}
	list := func() (retried int) {
		clock.Step(time.Minute)
		r.Listed(clock.Now())
		for _, network := range networks {
			if r.claimQuotaRetry(network) {
				retried++
			}
		}
		return retried
	}
	apply := func(step plan.Step, times int) {
		clock.Step(time.Second)
		for range times {
			(&Pass{Reconciler: r, key: key}).end(step, plan.Actual{}, nil)
		}
	}
	want := func(when string, count int) {
		t.Helper()
		if retried := list(); retried != count {
			t.Errorf("%s: %d Networks were retried, want %d", when, retried, count)
		}
	}
	overQuota := &neutron.Error{Op: "create network", Class: neutron.ErrRefused, Status: 409, Type: neutron.OverQuota}
	r.options.Retry.Rejected = time.Hour

	apply(plan.CreateSubnet{}, 1)
	reject(overQuota)
	want("a change before the rejection", 0)
	apply(plan.UpdateNetwork{}, 1)
	want("a change of what exists", 0)
	apply(plan.DeleteSubnet{}, 1)
	want("a deletion", minQuotaRetries)
	want("nothing since", 0)
	apply(plan.CreateNetwork{}, minQuotaRetries)
	want("these fit", 2*minQuotaRetries)
	apply(plan.DeleteNetwork{}, waiting)
	want("many have gone", waiting-3*minQuotaRetries)

	reject(refused)
	apply(plan.DeleteNetwork{}, 1)
	want("another rejection", 0)
}

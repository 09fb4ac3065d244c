package reconcile

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"

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

// TestReserve: a create request counts from its reservation until the cache of
// Neutron's state shows what became of it.
func TestReserve(t *testing.T) {
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
	want := func(doing string, key cache.ObjectName, class error, text string) {
		t.Helper()
		err := r.reserve(key, plan.CreateNetwork{})
		var blocked status.BlockedError
		switch {
		case class == nil && text == "" && err == nil:
		case class != nil && errors.Is(err, class):
		case text != "" && errors.As(err, &blocked) && blocked.Reason == plan.ReasonNamespaceLimit && strings.Contains(blocked.Message, text):
		default:
			t.Errorf("%s: reserve(%s) = %v, want class %v and a message with %q", doing, key, err, class, text)
		}
	}
	full := "2 networks in Neutron, as many as -max-networks-per-namespace allows; 1 of them were retained by deletionPolicy and 0 are orphans"

	want("before the first list", a, neutron.ErrUnavailable, "")
	refresh()
	want("one is retained", a, nil, "")
	want("again, for the same key", a, nil, "")
	want("while another is being created", b, nil, full)
	r.noteCreate(a, plan.Desired{}, plan.CreateNetwork{}, rejected)
	want("after Neutron rejected it", b, nil, "")

	r.noteCreate(b, plan.Desired{}, plan.CreateNetwork{}, timeout)
	want("the response was lost", a, nil, full)
	refresh()
	want("Neutron may still execute the request", a, nil, full)
	clock.SetTime(clock.Now().Add(maxInFlight))
	want("the list is older than the request", a, nil, full)
	refresh()
	want("a later list does not have it", a, nil, "")
	r.noteCreate(a, plan.Desired{}, plan.CreateNetwork{}, nil)
	if len(r.reserved) > 0 {
		t.Errorf("reservations are left: %v", r.reserved)
	}

	server.networks = append(server.networks, neutron.Network{ID: "5", Description: r.owner(a).Marker()})
	refresh()
	want("an orphan", b, nil, "1 of them were retained by deletionPolicy and 1 are orphans")
	want("in another namespace", cache.NewObjectName("third", "a"), nil, "")
}

func (*lists) Cloud(context.Context) (string, error) { return "test", nil }

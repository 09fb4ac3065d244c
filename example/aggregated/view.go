package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/samplecrd/network-controller/example/aggregated/v1alpha1"
	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/preview"
	"github.com/samplecrd/network-controller/pkg/reconcile"
	"github.com/samplecrd/network-controller/pkg/store"
)

// view computes the objects: Neutron's state, and what the Networks make of it.
type view struct {
	neutron  neutron.Client
	networks *store.Networks
	history  *history
	cluster  string
	period   time.Duration
	// foreign is the namespace of the networks that belong to no namespace of this cluster.
	foreign string
	// edited receives a value when a Network has changed.
	edited chan struct{}

	mu      sync.Mutex
	listed  time.Time // when the last list of Neutron began
	failure error     // of the lists since then

	// Only run uses these: the last list, and since when a network is an orphan, by its ID.
	snapshot   *neutron.Snapshot
	reconciler *reconcile.Reconciler
	orphans    map[string]metav1.Time
}

func newView(client neutron.Client, networks *store.Networks, history *history, o options) (*view, error) {
	v := &view{
		neutron: client, networks: networks, history: history, cluster: o.cluster, period: o.resyncPeriod,
		foreign: o.foreignNamespace, edited: make(chan struct{}, 1), orphans: map[string]metav1.Time{},
		failure: errors.New("the first list has not ended"),
	}
	changed := func() {
		select {
		case v.edited <- struct{}{}:
		default: // it is known already
		}
	}
	return v, networks.AddUnobserved(klog.Background(), store.Handlers{
		AddFunc:    func(*samplecrdv1.Network, bool) { changed() },
		UpdateFunc: func(_, _ *samplecrdv1.Network) { changed() },
		DeleteFunc: func(cache.DeletedObject[*samplecrdv1.Network]) { changed() },
	})
}

// state returns when Neutron was listed, and why it could not be listed since.
func (v *view) state() (listed time.Time, failure error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.listed, v.failure
}

// run keeps the history up to date until the context ends. Neutron sends no events, so it is
// listed every period. An edit of a Network needs no list, and many of them in a second are
// one.
func (v *view) run(ctx context.Context) {
	if !v.networks.WaitForSync(ctx) {
		return
	}
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-due.C:
			began := time.Now()
			err := v.list(ctx)
			due.Reset(max(v.period, 9*time.Since(began))) // at most a tenth of Neutron's time
			v.publish(ctx, began, err)
		case <-v.edited:
			v.publish(ctx, v.listed, v.failure)
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(time.Second, v.period)):
		}
	}
}

// list lists Neutron. Nothing changes if it fails.
func (v *view) list(ctx context.Context) error {
	snapshot, err := neutron.NewSnapshot(ctx, v.neutron)
	if err != nil {
		return err
	}
	listed := neutron.NewCache(snapshot, time.Now)
	if _, err := listed.Refresh(ctx); err != nil {
		return err
	}
	v.snapshot = snapshot
	v.reconciler = reconcile.New(nil, v.networks, listed, &record.FakeRecorder{}, clock.RealClock{},
		reconcile.Options{Cluster: v.cluster, AllowAdoption: reconcile.Namespaces{metav1.NamespaceAll}})
	return nil
}

// publish computes the objects, and says how old the list is.
func (v *view) publish(ctx context.Context, listed time.Time, failure error) {
	if v.snapshot != nil {
		v.history.replace(v.objects(ctx, metav1.Now()))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if failure == nil {
		v.listed = listed
	} else if fmt.Sprint(failure) != fmt.Sprint(v.failure) && ctx.Err() == nil {
		klog.FromContext(ctx).Error(failure, "Listing Neutron failed; what was listed before is served with a warning")
	}
	v.failure = failure
}

// objects are what is served.
func (v *view) objects(ctx context.Context, now metav1.Time) (all []*network) {
	owners, before := v.owners(ctx), v.orphans
	v.orphans = map[string]metav1.Time{}
	listed, _ := v.snapshot.Networks(ctx, neutron.NetworkFilter{}) // a snapshot does not fail
	for _, n := range listed {
		if problems := apivalidation.NameIsDNSSubdomain(n.ID, false); problems != nil {
			klog.FromContext(ctx).Info("Not served: its ID cannot be the name of an object", "id", n.ID, "problem", problems[0])
			continue
		}
		object := v.object(ctx, n, owners[n.ID])
		if object.Status.State == v1alpha1.StateOrphaned {
			since, known := before[n.ID]
			if !known {
				since = now
			}
			v.orphans[n.ID], object.Status.OrphanedSince = since, &since
		}
		all = append(all, object)
	}
	return all
}

// owner is the Network that a Neutron network belongs to, or belonged to.
type owner struct {
	key   cache.ObjectName
	state v1alpha1.State
	drift []string
}

// owners returns the owners by the ID of the Neutron network.
func (v *view) owners(ctx context.Context) map[string]owner {
	existing := v.networks.List()
	drift, owners := v.drift(ctx, existing), map[string]owner{}
	for _, n := range existing { // also those that have adopted a network, which has no owner marker
		key := cache.MetaObjectToName(n)
		owners[n.Status.NetworkID] = owner{key, v1alpha1.StateOwned, drift[key]}
	}
	for _, m := range v.snapshot.Marked(v.cluster) {
		key := cache.NewObjectName(m.Owner.Namespace, m.Owner.Name)
		found, _ := v.networks.Get(key)
		switch {
		case m.Retained:
			owners[m.ID] = owner{key, v1alpha1.StateRetained, nil}
		case found == nil:
			owners[m.ID] = owner{key, v1alpha1.StateOrphaned, nil}
		default:
			owners[m.ID] = owner{key, v1alpha1.StateOwned, drift[key]}
		}
	}
	return owners
}

// drift returns what the controller would do for each Network. The steps are those of its
// command plan: the reconciler predicts them, and this server applies none.
func (v *view) drift(ctx context.Context, existing []*samplecrdv1.Network) map[cache.ObjectName][]string {
	drift := map[cache.ObjectName][]string{}
	planned := preview.New(ctx, preview.Input{
		Cluster: v.cluster, Networks: v.networks, Selected: existing, Neutron: v.snapshot, Reconciler: v.reconciler,
	})
	for _, p := range planned.Networks {
		key := cache.NewObjectName(p.Namespace, p.Name)
		for _, step := range p.Steps {
			drift[key] = append(drift[key], step.Text)
		}
	}
	return drift
}

func (v *view) object(ctx context.Context, n neutron.Network, o owner) *network {
	object := &network{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v.foreign, Name: n.ID, UID: types.UID(n.ID), CreationTimestamp: metav1.NewTime(n.CreatedAt),
		},
		Status: v1alpha1.NeutronNetworkStatus{Name: n.Name, State: cmp.Or(o.state, v1alpha1.StateForeign), Drift: o.drift},
	}
	for _, marked := range neutron.OwnersOf([]neutron.Network{n}) {
		object.Status.Owner = marked.Cluster + "/" + marked.String()
	}
	if o.state != "" && validation.IsDNS1123Label(o.key.Namespace) == nil {
		object.Namespace = o.key.Namespace
	}
	if o.state == v1alpha1.StateOwned {
		object.Status.Network = o.key.Name
	}
	subnets, _ := v.snapshot.Subnets(ctx, neutron.SubnetFilter{NetworkID: n.ID})
	for _, subnet := range subnets {
		object.Status.CIDRs = append(object.Status.CIDRs, subnet.CIDR.String())
	}
	slices.Sort(object.Status.CIDRs)
	return object
}

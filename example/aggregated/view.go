package main

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/samplecrd/network-controller/example/aggregated/v1alpha1"
	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions"
	networkinformers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/observe"
	"github.com/samplecrd/network-controller/pkg/preview"
	"github.com/samplecrd/network-controller/pkg/reconcile"
	"github.com/samplecrd/network-controller/pkg/store"
)

// view computes the objects: Neutron's state, and what the Networks make of it.
type view struct {
	options
	neutron  neutron.Client
	networks *store.Networks
	present  atomic.Pointer[state] // what is served
	edited   atomic.Bool           // a Network has changed

	// Only refresh uses these: the last list, and when the last attempt to list began.
	snapshot   *neutron.Cache
	reconciler *reconcile.Reconciler
	began      time.Time
}

// newView returns a view with an informer for Networks, which runs until the context ends.
func newView(ctx context.Context, client neutron.Client, config *rest.Config, o options) (*view, error) {
	networkClient, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(networkClient, 0)
	existing, err := store.New(klog.FromContext(ctx), store.ByNamespace[networkinformers.TypedNetworkInformer]{
		metav1.NamespaceAll: factory.Samplecrd().V1().Networks(),
	}, cache.DefaultWatchErrorHandler, observe.Nothing{})
	if err != nil {
		return nil, err
	}
	v := &view{options: o, neutron: client, networks: existing}
	v.present.Store(&state{failure: errors.New("it has not been listed yet"), replaced: make(chan struct{})})
	defer factory.StartWithContext(ctx)
	return v, existing.AddUnobserved(klog.FromContext(ctx), store.Handlers{
		AddFunc:    func(*samplecrdv1.Network, bool) { v.edited.Store(true) },
		UpdateFunc: func(_, _ *samplecrdv1.Network) { v.edited.Store(true) },
		DeleteFunc: func(cache.DeletedObject[*samplecrdv1.Network]) { v.edited.Store(true) },
	})
}

// run keeps the state up to date until the context ends.
func (v *view) run(ctx context.Context) {
	if v.networks.WaitForSync(ctx) {
		wait.UntilWithContext(ctx, v.refresh, min(time.Second, v.resyncPeriod))
	}
}

// refresh replaces the state if something may have changed. Neutron sends no events, so it is
// listed when that is due. An edit of a Network needs no list, and many of them in a second are
// one.
func (v *view) refresh(ctx context.Context) {
	isDue, isEdited := time.Since(v.began) >= v.resyncPeriod, v.edited.Swap(false)
	if !isDue && !isEdited {
		return
	}
	next := *v.present.Load()
	if isDue {
		v.began = time.Now()
		if next.failure = v.list(ctx); next.failure == nil {
			next.listed = v.began
		} else {
			klog.FromContext(ctx).Error(next.failure, "Listing Neutron failed; what was listed before is served with a warning")
		}
	}
	if v.snapshot != nil {
		next.objects = v.objects(ctx, metav1.Now())
	}
	replace(&v.present, &next)
}

// list lists Neutron. Nothing changes if it fails.
func (v *view) list(ctx context.Context) error {
	snapshot, err := neutron.NewSnapshot(ctx, v.neutron)
	if err != nil {
		return err
	}
	v.snapshot = snapshot
	v.reconciler = reconcile.New(reconcile.Dependencies{Networks: v.networks, Neutron: snapshot, Clock: clock.RealClock{}},
		reconcile.Options{Cluster: v.cluster, AllowAdoption: reconcile.Namespaces{metav1.NamespaceAll}})
	return nil
}

// objects returns what is served.
func (v *view) objects(ctx context.Context, now metav1.Time) objects {
	all, before := objects{}, v.present.Load().objects
	drift, users := v.drift(ctx), map[string]*samplecrdv1.Network{}
	for _, user := range v.networks.List() {
		users[user.Status.NetworkID] = user
	}
	listed, _ := v.snapshot.Networks(ctx, neutron.NetworkFilter{}) // a snapshot does not fail
	for _, n := range listed {
		object := v.object(ctx, n, users[n.ID])
		key, s := cache.MetaObjectToName(object), &object.Status
		switch s.State {
		case v1alpha1.StateOwned:
			s.Drift = drift[cache.NewObjectName(object.Namespace, s.Network)]
		case v1alpha1.StateOrphaned:
			s.OrphanedSince = &now
			if known := before[key]; known != nil && known.Status.OrphanedSince != nil {
				s.OrphanedSince = known.Status.OrphanedSince
			}
		case v1alpha1.StateRetained, v1alpha1.StateForeign: // as they are
		}
		all[key] = object
	}
	return all
}

// object returns what is served of a network. Its user is the Network whose status names it;
// it may have no owner marker, if it was adopted.
func (v *view) object(ctx context.Context, n neutron.Network, user *samplecrdv1.Network) *network {
	object := &network{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: program, Name: n.ID, UID: types.UID(n.ID), CreationTimestamp: metav1.NewTime(n.CreatedAt),
		},
		Status: v1alpha1.NeutronNetworkStatus{Name: n.Name, State: v1alpha1.StateForeign},
	}
	s := &object.Status
	owner, isRetained := neutron.ParseRetainedMarker(n.Description)
	if !isRetained {
		owner, _ = neutron.ParseMarker(n.Description) // without one, the owner is empty
	}
	if owner.Cluster != "" {
		s.Owner = owner.Cluster + "/" + owner.String()
	}
	isOurs, namespace := owner.Cluster == v.cluster, owner.Namespace
	if user == nil && isOurs && !isRetained {
		user, _ = v.networks.Get(cache.NewObjectName(owner.Namespace, owner.Name)) // from memory
	}
	switch {
	case user != nil:
		s.State, s.Network, namespace = v1alpha1.StateOwned, user.Name, user.Namespace
	case isOurs && isRetained:
		s.State = v1alpha1.StateRetained
	case isOurs:
		s.State = v1alpha1.StateOrphaned
	}
	if s.State != v1alpha1.StateForeign && validation.IsDNS1123Label(namespace) == nil { // anybody can write a marker
		object.Namespace = namespace
	}
	subnets, _ := v.snapshot.Subnets(ctx, neutron.SubnetFilter{NetworkID: n.ID})
	for _, subnet := range subnets {
		s.CIDRs = append(s.CIDRs, subnet.CIDR.String())
	}
	slices.Sort(s.CIDRs)
	return object
}

// drift returns what the controller would do for each Network. The steps are those of its
// command plan: the reconciler predicts them, and this server applies none.
func (v *view) drift(ctx context.Context) map[cache.ObjectName][]string {
	drift, input := map[cache.ObjectName][]string{}, preview.Input{
		Cluster: v.cluster, Networks: v.networks, Selected: v.networks.List(), Neutron: v.snapshot, Reconciler: v.reconciler,
	}
	for _, p := range preview.New(ctx, input).Networks {
		key := cache.NewObjectName(p.Namespace, p.Name)
		for _, step := range p.Steps {
			drift[key] = append(drift[key], step.Text)
		}
	}
	return drift
}

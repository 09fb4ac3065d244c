// Package reconcile makes Neutron match one Network at a time. The methods of its
// Reconciler are the phases of a sync, in their order: Desired, Observe, Apply,
// Report.
package reconcile

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
	"github.com/samplecrd/network-controller/pkg/store"
)

// Options configure a Reconciler.
type Options struct {
	// FieldManager owns the fields that the Reconciler writes.
	FieldManager string
	// Cluster identifies this Kubernetes cluster in owner markers.
	Cluster string
	// AllowAdoption permits spec.networkID.
	AllowAdoption bool
	// MaxNetworksPerNamespace limits the networks of a namespace in Neutron. It does
	// not if it is 0.
	MaxNetworksPerNamespace int
	// ReportDrift reports differences made in Neutron instead of correcting them,
	// unless spec.driftPolicy says otherwise.
	ReportDrift bool
	// LeaveCloud is the identity of a cloud whose networks are to be left there. Their
	// Networks get new ones in the cloud that the controller is connected to.
	LeaveCloud string
	// OtherClusters are the names of other clusters that share the OpenStack project.
	OtherClusters []string
	// Alone is true if no other replica can lead, and change something in Neutron.
	Alone bool
	// MaxInFlight is how long Neutron may still execute a request after the
	// controller stopped waiting for its response.
	MaxInFlight time.Duration
	// MaxLateness is how long after that the network of a request may still appear. What
	// appears for a Network that is gone by then is deleted.
	MaxLateness time.Duration
	// MaxClockSkew is the largest difference between the clocks of the hosts on which
	// replicas run: a former leader wrote since when an object had been Ready.
	MaxClockSkew time.Duration
	// IsDefinitionDeleted reports whether the CustomResourceDefinition is being deleted
	// without permission. Then nothing is deleted in Neutron.
	IsDefinitionDeleted func(context.Context) (bool, error)
	// Retry are the delays after failures.
	Retry RetryDelays
}

// Reconciler makes Neutron match one Network at a time. It is safe for concurrent
// use, but not for two syncs of the same key at once: the work queue ensures that.
type Reconciler struct {
	client   clientset.Interface
	networks *store.Networks
	neutron  *neutron.Cache
	events   record.EventRecorder
	clock    clock.WithDelayedExecution
	options  Options

	mu       sync.Mutex
	memories map[cache.ObjectName]memory
	ledger   map[cache.ObjectName]account
	quota    quota
	// startedAt is when this replica started leading, or zero.
	startedAt time.Time
	stopping  <-chan struct{}
}

// New returns a Reconciler.
func New(client clientset.Interface, networks *store.Networks, neutron *neutron.Cache, recorder record.EventRecorder, clock clock.WithDelayedExecution, options Options) *Reconciler {
	return &Reconciler{
		client: client, networks: networks, neutron: neutron, events: recorder, clock: clock, options: options,
		memories: map[cache.ObjectName]memory{}, ledger: map[cache.ObjectName]account{},
	}
}

// Start is called when this replica starts leading, before the first sync: a
// former leader may have left create requests pending. When the context ends, a
// sync stops before its next step.
func (r *Reconciler) Start(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.startedAt, r.stopping = r.clock.Now(), ctx.Done()
	for _, network := range r.networks.List() {
		if hasFinalizer(network) { // others have not been worked on yet
			key := cache.MetaObjectToName(network)
			r.memories[key] = memory{uid: network.UID}
			r.noteLocked(key, func(a *account) { a.former = formerOf(network) })
		}
	}
}

// isStopping reports whether this replica has stopped leading, or is about to.
func (r *Reconciler) isStopping() bool {
	select {
	case <-r.stopping:
		return true
	default:
		return false
	}
}

// StartedAt returns when this replica started leading, or the zero Time if it has
// not.
func (r *Reconciler) StartedAt() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.startedAt
}

// Desired returns the state that a Network requests. If the Network is nil, it
// does not exist, and nothing of it should be left.
func (r *Reconciler) Desired(key cache.ObjectName, network *samplecrdv1.Network) plan.Desired {
	owner, a := r.owner(key), r.accountOf(key)
	if network == nil {
		desired := plan.DesiredAbsent(owner)
		desired.Gone, desired.Claims = true, a.claims(true)
		if r.hasSubnet(key, a.adopted.networkID) {
			desired.Adopted, desired.Leave = a.adopted.networkID, plan.LeaveNetwork
		}
		return desired
	}
	desired := plan.DesiredFor(owner, network.Spec)
	desired.Claims = a.claims(false)
	desired.Absent = network.DeletionTimestamp != nil
	desired.Edited = network.Generation > 1
	desired.ReportDrift = r.reportsDrift(network) && status.HasMatched(network)
	if network.Spec.NetworkID != "" {
		desired.Obstacle = r.obstacleToAdoption(network)
	}
	policy, adopted := network.Spec.DeletionPolicy, desired.Adopted != ""
	switch {
	case policy == samplecrdv1.DeletionPolicyRetain || desired.Obstacle.Reason == plan.ReasonAdoptionNotAllowed:
		desired.Leave = plan.LeaveAll
	case adopted && (policy != samplecrdv1.DeletionPolicyDelete || desired.Obstacle.Reason != ""):
		desired.Leave = plan.LeaveNetwork
	}
	return desired
}

// reportsDrift reports whether a difference made in Neutron is to be reported
// instead of corrected.
func (r *Reconciler) reportsDrift(network *samplecrdv1.Network) bool {
	return network.Spec.DriftPolicy == samplecrdv1.DriftPolicyReport || network.Spec.DriftPolicy == "" && r.options.ReportDrift
}

func (r *Reconciler) owner(key cache.ObjectName) neutron.Owner {
	return neutron.Owner{Cluster: r.options.Cluster, Namespace: key.Namespace, Name: key.Name}
}

// Observe returns what is known of the actual state without a request: the state in the
// cache of Neutron's state, or, if the cache may lack what an earlier request created,
// only what the object itself records. Then the plan has to begin with a look.
func (r *Reconciler) Observe(key cache.ObjectName, network *samplecrdv1.Network, desired plan.Desired) plan.Actual {
	if network == nil {
		actual := plan.Actual{Finalizer: r.mayBeLeft(key)} // so that the plan deletes what is left
		actual.RouterID = r.accountOf(key).router
		connected, _ := r.neutron.KnownCloud()
		return actual.WithCloud(connected)
	}
	isFormer := false
	r.update(network, func(memory *memory) {
		if memory.isNew && hasFinalizer(network) { // another leader has set it
			memory.isNew, isFormer = false, true
		}
		memory.noteEdit(editionOf(network), r.clock.Now())
	})
	r.note(key, func(a *account) {
		a.isOrphan = false
		if isFormer {
			a.former = formerOf(network)
		}
		if id := network.Status.NetworkID; id != "" {
			a.ended("", id) // also if the response to the write of the status was lost
		}
	})
	cached, known := r.fromCache(network, desired)
	if !known || cached.NetworkID != "" && !cached.HasNetwork(cached.NetworkID) { // it is gone, or another replica has created it
		return r.unobserved(network)
	}
	if r.isCacheComplete(network) {
		return cached
	}
	isListCurrent := r.isListCurrent()
	if _, inSync := cachedOutcome(desired, cached); inSync && (isListCurrent || statusMatches(network, desired, cached)) {
		return cached
	}
	if !isListCurrent {
		r.neutron.RequestRefresh(r.StartedAt()) // for the next syncs
	}
	return r.unobserved(network)
}

// mayBeLeft reports whether something of a key may be in Neutron whose object does not
// exist: the cache of Neutron's state shows it, or a request has not ended.
func (r *Reconciler) mayBeLeft(key cache.ObjectName) bool {
	a := r.accountOf(key)
	return a.hasNetworks() || a.isOrphan || r.HasLeftover(key)
}

// isListCurrent reports whether the last list of Neutron's state includes all that a
// former leader has done.
func (r *Reconciler) isListCurrent() bool {
	return r.options.Alone || r.neutron.ListedSince(r.StartedAt())
}

// isCacheComplete reports whether the cache of Neutron's state includes all that was
// requested for a Network: no response is missing, and no request of a former leader may
// be pending. It also has to be safe to act on it when other clients have changed
// something since: Neutron must check revisions.
func (r *Reconciler) isCacheComplete(network *samplecrdv1.Network) bool {
	a, found := r.accountOf(cache.MetaObjectToName(network)), network.Status.NetworkID != "" // see Observe
	extensions, _ := r.neutron.KnownExtensions()
	return r.isListCurrent() && slices.Contains(extensions, neutron.ExtensionIfMatch) &&
		r.neutron.ListedSince(a.pendingUntil()) && r.neutron.ListedSince(r.formerUntil(a, network, found))
}

// unobserved returns the actual state as far as the object itself records it, with
// what does not change.
func (r *Reconciler) unobserved(network *samplecrdv1.Network) plan.Actual {
	actual := plan.Actual{Finalizer: hasFinalizer(network), Cloud: recordedCloud(network), Record: status.RecordOf(network.Status)}
	if connected, ok := r.neutron.KnownCloud(); ok {
		if r.options.LeaveCloud != "" && actual.Cloud == r.options.LeaveCloud && actual.Cloud != connected {
			actual.Cloud, actual.Record = "", plan.Record{}
		}
		if actual.Cloud == connected && network.Annotations[samplecrdv1.AnnotationCloud] != connected {
			actual.Cloud = "" // restore the annotation
		}
		actual = actual.WithCloud(connected)
	}
	if extensions, ok := r.neutron.KnownExtensions(); ok {
		actual = actual.WithExtensions(extensions)
	}
	if network.DeletionTimestamp != nil {
		actual.MarkedSubnets = r.markedSubnets(network)
	}
	owners, known := r.neutron.Owners(network.Namespace, network.Name)
	actual.OtherClusters, actual.OthersUnknown = r.otherClusters(cache.MetaObjectToName(network), owners), !known
	return actual
}

// recordedCloud returns the cloud in which the network of an object is. The status has
// priority, because everybody who can write Networks can change an annotation.
func recordedCloud(network *samplecrdv1.Network) string {
	return cmp.Or(network.Status.Cloud, network.Annotations[samplecrdv1.AnnotationCloud])
}

// otherClusters returns the clusters of the owners whose Networks may be this one:
// they have its namespace and name, and the administrator does not know the cluster.
func (r *Reconciler) otherClusters(key cache.ObjectName, owners []neutron.Owner) (clusters []string) {
	for _, owner := range owners {
		if owner.String() == key.String() && owner.Cluster != r.options.Cluster && !slices.Contains(r.options.OtherClusters, owner.Cluster) {
			clusters = append(clusters, owner.Cluster)
		}
	}
	return clusters
}

// markedSubnets returns the subnets of the network in the status that the cache of
// Neutron's state has with the owner marker.
func (r *Reconciler) markedSubnets(network *samplecrdv1.Network) (ids []string) {
	owner := r.owner(cache.MetaObjectToName(network))
	view, _ := r.neutron.Lookup(owner, network.Status.NetworkID)
	for _, subnets := range view.Subnets {
		for _, subnet := range subnets {
			if owner.HasMarker(subnet.Description) {
				ids = append(ids, subnet.ID)
			}
		}
	}
	return ids
}

// fromCache returns the actual state according to the cache of Neutron's state. It
// returns false until the first list has succeeded.
func (r *Reconciler) fromCache(network *samplecrdv1.Network, desired plan.Desired) (actual plan.Actual, known bool) {
	actual = r.unobserved(network)
	id := cmp.Or(desired.Adopted, actual.NetworkID)
	view, known := r.neutron.Lookup(desired.Owner, id)
	if !known {
		return plan.Actual{}, false
	}
	actual = actual.WithNetworks(neutron.NetworkFilter{Name: desired.Owner.String()}, view.Marked)
	if id != "" {
		actual = actual.WithNetworks(neutron.NetworkFilter{ID: id}, view.Named)
	}
	for networkID, subnets := range view.Subnets {
		actual = actual.WithSubnets(networkID, subnets)
	}
	for networkID, interfaces := range view.RouterInterfaces {
		actual = actual.WithRouterInterfaces(networkID, interfaces)
	}
	if desired.Router != nil {
		if router, ok := r.neutron.KnownRouter(neutron.RouterFilter{ID: desired.Router.ID, Name: desired.Router.Name}); ok {
			actual = actual.WithRouters([]neutron.Router{router})
		}
	}
	actual.Cached = true
	return actual, true
}

// cachedOutcome returns the outcome of a plan for the state from the cache, and whether
// that plan has no step.
func cachedOutcome(desired plan.Desired, cached plan.Actual) (outcome error, inSync bool) {
	if desired.Absent || !cached.Finalizer || !cached.Cached {
		return nil, false
	}
	switch step := plan.Next(desired, cached).(type) {
	case plan.Nothing:
		return nil, true
	case plan.Blocked:
		outcome = status.BlockedError{Blocked: step}
		return outcome, isComplete(outcome)
	}
	return nil, false
}

// isComplete reports whether a sync with this outcome leaves nothing to do: at
// most, the cloud lacks an extension, or drift is reported.
func isComplete(outcome error) bool {
	var blocked status.BlockedError
	return status.IsComplete(outcome) || errors.As(outcome, &blocked) && blocked.Reason == plan.ReasonDrifted
}

// statusMatches reports whether the status says that the actual state was reached
// for the current spec. Then a former leader has changed nothing since the cache
// was filled.
func statusMatches(network *samplecrdv1.Network, desired plan.Desired, actual plan.Actual) bool {
	ours, current := actual.Ours(desired), network.Status
	return status.IsSettled(network) && ours.NetworkID == current.NetworkID && ours.SubnetID == current.SubnetID
}

// Drift compares a Network with the cache of Neutron's state, without a request.
// It reports whether the Network needs a sync, and whether the reason is a change
// in Neutron. A Network whose last sync failed has its own retry: it needs a sync
// only if it is in sync by now.
func (r *Reconciler) Drift(network *samplecrdv1.Network) (needsSync, drifted bool) {
	if network.DeletionTimestamp != nil {
		return false, false
	}
	desired, wasInSync := r.Desired(cache.MetaObjectToName(network), network), r.wasInSync(network)
	actual, _ := r.fromCache(network, desired)
	outcome, inSync := cachedOutcome(desired, actual)
	statusChanged := false
	if inSync && wasInSync && !r.awaitsCorrection(network) {
		_, statusChanged = status.For(network, desired, actual, outcome, r.now())
	}
	return wasInSync != inSync || statusChanged || r.hasRoomAgain(network) || r.mayFitQuota(network), wasInSync && !inSync
}

package reconcile

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
)

// Observe finds out the desired and the actual state, from the object, the ledger and the
// cache of Neutron's state. It sends no request and changes nothing.
func (p *Pass) Observe() {
	p.desired = p.Desired(p.key, p.network)
	p.actual = p.observe(p.key, p.network, p.desired)
}

// Desired returns the state that a Network requests. If the Network is nil, it
// does not exist, and nothing of it should be left.
func (r *Reconciler) Desired(key cache.ObjectName, network *samplecrdv1.Network) plan.Desired {
	owner, a := r.owner(key), r.accountOf(key)
	if network == nil {
		desired := plan.Desired{Owner: owner, Absent: true, Gone: true, Claims: a.claims(true)}
		if on := r.leftOf(key, a).onAdopted; len(on) > 0 {
			desired.Adopted, desired.Leave = on[0], plan.LeaveNetwork
		}
		return desired
	}
	desired := plan.DesiredFor(owner, network.Spec)
	desired.Claims = a.claims(false)
	desired.Absent = network.DeletionTimestamp != nil
	desired.Edited = network.Generation > 1
	r.mu.Lock()
	desired.SharesRange = r.laterOfRange[key]
	r.mu.Unlock()
	desired.ReportDrift = r.reportsDrift(network) && status.HasMatched(network)
	switch {
	case isPaused(network):
		desired.Obstacle = plan.Blocked{Reason: plan.ReasonPaused, Message: "The annotation " + samplecrdv1.AnnotationPaused +
			" pauses this Network: nothing is changed or deleted in Neutron. Remove the annotation to continue."}
	case network.Spec.NetworkID != "":
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

func isPaused(network *samplecrdv1.Network) bool {
	value, ok := network.Annotations[samplecrdv1.AnnotationPaused]
	return ok && value != "false"
}

// reportsDrift reports whether a difference made in Neutron is to be reported
// instead of corrected.
func (r *Reconciler) reportsDrift(network *samplecrdv1.Network) bool {
	return network.Spec.DriftPolicy == samplecrdv1.DriftPolicyReport ||
		network.Spec.DriftPolicy == "" && r.options.ReportDrift
}

func (r *Reconciler) owner(key cache.ObjectName) neutron.Owner {
	return neutron.Owner{Cluster: r.options.Cluster, Namespace: key.Namespace, Name: key.Name}
}

// obstacleToAdoption returns why a Network cannot adopt the network in
// spec.networkID. The reason is empty if it can.
func (r *Reconciler) obstacleToAdoption(network *samplecrdv1.Network) plan.Blocked {
	if !r.options.AllowAdoption.Has(network.Namespace) {
		return plan.Blocked{Reason: plan.ReasonAdoptionNotAllowed, Message: "spec.networkID requests the adoption of an " +
			"existing Neutron network, which this controller does not allow. " +
			"Remove networkID to get a new network, or ask the administrator to set -allow-adoption=" + network.Namespace + "."}
	}
	for _, other := range r.networks.Adopting(network.Spec.NetworkID) {
		mayHaveIt := r.options.AllowAdoption.Has(other.Namespace) || other.Status.NetworkID == other.Spec.NetworkID
		if mayHaveIt && other.UID != network.UID && hasPrecedence(other, network) {
			return plan.Blocked{Reason: plan.ReasonNotOurs, Message: fmt.Sprintf(
				"Neutron network %s is already adopted by the Network %s/%s. Delete one of the two Networks.",
				network.Spec.NetworkID, other.Namespace, other.Name)}
		}
	}
	return plan.Blocked{}
}

// hasPrecedence reports whether of two Networks that request the same network, a
// gets it: the one that has adopted it already, or else the older one.
func hasPrecedence(a, b *samplecrdv1.Network) bool {
	if hasA, hasB := a.Status.NetworkID == a.Spec.NetworkID, b.Status.NetworkID == b.Spec.NetworkID; hasA != hasB {
		return hasA
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}

// observe returns what is known of the actual state without a request: the state in the
// cache of Neutron's state, or, if the cache may lack what an earlier request created,
// only what the object itself records. Then the plan has to begin with a look.
func (r *Reconciler) observe(key cache.ObjectName, network *samplecrdv1.Network, desired plan.Desired) plan.Actual {
	if network == nil {
		actual := plan.Actual{Finalizer: r.mayBeLeft(key)} // so that the plan deletes what is left
		actual.RouterID = r.accountOf(key).router
		connected, _ := r.neutron.KnownCloud()
		return actual.After(plan.FindCloud{}, connected)
	}
	cached, known := r.fromCache(network, desired)
	// A network that the cache does not have is gone, or another replica has created it.
	if !known || cached.NetworkID != "" && !cached.HasNetwork(cached.NetworkID) {
		return r.unobserved(network)
	}
	if r.isCacheComplete(network) {
		return cached
	}
	_, inSync := cachedOutcome(desired, cached)
	if inSync && (r.isListCurrent() || statusMatches(network, desired, cached)) {
		return cached
	}
	return r.unobserved(network)
}

// mayBeLeft reports whether something of a key may be in Neutron whose object does not
// exist: the cache of Neutron's state shows it, or a request has not ended.
func (r *Reconciler) mayBeLeft(key cache.ObjectName) bool {
	a := r.accountOf(key)
	return a.hasNetworks() || a.isOrphan || r.leftOf(key, a).isOurs()
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
	actual := plan.Actual{
		Finalizer: HasFinalizer(network), Cloud: recordedCloud(network), Record: status.RecordOf(network.Status)}
	if connected, ok := r.neutron.KnownCloud(); ok {
		if r.options.LeaveCloud != "" && actual.Cloud == r.options.LeaveCloud && actual.Cloud != connected {
			actual.Cloud, actual.Record = "", plan.Record{}
		}
		if actual.Cloud == connected && network.Annotations[samplecrdv1.AnnotationCloud] != connected {
			actual.Cloud = "" // restore the annotation
		}
		actual = actual.After(plan.FindCloud{}, connected)
	}
	if extensions, ok := r.neutron.KnownExtensions(); ok {
		actual = actual.After(plan.FindExtensions{}, extensions)
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
		if owner.String() == key.String() && owner.Cluster != r.options.Cluster &&
			!slices.Contains(r.options.OtherClusters, owner.Cluster) {
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
	actual = actual.After(plan.FindNetwork{Filter: neutron.NetworkFilter{Name: desired.Owner.String()}}, view.Marked)
	if id != "" {
		actual = actual.After(plan.FindNetwork{Filter: neutron.NetworkFilter{ID: id}}, view.Named)
	}
	for networkID, subnets := range view.Subnets {
		actual = actual.After(plan.FindSubnets{Filter: neutron.SubnetFilter{NetworkID: networkID}}, subnets)
	}
	for networkID, interfaces := range view.RouterInterfaces {
		actual = actual.After(plan.FindRouterInterfaces{NetworkID: networkID}, interfaces)
	}
	if desired.Router != nil {
		filter := neutron.RouterFilter{ID: desired.Router.ID, Name: desired.Router.Name}
		if router, ok := r.neutron.KnownRouter(filter); ok {
			actual = actual.After(plan.FindRouter{Filter: filter}, []neutron.Router{router})
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
		return step, isComplete(step)
	}
	return nil, false
}

// isComplete reports whether a sync with this outcome leaves nothing to do: at
// most, the cloud lacks an extension, or drift is reported.
func isComplete(outcome error) bool {
	return status.IsComplete(outcome) || status.IsBlockedBy(outcome, plan.ReasonDrifted)
}

// statusMatches reports whether the status says that the actual state was reached
// for the current spec. Then a former leader has changed nothing since the cache
// was filled.
func statusMatches(network *samplecrdv1.Network, desired plan.Desired, actual plan.Actual) bool {
	ours, current := actual.Ours(desired), network.Status
	return status.IsSettled(network) && ours.NetworkID == current.NetworkID && ours.SubnetID == current.SubnetID
}

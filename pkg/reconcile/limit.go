package reconcile

import (
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
)

// A ResourceQuota counts Network objects. A network that outlives its object, because
// it was retained or somebody removed the finalizer, is counted here.

// checkLimit returns an error if the namespace of a key has as many networks as are
// allowed. Several workers may create networks of a namespace at once: those that are
// being created are in the ledger. The caller holds the lock.
func (r *Reconciler) checkLimit(key cache.ObjectName) error {
	if r.options.MaxNetworksPerNamespace == 0 {
		return nil
	}
	usage, known := r.neutron.Usage(r.options.Cluster, key.Namespace)
	if !known {
		return status.WaitError{Reason: "the networks of the namespace are not counted yet: " +
			"Neutron has not returned a complete list since the controller started"}
	}
	if count := r.count(usage, key); count >= r.options.MaxNetworksPerNamespace {
		return r.limitReached(key.Namespace, count, usage)
	}
	return nil
}

// count returns the number of networks of a namespace: those in Neutron, those that
// are being created for other keys, and those that only a status names: the list may be
// older than the last requests of a former leader. The caller holds the lock.
func (r *Reconciler) count(usage neutron.Usage, key cache.ObjectName) (count int) {
	count = total(usage.Owned) + total(usage.Retained)
	unlisted := map[neutron.Owner]bool{}
	for other, a := range r.ledger {
		if other.Namespace == key.Namespace && a.counts(r.neutron.ListedSince) {
			unlisted[r.owner(other)] = true
		}
	}
	for _, network := range r.networks.WithNetwork(key.Namespace) {
		owner := r.owner(cache.MetaObjectToName(network))
		if _, isRetained := usage.Retained[owner]; !isRetained && !r.isInOtherCloud(network) {
			unlisted[owner] = true
		}
	}
	for owner := range unlisted {
		if _, inCache := usage.Owned[owner]; !inCache && owner != r.owner(key) {
			count++
		}
	}
	return count
}

func total(ids map[neutron.Owner][]string) (count int) {
	for _, some := range ids {
		count += len(some)
	}
	return count
}

// isInOtherCloud reports whether the network of an object is not in the cloud that
// the controller is connected to.
func (r *Reconciler) isInOtherCloud(network *samplecrdv1.Network) bool {
	recorded := recordedCloud(network)
	connected, known := r.neutron.KnownCloud()
	return known && recorded != "" && recorded != connected
}

// limitReached describes what a namespace has in Neutron, and how it gets room. The
// count includes networks that are being created.
func (r *Reconciler) limitReached(namespace string, count int, usage neutron.Usage) plan.Blocked {
	retained, orphaned := total(usage.Retained), 0
	for owner, ids := range usage.Owned {
		if network, err := r.networks.Get(cache.NewObjectName(namespace, owner.Name)); err == nil && network == nil {
			orphaned += len(ids)
		}
	}
	return plan.Blocked{Reason: plan.ReasonNamespaceLimit, Message: fmt.Sprintf(
		"Namespace %s has %d networks in Neutron, and -max-networks-per-namespace allows %d; "+
			"%d of them were retained by deletionPolicy and %d are orphans, without a Network. "+
			"Delete a Network that is not needed, or ask the administrator to list the networks (samplecrd-controller plan) "+
			"and delete those that are not needed (openstack network delete).",
		namespace, count, r.options.MaxNetworksPerNamespace, retained, orphaned)}
}

// hasRoomAgain reports whether a Network waits because of the limit, and its namespace
// has fewer networks by now.
func (r *Reconciler) hasRoomAgain(network *samplecrdv1.Network) bool {
	if status.ReadyOf(network.Status).Reason != string(plan.ReasonNamespaceLimit) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	usage, known := r.neutron.Usage(r.options.Cluster, network.Namespace)
	most := r.options.MaxNetworksPerNamespace
	return known && (most == 0 || r.count(usage, cache.MetaObjectToName(network)) < most)
}

// quota shows whether the OpenStack project has room again for Networks that did not fit
// its quota. All Networks are in one project.
type quota struct {
	// changes is how often Neutron has created or deleted something since the last list,
	// and changedAt when it did last.
	changes   int
	changedAt time.Time
	// retries is how many Networks are retried until the next list.
	retries int
}

// minQuotaRetries is the least number of Networks that are retried after a change. If they
// fit, twice as many follow: so few requests fail if the project is full.
const minQuotaRetries = 10

// applied counts a step that was applied.
func (q *quota) applied(step plan.Step, now time.Time) {
	if action := plan.ActionOf(step); action == plan.Create || action == plan.Delete {
		q.changes, q.changedAt = q.changes+1, now
	}
}

// listed begins the retries after a list.
func (q *quota) listed() {
	if q.retries = 0; q.changes > 0 {
		q.retries = max(minQuotaRetries, 2*q.changes)
	}
	q.changes = 0
}

// claimQuotaRetry reports whether a Network that did not fit the quota is to be retried now.
// If so, it takes one of the retries that are left until the next list.
func (r *Reconciler) claimQuotaRetry(network *samplecrdv1.Network) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := cache.MetaObjectToName(network)
	memory := r.memories[key]
	if r.quota.retries == 0 || memory.rejected == nil || !memory.rejected.at.Before(r.quota.changedAt) ||
		!memory.rejected.isOverQuota() {
		return false
	}
	r.quota.retries--
	memory.rejected = nil
	r.memories[key] = memory
	return true
}

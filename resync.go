package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/metrics"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/report"
)

// Kubernetes tells its informers what changes; Neutron tells nobody. So what it
// has is listed again and again, and compared in memory with what every Network
// asks for; what differs goes into the queue, like any other change.

// resyncForEver resyncs after each pause, until the context ends.
func (c *Controller) resyncForEver(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(c.resync(ctx))
		}
	}
}

// resync lists what Neutron has and looks for what is not as it should be. It
// returns after which pause to do so again.
func (c *Controller) resync(ctx context.Context) (pause time.Duration) {
	logger, led := klog.FromContext(ctx), c.leading.Load()
	listing, err := c.neutron.Refresh(ctx)
	pause = pauseAfter(listing.Took, c.options.ResyncPeriod)
	metrics.ObserveListing(listing, pause, err)
	if err != nil {
		var failure *neutron.Error
		if errors.As(err, &failure) {
			pause = max(pause, min(failure.RetryAfter, c.retry.refused))
		}
		if ctx.Err() == nil {
			logger.Info("Listing what Neutron has failed: changes made there are not noticed until it succeeds", "pause", pause.Round(time.Second), "err", err)
		}
		return pause
	}
	logger.V(2).Info("Listed what Neutron has", "networks", listing.Networks, "subnets", listing.Subnets, "took", listing.Took, "pause", pause.Round(time.Second))
	if led {
		c.listed.Store(true)
		c.enqueueDifferences()
		c.lookForOrphans(ctx)
	}
	return pause
}

// pauseAfter returns how long to pause after a list that took so long: listing
// takes a tenth of the time at most. Pauses are spread, so that several
// controllers do not list at once.
func pauseAfter(took, period time.Duration) time.Duration {
	return max(wait.Jitter(period*3/4, 1.0/3), 9*took)
}

// enqueueDifferences asks for a sync of each Network that was in step with
// Neutron and no longer is; and of each that was not and now is. One that is
// known not to be in step has its time to be tried again.
func (c *Controller) enqueueDifferences() {
	for _, cached := range c.networks.list() {
		key := cache.MetaObjectToName(cached)
		network, err := c.networks.get(key)
		if err != nil || network == nil || network.DeletionTimestamp != nil {
			continue
		}
		desired, settled := c.desired(network), c.seen.settled(network)
		actual, outcome, done := c.planFromMirror(network, desired)
		inStep := done
		if done && settled { // then its status must say so
			_, changed := report.Status(network, desired, actual, outcome, metav1.Now())
			inStep = !changed
		}
		if settled && !inStep {
			metrics.DriftDetected.Inc()
		}
		if settled != inStep {
			c.enqueueNetwork(key, "resync")
		}
	}
}

// planFromMirror returns what Neutron was last seen to have of a Network, and
// whether a plan would find nothing to do there, with the outcome of that;
// whatever the status says: that of one that failed says so until it is looked
// at again.
func (c *Controller) planFromMirror(network *samplecrdv1.Network, desired plan.Desired) (actual plan.Actual, outcome error, done bool) {
	if desired.Absent || !hasFinalizer(network) {
		return actual, nil, false
	}
	id := desired.Adopted
	if id == "" {
		id = network.Status.NetworkID
	}
	marks := []string{desired.Owner.Marker(), desired.Owner.RetainedMarker()}
	glance, ok := c.neutron.Lookup(marks, id)
	if !ok {
		return actual, nil, false
	}
	actual = c.actualOf(network).WithNetworks(neutron.NetworkFilter{Descriptions: marks}, glance.Marked)
	if id != "" {
		actual = actual.WithNetworks(neutron.NetworkFilter{ID: id}, glance.Named)
	}
	for networkID, subnets := range glance.Subnets {
		actual = actual.WithSubnets(networkID, subnets)
	}
	switch end := plan.Next(desired, actual).(type) {
	case plan.Nothing:
		return actual, nil, true
	case plan.Blocked:
		outcome = report.BlockedError{Blocked: end}
		return actual, outcome, isAllButAnExtension(outcome)
	}
	return actual, nil, false
}

// wasDone reports whether what the mirror shows is what the status says was done
// for this very spec: so there is nothing that a former leader may have changed
// since the mirror was filled.
func wasDone(network *samplecrdv1.Network, desired plan.Desired, actual plan.Actual) bool {
	ours, status := actual.Ours(desired), network.Status
	ready := meta.FindStatusCondition(status.Conditions, samplecrdv1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == network.Generation &&
		ours.NetworkID == status.NetworkID && ours.SubnetID == status.SubnetID
}

// isAllButAnExtension reports whether Neutron has all that is asked for, but for
// what it cannot do. That is kept as it is like any other.
func isAllButAnExtension(outcome error) bool {
	var blocked report.BlockedError
	return errors.As(outcome, &blocked) && blocked.Reason == plan.ReasonExtensionMissing
}

// orphans are the networks that carry a mark of this cluster and have no
// object: its finalizer was taken away by force, say, or a backup of the cluster
// was restored that is older than they are.
type orphans struct {
	mu    sync.Mutex
	since map[string]time.Time // by the network's ID: when it was first seen
	owner map[cache.ObjectName][]string
	// unwritten are the objects for which a network was made that no status names
	// yet. Where such an object is gone, it went while the network was being made:
	// another controller has let it go.
	unwritten map[cache.ObjectName]bool
}

func newOrphans() orphans {
	return orphans{since: map[string]time.Time{}, unwritten: map[cache.ObjectName]bool{}}
}

// made notes that a network was made for an object.
func (o *orphans) made(key cache.ObjectName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unwritten[key] = true
}

// written forgets that, where the object's status names a network by now.
func (o *orphans) written(key cache.ObjectName, status samplecrdv1.NetworkStatus) {
	if status.NetworkID != "" {
		o.forget(key)
	}
}

func (o *orphans) forget(key cache.ObjectName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.unwritten, key)
}

// lookForOrphans compares the marks in Neutron with the objects that there are.
func (c *Controller) lookForOrphans(ctx context.Context) {
	logger := klog.FromContext(ctx)
	o := &c.orphans
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.since
	o.since, o.owner = map[string]time.Time{}, map[cache.ObjectName][]string{}
	for owner, ids := range c.neutron.Owned(c.options.Cluster) {
		key := cache.NewObjectName(owner.Namespace, owner.Name)
		if !c.networks.knows(key.Namespace) {
			continue // whether its Network exists is not known
		}
		if network, err := c.networks.get(key); err != nil || network != nil {
			continue
		}
		o.owner[key] = ids
		for _, id := range ids {
			since, known := before[id]
			if !known {
				since = time.Now()
				logger.Info("Found an orphan: a network in Neutron that is marked as ours, and whose Network does not exist", "network", key, "networkID", id, "deletedAfter", c.orphanFate())
			}
			o.since[id] = since
			if c.options.OrphanGracePeriod > 0 && time.Since(since) >= c.options.OrphanGracePeriod {
				c.enqueueNetwork(key, "orphan")
			}
		}
	}
	metrics.Orphans.Set(float64(len(o.since)))
}

func (c *Controller) orphanFate() string {
	if c.options.OrphanGracePeriod == 0 {
		return "never (-delete-orphans is not set)"
	}
	return c.options.OrphanGracePeriod.String()
}

// due reports whether all networks of an object that does not exist have been
// orphans for that long, or were made after it went.
func (o *orphans) due(key cache.ObjectName, grace time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unwritten[key] {
		return true
	}
	ids := o.owner[key]
	return grace > 0 && len(ids) > 0 && !slices.ContainsFunc(ids, func(id string) bool { return time.Since(o.since[id]) < grace })
}

// deleteOrphan takes away what is in Neutron of an object that does not exist,
// when its time has come: by the same plan as if the object were being deleted.
func (c *Controller) deleteOrphan(ctx context.Context, key cache.ObjectName) error {
	if !c.orphans.due(key, c.options.OrphanGracePeriod) {
		return nil
	}
	_, err := c.client.SamplecrdV1().Networks(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return err // it exists after all, or we don't know
	}
	gone := &samplecrdv1.Network{}
	gone.Namespace, gone.Name, gone.Finalizers = key.Namespace, key.Name, []string{samplecrdv1.Finalizer}
	_, err = c.carryOut(ctx, gone, plan.DesiredAbsent(c.owner(gone)))
	if err == nil {
		c.orphans.forget(key)
	}
	return err
}

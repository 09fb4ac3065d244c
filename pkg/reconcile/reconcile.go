// Package reconcile makes Neutron match one Network at a time. A sync is a [Pass], and its
// methods are the phases, in their order: Observe, Apply, Report.
package reconcile

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/status"
	"github.com/samplecrd/network-controller/pkg/store"
)

// Options configure a Reconciler.
type Options struct {
	// FieldManager owns the fields that the Reconciler writes.
	FieldManager string
	// Cluster identifies this Kubernetes cluster in owner markers.
	Cluster string
	// AllowAdoption are the namespaces in which spec.networkID is permitted.
	AllowAdoption Namespaces
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
	clock    clock.PassiveClock
	options  Options

	mu       sync.Mutex
	memories map[cache.ObjectName]memory
	ledger   map[cache.ObjectName]account
	quota    quota
	// laterOfRange are Networks with the range of an older one in their namespace: their
	// status says so. Two networks may have one range, but hardly ever on purpose.
	laterOfRange map[cache.ObjectName]bool
	// startedAt is when this replica started leading, or zero.
	startedAt time.Time
	stopping  <-chan struct{}
}

// Dependencies are what a Reconciler works with.
type Dependencies struct {
	Client   clientset.Interface
	Networks *store.Networks
	Neutron  *neutron.Cache
	Events   record.EventRecorder
	Clock    clock.PassiveClock
}

// New returns a Reconciler.
func New(d Dependencies, options Options) *Reconciler {
	return &Reconciler{
		client: d.Client, networks: d.Networks, neutron: d.Neutron, events: d.Events, clock: d.Clock, options: options,
		memories: map[cache.ObjectName]memory{}, ledger: map[cache.ObjectName]account{},
		laterOfRange: map[cache.ObjectName]bool{},
	}
}

// Start is called when this replica starts leading, before the first sync. When the context
// ends, a sync stops before its next step.
func (r *Reconciler) Start(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.startedAt, r.stopping = r.clock.Now(), ctx.Done()
	r.laterOfRange = laterOfRange(r.networks.List()) // so that a restart changes no status
}

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

// HasRequests reports whether a request for an object of a namespace may have made something
// that its status does not name yet.
func (r *Reconciler) HasRequests(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, account := range r.ledger {
		if key.Namespace == namespace && len(account.requests) > 0 {
			return true
		}
	}
	return false
}

// IsIdle reports whether the ledger is empty: nothing may exist in Neutron that no object
// names.
func (r *Reconciler) IsIdle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ledger) == 0
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
	if inSync && wasInSync {
		after, relevant := status.For(network, status.Found{Desired: desired, Actual: actual, Outcome: outcome}, r.now())
		statusChanged = relevant && !equality.Semantic.DeepEqual(after, network.Status)
	}
	needed := wasInSync != inSync || statusChanged || r.hasRoomAgain(network) || r.claimQuotaRetry(network)
	return needed, wasInSync && !inSync
}

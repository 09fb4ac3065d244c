package reconcile

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/status"
)

// memory is what this replica remembers of a key between two syncs. It begins
// when there is something to remember, and ends with the object. All of it can be lost: it
// saves and limits requests. What may exist in Neutron is in the ledger.
type memory struct {
	// uid is the object that the following fields belong to.
	uid types.UID
	// isNew is true until this replica has set the finalizer, or found it set.
	isNew bool
	// observedGeneration is the generation that Neutron matched after the last
	// sync, or 0.
	observedGeneration int64
	// status is the hash of the last status that this replica wrote, or found to be
	// right. The event of previousStatus, which it wrote before, may still come.
	status, previousStatus uint64
	// failure is the outcome of the last sync, or empty if it succeeded.
	failure string
	// overwritten is true if another client has written the status, until the next
	// sync. overwriteReported is when that was last reported, and correction the last
	// one that followed.
	overwritten       bool
	overwriteReported time.Time
	correction        correction
	// becomingReady is true until a new Network is Ready for the first time.
	becomingReady bool
	// edited is the latest edition that was synced. Edits limits how often it changes;
	// it is nil until it does.
	edited edition
	edits  *rate.Limiter
	// rejected is the outcome of the last sync if Neutron rejected a request. Until the
	// time of the retry, syncs of the same spec have this outcome, and do not repeat
	// the request.
	rejected *rejection
}

// formerOf returns an object as a former leader left it.
func formerOf(network *samplecrdv1.Network) *former {
	found := &former{uid: network.UID, networkID: network.Status.NetworkID}
	if ready := meta.FindStatusCondition(network.Status.Conditions, samplecrdv1.ConditionReady); ready != nil && ready.Status == metav1.ConditionTrue {
		found.readySince = ready.LastTransitionTime.Time
	}
	return found
}

// memoryOf returns the memory of a Network. Fields that belong to an earlier
// object of the same name are empty.
func (r *Reconciler) memoryOf(network *samplecrdv1.Network) memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.memories[cache.MetaObjectToName(network)].of(network.UID)
}

// of returns the memory as the one of an object.
func (m memory) of(uid types.UID) memory {
	if m.uid == uid {
		return m
	}
	return memory{uid: uid, isNew: true, rejected: m.rejected}
}

// update changes the memory of a Network.
func (r *Reconciler) update(network *samplecrdv1.Network, change func(*memory)) {
	r.updateKey(cache.MetaObjectToName(network), func(memory *memory) {
		*memory = memory.of(network.UID)
		change(memory)
	})
}

// updateKey changes the memory of a key, whatever object it belongs to.
func (r *Reconciler) updateKey(key cache.ObjectName, change func(*memory)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	memory := r.memories[key]
	change(&memory)
	r.memories[key] = memory
}

// forget ends the memory of a key whose object does not exist. If Neutron has rejected a
// request, that is remembered until its time: another list finds the orphan again.
func (r *Reconciler) forget(key cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rejected := r.memories[key].rejected
	delete(r.memories, key)
	if rejected != nil && r.until(rejected.until) > 0 {
		r.memories[key] = memory{rejected: rejected}
	}
}

// wasInSync reports whether Neutron matched the current spec after the last sync.
func (r *Reconciler) wasInSync(network *samplecrdv1.Network) bool {
	return r.memoryOf(network).observedGeneration == network.Generation
}

// wroteStatus reports whether the status of a Network is the last one that this
// replica wrote. If not, another controller may be writing it.
func (r *Reconciler) wroteStatus(network *samplecrdv1.Network) bool {
	current := status.Hash(network.Status)
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.memories[cache.MetaObjectToName(network)]
	return last.uid == network.UID && (current == last.status || current == last.previousStatus)
}

// StatusOverwritten reports whether another client has changed the status of a
// Network, and after which delay a sync should correct it.
func (r *Reconciler) StatusOverwritten(before, after *samplecrdv1.Network) (delay time.Duration, overwritten bool) {
	overwritten = !status.IsSame(before.Status, after.Status) && !r.wroteStatus(after)
	if overwritten {
		r.updateKey(cache.MetaObjectToName(after), func(memory *memory) {
			memory.overwritten = memory.uid == after.UID
			memory.correction = r.options.Retry.correctionAfter(memory.of(after.UID).correction, r.clock.Now())
			delay = r.until(memory.correction.due)
		})
	}
	return delay, overwritten
}

// awaitsCorrection reports whether the status of a Network was overwritten, and is not
// to be corrected yet.
func (r *Reconciler) awaitsCorrection(network *samplecrdv1.Network) bool {
	return r.until(r.memoryOf(network).correction.due) > 0
}

// becomesReady reports whether a Network becomes Ready for the first time with
// the status that was just written. (This is unknown for a Network that already
// had a network in Neutron and was not Ready when this replica started leading.)
func (r *Reconciler) becomesReady(network *samplecrdv1.Network, written samplecrdv1.NetworkStatus) (becomes bool) {
	r.update(network, func(memory *memory) {
		becoming := memory.becomingReady || network.Status.NetworkID == "" && !status.IsReady(network.Status)
		becomes = becoming && status.IsReady(written)
		memory.becomingReady = becoming && !becomes
	})
	return becomes
}

// until returns the time left until a point in time; it is negative afterwards.
func (r *Reconciler) until(t time.Time) time.Duration { return t.Sub(r.clock.Now()) }

func (r *Reconciler) now() metav1.Time { return metav1.NewTime(r.clock.Now()).Rfc3339Copy() }

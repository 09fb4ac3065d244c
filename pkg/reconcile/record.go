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

// record is what this replica remembers of a key between two syncs. It begins
// when there is something to remember, and ends with the object. All of it can be lost: it
// saves and limits requests. What may exist in Neutron is in the ledger.
type record struct {
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

// recordOf returns the record of a Network. Fields that belong to an earlier
// object of the same name are empty.
func (r *Reconciler) recordOf(network *samplecrdv1.Network) record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.records[cache.MetaObjectToName(network)].of(network.UID)
}

// of returns the record as the one of an object.
func (r record) of(uid types.UID) record {
	if r.uid == uid {
		return r
	}
	return record{uid: uid, isNew: true, rejected: r.rejected}
}

// update changes the record of a Network.
func (r *Reconciler) update(network *samplecrdv1.Network, change func(*record)) {
	r.updateKey(cache.MetaObjectToName(network), func(record *record) {
		*record = record.of(network.UID)
		change(record)
	})
}

// updateKey changes the record of a key, whatever object it belongs to.
func (r *Reconciler) updateKey(key cache.ObjectName, change func(*record)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	record := r.records[key]
	change(&record)
	r.records[key] = record
}

// forget ends the record of a key whose object does not exist. If Neutron has rejected a
// request, that is remembered until its time: another list finds the orphan again.
func (r *Reconciler) forget(key cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rejected := r.records[key].rejected
	delete(r.records, key)
	if rejected != nil && r.until(rejected.until) > 0 {
		r.records[key] = record{rejected: rejected}
	}
}

// wasInSync reports whether Neutron matched the current spec after the last sync.
func (r *Reconciler) wasInSync(network *samplecrdv1.Network) bool {
	return r.recordOf(network).observedGeneration == network.Generation
}

// wroteStatus reports whether the status of a Network is the last one that this
// replica wrote. If not, another controller may be writing it.
func (r *Reconciler) wroteStatus(network *samplecrdv1.Network) bool {
	current := status.Hash(network.Status)
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.records[cache.MetaObjectToName(network)]
	return last.uid == network.UID && (current == last.status || current == last.previousStatus)
}

// StatusOverwritten reports whether another client has changed the status of a
// Network, and after which delay a sync should correct it.
func (r *Reconciler) StatusOverwritten(before, after *samplecrdv1.Network) (delay time.Duration, overwritten bool) {
	overwritten = !status.IsSame(before.Status, after.Status) && !r.wroteStatus(after)
	if overwritten {
		r.updateKey(cache.MetaObjectToName(after), func(record *record) {
			record.overwritten = record.uid == after.UID
			record.correction = r.options.Retry.correctionAfter(record.of(after.UID).correction, r.clock.Now())
			delay = r.until(record.correction.due)
		})
	}
	return delay, overwritten
}

// awaitsCorrection reports whether the status of a Network was overwritten, and is not
// to be corrected yet.
func (r *Reconciler) awaitsCorrection(network *samplecrdv1.Network) bool {
	return r.until(r.recordOf(network).correction.due) > 0
}

// becomesReady reports whether a Network becomes Ready for the first time with
// the status that was just written. (This is unknown for a Network that already
// had a network in Neutron and was not Ready when this replica started leading.)
func (r *Reconciler) becomesReady(network *samplecrdv1.Network, written samplecrdv1.NetworkStatus) (becomes bool) {
	r.update(network, func(record *record) {
		becoming := record.becomingReady || network.Status.NetworkID == "" && !status.IsReady(network.Status)
		becomes = becoming && status.IsReady(written)
		record.becomingReady = becoming && !becomes
	})
	return becomes
}

// until returns the time left until a point in time; it is negative afterwards.
func (r *Reconciler) until(t time.Time) time.Duration { return t.Sub(r.clock.Now()) }

func (r *Reconciler) now() metav1.Time { return metav1.NewTime(r.clock.Now()).Rfc3339Copy() }

package reconcile

import (
	"errors"
	"maps"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
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
	// reported is the generation of the last sync that wrote the status or found it to be
	// right, status the hash of that status, and inSync whether Neutron matched the spec.
	reported int64
	status   uint64
	inSync   bool
	// failure is the outcome of the last sync, or empty if it succeeded.
	failure string
	// correction is the last one of a status that another client has overwritten.
	correction correction
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
	if ready := status.ReadyOf(network.Status); ready.Status == metav1.ConditionTrue {
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

// TakeOver is called before the Reconciler works on the Networks of a namespace, which another
// one has worked on: it forgets what it knew of them.
func (r *Reconciler) TakeOver(namespace string, networks []*samplecrdv1.Network) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.memories, func(key cache.ObjectName, _ memory) bool { return key.Namespace == namespace })
	if r.laterOfRange == nil {
		r.laterOfRange = map[cache.ObjectName]bool{}
	}
	maps.Copy(r.laterOfRange, laterOfRange(networks)) // so that a restart changes no status
}

func (r *Reconciler) wasInSync(network *samplecrdv1.Network) bool {
	memory := r.memoryOf(network)
	return memory.inSync && memory.reported == network.Generation
}

// becomesReady reports whether a Network becomes Ready for the first time with
// the status that was just written. (This is unknown for a Network that already
// had a network in Neutron and was not Ready when this replica started leading.)
func (p *Pass) becomesReady(before, written samplecrdv1.NetworkStatus) (becomes bool) {
	p.update(p.network, func(memory *memory) {
		becoming := memory.becomingReady || before.NetworkID == "" && !status.IsReady(before)
		becomes = becoming && status.IsReady(written)
		memory.becomingReady = becoming && !becomes
	})
	return becomes
}

// edition is what a user has requested last: an object, its spec, and perhaps a retry. It
// is empty if there is no object.
type edition struct {
	uid        types.UID
	generation int64
	retry      string
}

func editionOf(network *samplecrdv1.Network) edition {
	if network == nil {
		return edition{}
	}
	return edition{network.UID, network.Generation, network.Annotations[samplecrdv1.AnnotationRetry]}
}

// The syncs of a Network because of an edit: a burst, and then one a second. Other
// Networks need the workers, too.
const (
	editBurst = 10
	editRate  = rate.Limit(1)
)

// noteEdit counts the sync of an edited Network. It returns how long the sync has to wait:
// not at all, unless the Network is edited without end. A deletion never waits.
func (m *memory) noteEdit(network *samplecrdv1.Network, now time.Time) (wait time.Duration) {
	edited := editionOf(network)
	if edited == m.edited {
		return 0
	}
	if m.edited != (edition{}) && network.DeletionTimestamp == nil {
		if m.edits == nil {
			m.edits = rate.NewLimiter(editRate, editBurst)
		}
		reserved := m.edits.ReserveN(now, 1)
		if wait = reserved.DelayFrom(now); wait > 0 {
			reserved.CancelAt(now)
			return wait
		}
	}
	m.edited = edited
	return 0
}

// until returns the time left until a point in time; it is negative afterwards.
func (r *Reconciler) until(t time.Time) time.Duration { return t.Sub(r.clock.Now()) }

func (r *Reconciler) now() metav1.Time { return metav1.NewTime(r.clock.Now()).Rfc3339Copy() }

// rejection is the outcome of a sync that is not to be repeated for a while.
type rejection struct {
	edition   edition
	outcome   error
	at, until time.Time
}

// rejection returns the outcome of an earlier sync of the same edition if Neutron
// rejected a request then and it is too early to repeat the request. It returns nil
// otherwise, and if the finalizer, which protects what exists, is to be set.
func (r *Reconciler) rejection(key cache.ObjectName, network *samplecrdv1.Network) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.memories[key].rejected
	if network != nil && !HasFinalizer(network) || last == nil || last.edition != editionOf(network) ||
		r.until(last.until) <= 0 {
		return nil
	}
	return last.outcome
}

// isOverQuota reports whether the quota of the project was the reason.
func (r rejection) isOverQuota() bool {
	var failure *neutron.Error
	return errors.As(r.outcome, &failure) && failure.Type == neutron.OverQuota
}

// noteRejection remembers the outcome of a sync if Neutron rejected a request, or
// requested a pause.
func (r *Reconciler) noteRejection(key cache.ObjectName, network *samplecrdv1.Network, outcome error) {
	var failure *neutron.Error
	if !errors.As(outcome, &failure) {
		return
	}
	pause := min(failure.RetryAfter, r.options.Retry.Rejected)
	if errors.Is(failure, neutron.ErrRefused) {
		pause = r.options.Retry.Rejected
	} else if errors.Is(failure, neutron.ErrInUse) && network == nil {
		pause = r.options.Retry.InUse
	}
	if pause <= 0 {
		return
	}
	now := r.clock.Now()
	r.updateKey(key, func(memory *memory) {
		memory.rejected = &rejection{edition: editionOf(network), outcome: outcome, at: now, until: now.Add(pause)}
	})
}

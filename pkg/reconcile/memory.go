package reconcile

import (
	"errors"
	"maps"
	"slices"
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
	// written are the hashes of the last two statuses that this replica has sent. The event
	// of the first one may arrive when the second one is sent.
	written [2]uint64
	// failure is the outcome of the last sync, or empty if it succeeded.
	failure string
	// correction is the last one of a status that another client has overwritten.
	correction correction
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

// remember changes the memory of the Network, or of a key without an object.
func (p *Pass) remember(change func(*memory)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	memory := p.memories[p.key]
	if p.network != nil {
		memory = memory.of(p.network.UID)
	}
	change(&memory)
	p.memories[p.key] = memory
}

// forget ends the memory of a key without an object, unless a rejection still delays an object
// that is created again.
func (r *Reconciler) forget(key cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetLocked(key)
}

// forgetLocked is forget for a caller that holds the lock.
func (r *Reconciler) forgetLocked(key cache.ObjectName) {
	if rejected := r.memories[key].rejected; rejected == nil || r.until(rejected.until) <= 0 {
		delete(r.memories, key)
	}
}

// TakeOver is called before the Reconciler works on the Networks of a namespace, which another
// one has worked on: it forgets what it knew of them.
func (r *Reconciler) TakeOver(namespace string, networks []*samplecrdv1.Network) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.memories, func(key cache.ObjectName, _ memory) bool { return key.Namespace == namespace })
	maps.Copy(r.laterOfRange, laterOfRange(networks)) // so that a restart changes no status
}

func (r *Reconciler) wasInSync(network *samplecrdv1.Network) bool {
	memory := r.memoryOf(network)
	return memory.inSync && memory.reported == network.Generation
}

// HasOwnStatus reports whether the status in an event is one that this replica has just sent,
// perhaps without a response until now. Events arrive in the order of the writes.
func (r *Reconciler) HasOwnStatus(network *samplecrdv1.Network) bool {
	hash, key := status.Hash(network.Status), cache.MetaObjectToName(network)
	r.mu.Lock()
	defer r.mu.Unlock()
	memory := r.memories[key]
	own := hash != 0 && slices.Contains(memory.written[:], hash)
	if own && hash == memory.written[0] { // no event of the one before follows
		memory.written[1] = 0
		r.memories[key] = memory
	}
	return own
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
func (p *Pass) rejection() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.memories[p.key].rejected
	if p.network != nil && !HasFinalizer(p.network) || last == nil || last.edition != editionOf(p.network) ||
		p.until(last.until) <= 0 {
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
func (p *Pass) noteRejection(outcome error) {
	retry, pause, _ := p.options.Retry.classify(outcome)
	if retry != RetryLater || !errors.As(outcome, new(*neutron.Error)) ||
		errors.Is(outcome, neutron.ErrNoCloud) {
		return
	}
	now := p.clock.Now()
	p.remember(func(memory *memory) {
		memory.rejected = &rejection{edition: editionOf(p.network), outcome: outcome, at: now, until: now.Add(pause)}
	})
}

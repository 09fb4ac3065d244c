package debugpage

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// Recorder records what the controller does, within bounds: of the syncs, only the last
// ones are kept. Its parts are a recorder of the queue, an observer of syncs, wrappers
// of event handlers and transports. A Recorder that is off records nothing, wraps
// nothing and costs nothing.
type Recorder struct {
	on      bool
	clock   clock.WithTicker
	process Process
	workers int
	stopped <-chan struct{} // closed when the process stops
	slow    slowMotion
	moments moments

	mu        sync.Mutex
	leads     bool
	sources   sources
	informers []*informer
	handlers  Handlers
	handling  map[cache.ObjectName]*handling // the events in an event handler
	keys      map[cache.ObjectName]*entry    // those in the queue, with a worker or waiting
	front     []cache.ObjectName             // the keys in the queue, in the order in which they were added
	adds      int
	merged    int
	busy      []*work // by worker
	journeys  journeys
	plans     []Plan // the newest first
	neutron   requests

	changes atomic.Int64 // of the journeys
}

// sources are functions that return what other packages know.
type sources struct {
	queueLength func() int
	cacheSize   func() (networks, subnets int, listedAt time.Time)
	cloud       func() (string, bool)
	holder      func() string
}

// Bounds of what is kept for each key and in total.
const (
	maxKeys    = 20_000 // whose events are recorded; further ones are only counted
	maxCauses  = 20
	maxWaiting = 20
	maxFront   = 8
	maxPlans   = 12
)

// entry is the state of a key in the queue. It follows the rules of client-go's queue.
type entry struct {
	queued, working bool // a key that is added while a worker has it is queued when that is done
	since           time.Time
	causes          []Cause
	causeCount      int
	waiting         *Waiting // until it is added, or nil
}

// newRecorder returns a Recorder that is on. When the context ends, nothing is held any more.
func newRecorder(ctx context.Context, clock clock.WithTicker, process Process, workers int) *Recorder {
	process.Started = clock.Now()
	return &Recorder{
		on: true, clock: clock, process: process, workers: workers, stopped: ctx.Done(),
		slow:     slowMotion{changed: make(chan struct{})},
		handling: map[cache.ObjectName]*handling{}, keys: map[cache.ObjectName]*entry{},
		journeys: journeys{byKey: map[cache.ObjectName][]*kept{}}, neutron: requests{operations: map[string]*operation{}},
	}
}

// Off returns a Recorder that is off.
func Off() *Recorder { return &Recorder{} }

// Watch sets the function that returns the number of keys in the queue.
func (r *Recorder) Watch(queueLength func() int) {
	r.set(func() { r.sources.queueLength = queueLength })
}

// ObserveCache sets the functions that return the size of the cache of Neutron's state,
// and the cloud.
func (r *Recorder) ObserveCache(size func() (networks, subnets int, listedAt time.Time), cloud func() (string, bool)) {
	r.set(func() { r.sources.cacheSize, r.sources.cloud = size, cloud })
}

// ObserveLease sets the Lease, and the function that returns its holder.
func (r *Recorder) ObserveLease(lease string, holder func() string) {
	r.set(func() { r.process.Lease, r.sources.holder = lease, holder })
}

func (r *Recorder) set(change func()) {
	if r.on {
		r.mu.Lock()
		defer r.mu.Unlock()
		change()
	}
}

// Added records that a key is added to the queue.
func (r *Recorder) Added(key cache.ObjectName, cause string) {
	if !r.on {
		return
	}
	now := r.clock.Now()
	r.mu.Lock()
	because := Cause{Time: now, Type: cause}
	if event := r.handling[key]; event != nil {
		event.added = true
		if because = event.cause; cause == "start" {
			because.Type = cause
		}
	}
	merged := r.enqueue(key, because, now)
	r.mu.Unlock()
	stage := StageQueue
	if merged {
		stage = StageMerged
	}
	r.moments.add(now, stage, key, because.Type, 0, false)
}

// enqueue adds a key as client-go's queue does. It reports whether the key was in the
// queue already.
func (r *Recorder) enqueue(key cache.ObjectName, cause Cause, now time.Time) (merged bool) {
	r.adds++
	e := r.entryOf(key)
	if e == nil {
		return false
	}
	if merged = e.queued; merged {
		r.merged++
	} else {
		e.queued, e.since, e.causes, e.causeCount = true, now, nil, 0
		r.noteFront(key)
	}
	if e.causeCount++; len(e.causes) < maxCauses {
		e.causes = append(e.causes, cause)
	}
	r.changes.Add(1)
	return merged
}

// entryOf returns the entry of a key, or nil if there are too many.
func (r *Recorder) entryOf(key cache.ObjectName) *entry {
	e := r.keys[key]
	if e == nil && len(r.keys) < maxKeys {
		e = &entry{}
		r.keys[key] = e
	}
	return e
}

func (r *Recorder) noteFront(key cache.ObjectName) {
	if len(r.front) > 2*len(r.keys)+maxFront {
		r.front = slices.DeleteFunc(r.front, func(key cache.ObjectName) bool { return !r.isQueued(key) })
	}
	r.front = append(r.front, key)
}

func (r *Recorder) isQueued(key cache.ObjectName) bool {
	e := r.keys[key]
	return e != nil && e.queued && !e.working
}

// Delayed records that a key is added after a delay. The failures are those in a row,
// if that is why, or 0.
func (r *Recorder) Delayed(key cache.ObjectName, delay time.Duration, failures int) {
	if !r.on {
		return
	}
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entryOf(key)
	if e == nil {
		return
	}
	waiting := &Waiting{Key: key.String(), Reason: "later", Failures: failures, From: now, Until: now.Add(delay)}
	if event := r.handling[key]; event != nil {
		event.added, waiting.Reason = true, "edit"
	} else if failures > 0 {
		waiting.Reason = "backoff"
	}
	if e.waiting == nil || waiting.Until.Before(e.waiting.Until) {
		e.waiting = waiting // client-go's queue keeps the earlier one
	}
	if waiting.Reason != "edit" {
		if working := r.worker(key); working != nil {
			retry := *e.waiting
			working.kept.journey.Retry = &retry
		}
	}
	r.changes.Add(1)
}

// addDue adds the key if it is due, as client-go's queue does at that time.
func (r *Recorder) addDue(key cache.ObjectName, e *entry, now time.Time) {
	if e.waiting == nil || e.waiting.Until.After(now) {
		return
	}
	due := *e.waiting
	e.waiting = nil
	cause := Cause{Time: due.Until, Type: "retry"}
	if due.Reason == "edit" {
		cause.Type, cause.Changed = "updated", "spec"
	}
	r.enqueue(key, cause, due.Until)
}

// addAllDue adds all keys that are due.
func (r *Recorder) addAllDue(now time.Time) {
	for key, e := range r.keys {
		r.addDue(key, e, now)
	}
}

// Taken records that a worker took a key.
func (r *Recorder) Taken(key cache.ObjectName) {
	if !r.on {
		return
	}
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.keys[key]
	if e == nil {
		e = &entry{since: now}
		r.keys[key] = e
	}
	if !e.queued && e.waiting != nil {
		e.waiting.Until = now // by the clock of the queue, it is due
	}
	r.addDue(key, e, now)
	e.queued, e.working = false, true
	for len(r.front) > 0 && !r.isQueued(r.front[0]) {
		r.front = r.front[1:]
	}
	began := &work{recorder: r, key: key, since: now, stage: StageWorker}
	began.kept = r.journeys.add(key, Journey{
		Key: key.String(), Causes: e.causes, CauseCount: e.causeCount, Queued: e.since, Taken: &now, Worker: r.free(began), Steps: []JourneyStep{},
	})
	if began.kept.journey.Causes == nil {
		began.kept.journey.Causes = []Cause{}
	}
	e.causes, e.causeCount = nil, 0
	r.changes.Add(1)
}

// free gives a sync the first worker that has none, and returns its number.
func (r *Recorder) free(began *work) int {
	i := slices.Index(r.busy, nil)
	if i < 0 {
		i, r.busy = len(r.busy), append(r.busy, nil)
	}
	r.busy[i] = began
	return i + 1
}

// worker returns the sync of a key, or nil.
func (r *Recorder) worker(key cache.ObjectName) *work {
	for _, working := range r.busy {
		if working != nil && working.key == key {
			return working
		}
	}
	return nil
}

// Done records that a worker is done with a key.
func (r *Recorder) Done(key cache.ObjectName) {
	if !r.on {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if working := r.worker(key); working != nil {
		r.busy[slices.Index(r.busy, working)] = nil
	}
	e := r.keys[key]
	if e == nil {
		return
	}
	if e.working = false; e.queued {
		r.noteFront(key) // it was added meanwhile
	} else if e.waiting == nil {
		if delete(r.keys, key); len(r.keys) == 0 {
			r.keys, r.front = map[cache.ObjectName]*entry{}, nil // a map that was large stays large
		}
	}
	r.changes.Add(1)
}

// keysWith returns at most 20 keys that begin with a text, of the informers and of what
// is kept. Without a text, they are those of the last syncs.
func (r *Recorder) keysWith(prefix string) []string {
	r.mu.Lock()
	recent, informers := r.journeys.recentKeys(), slices.Clone(r.informers)
	r.mu.Unlock()
	found := []string{}
	add := func(key string) bool {
		if strings.HasPrefix(key, prefix) && !slices.Contains(found, key) {
			found = append(found, key)
		}
		return len(found) < maxListedKeys
	}
	for _, key := range recent {
		if !add(key) {
			return found
		}
	}
	for _, informer := range informers {
		if informer.kind != kindNetwork {
			continue
		}
		keys := informer.keys()
		slices.Sort(keys)
		for _, key := range keys {
			if !add(key) {
				return found
			}
		}
	}
	return found
}

const maxListedKeys = 20

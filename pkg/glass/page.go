package glass

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/samplecrd/network-controller/pkg/observe"
)

// Page is an observer that keeps what it sees, within bounds: of the syncs, only the last
// ones are kept.
type Page struct {
	clock   clock.WithTicker
	process Process
	workers int
	stopped <-chan struct{} // closed when the process stops
	slow    atomic.Int64    // milliseconds that each stage holds a key
	moments moments

	mu         sync.Mutex
	sources    Sources // as soon as they are known
	informers  []*informer
	operations map[string]*operation
	handlers   map[string]int
	handling   map[cache.ObjectName]*handling // the events in an event handler
	pending    map[cache.ObjectName]*Journey  // of the keys that were added, and not taken since
	waiting    map[cache.ObjectName]*Waiting  // the keys that are added after a delay
	merged     int
	busy       []*work    // by worker
	journeys   []*Journey // of the last syncs, the oldest first
}

// Sources are what a Page shows besides what it observes.
type Sources struct {
	// Informers are those of the controller. The first one has the objects of the keys.
	Informers []Informers
	Queue     interface {
		Len() int
		Front(most int) []cache.ObjectName
	}
	// Load returns how many requests are in flight, of at most Places.
	Load   func() (inFlight, waiting int)
	Places int
	Cache  func() (networks, subnets int, listedAt time.Time)
	Cloud  func() (string, bool)
	// Lease is the Lease, Holder returns its holder, and Leads whether this replica leads.
	Lease  string
	Holder func() string
	Leads  func() bool
}

// Bounds of what is kept. The oldest journey makes room for a new one.
const (
	maxKeys           = 20_000 // in each map
	maxCauses         = 20     // of a journey
	maxJourneys       = 200
	maxJourneysOfKey  = 20
	maxSteps          = 20 // of a journey
	maxRequestsOfStep = 8
	maxTextBytes      = 400
)

// handling is an event while its handler runs.
type handling struct {
	cause Cause
	added bool // whether the handler has added the key
}

// newPage returns a Page. When the context ends, nothing is held any more.
func newPage(ctx context.Context, clock clock.WithTicker, process Process, workers int) *Page {
	process.Started = clock.Now()
	return &Page{
		clock: clock, process: process, workers: workers, stopped: ctx.Done(),
		operations: map[string]*operation{},
		handlers:   map[string]int{"added": 0, "updated": 0, "deleted": 0, "skipped": 0},
		handling:   map[cache.ObjectName]*handling{},
		pending:    map[cache.ObjectName]*Journey{},
		waiting:    map[cache.ObjectName]*Waiting{},
	}
}

// show sets the sources.
func (p *Page) show(sources Sources) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sources, p.process.Lease = sources, sources.Lease
	for _, of := range sources.Informers {
		p.informers = append(p.informers, &informer{Informers: of})
	}
}

// Happened implements observe.Observer.
func (p *Page) Happened(key cache.ObjectName, event observe.Event) {
	now := p.clock.Now()
	switch event.Type {
	case observe.Received: // needs no lock of the Page: the informer's is held
		p.moments.add(Moment{Time: now, Stage: StageWatch, Text: "resourceVersion " + event.ResourceVersion}, key)
	case observe.Handling:
		p.handlerBegins(key, Cause{
			Time: now, Type: event.Cause, ResourceVersion: event.ResourceVersion, Changed: event.Changed,
		})
	case observe.Handled:
		p.handlerEnds(key, now)
	case observe.Added:
		p.added(key, Cause{Time: now, Type: event.Cause})
	case observe.Delayed:
		p.delayed(&Waiting{Key: key.String(), Failures: event.Failures, From: now, Until: now.Add(event.Delay)}, key)
	case observe.Due:
		p.mu.Lock()
		delete(p.waiting, key)
		p.mu.Unlock()
		p.added(key, Cause{Time: now, Type: "retry"})
	}
}

func (p *Page) handlerBegins(key cache.ObjectName, cause Cause) {
	p.mu.Lock()
	p.handling[key] = &handling{cause: cause}
	p.handlers[cause.Type]++
	p.mu.Unlock()
	for _, stage := range []Stage{StageFIFO, StageIndexer, StageHandler} {
		p.moments.add(Moment{Time: cause.Time, Stage: stage, Text: cause.words()}, key)
	}
}

func (p *Page) handlerEnds(key cache.ObjectName, now time.Time) {
	p.mu.Lock()
	event := p.handling[key]
	delete(p.handling, key)
	skipped := event != nil && !event.added
	if skipped {
		p.handlers["skipped"]++
	}
	p.mu.Unlock()
	if skipped {
		p.moments.add(Moment{Time: now, Stage: StageSkipped, Text: event.cause.words()}, key)
	}
}

func (c Cause) words() string {
	if c.Changed == "" {
		return c.Type
	}
	return c.Type + ": " + c.Changed
}

// added records that a key is added to the queue. If an event handler adds it, its event is
// the cause.
func (p *Page) added(key cache.ObjectName, cause Cause) {
	p.mu.Lock()
	if event := p.handling[key]; event != nil {
		atStart := cause.Type == "start"
		if event.added, cause = true, event.cause; atStart {
			cause.Type = "start"
		}
	}
	stage, journey := StageMerged, p.pending[key]
	if journey != nil {
		p.merged++
	} else {
		stage, journey = StageQueue, &Journey{ID: "pending", Key: key.String(), Queued: cause.Time}
		if len(p.pending) < maxKeys {
			p.pending[key] = journey
		}
	}
	if journey.CauseCount++; len(journey.Causes) < maxCauses {
		journey.Causes = append(journey.Causes, cause)
	}
	p.mu.Unlock()
	p.moments.add(Moment{Time: cause.Time, Stage: stage, Text: cause.Type}, key)
}

// delayed records that a key is added after a delay.
func (p *Page) delayed(delayed *Waiting, key cache.ObjectName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.waiting[key]
	switch {
	case before != nil && before.Until.Before(delayed.Until):
		delayed.Until = before.Until // the queue keeps the earlier time
	case before != nil || len(p.waiting) < maxKeys:
		p.waiting[key] = delayed
	}
	for _, w := range p.busy {
		if w != nil && w.key == key {
			w.journey.Retry = delayed
		}
	}
}

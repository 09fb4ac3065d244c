package glass

import (
	"context"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/pkg/observe"
)

// Controller is a queue with its workers, on a Page. It is the observer of what happens to
// the keys, and keeps it within bounds: of the syncs, only the last ones are kept. A program
// that uses package observe itself passes it there. Others wrap their queue with Queue.
type Controller struct {
	Config
	page    *Page
	moments moments

	// The other fields need the lock of the Page.
	line     Line
	handlers map[string]int
	handling map[cache.ObjectName][]*handling // the events in event handlers
	pending  map[cache.ObjectName]*Journey    // of the keys that were added, and not taken since
	waiting  map[cache.ObjectName]*Waiting    // the keys that are added after a delay
	merged   int
	busy     []*work                    // by worker
	running  map[cache.ObjectName]*work // the syncs that Queue has begun
	journeys []*Journey                 // of the last syncs, the oldest first
}

// Config describes a controller.
type Config struct {
	// Name is that of the queue.
	Name string
	// Resource is that of the objects of the keys, as it was passed to Informer. Defaults to
	// the first one.
	Resource string
	// Workers is the number of workers. If it is 0, as many are shown as were busy at a time.
	Workers int
	// Stages are the stages of a sync, in their order. The program passes what a sync finds
	// to observe.Reach. If there are none, the page shows the whole sync as one stage.
	Stages []Stage
}

// Line is what a queue knows of the keys that wait for a worker.
type Line interface {
	Len() int
	// Front returns about the next keys, at most a number of them.
	Front(most int) []cache.ObjectName
}

// Bounds of what is kept, for each controller. The oldest journey makes room for a new one.
const (
	maxKeys           = 20_000 // in each map
	maxCauses         = 20     // of a journey
	maxJourneys       = 200
	maxJourneysOfKey  = 20
	maxFound          = 20 // of a journey
	maxSteps          = 20 // of a journey
	maxRequestsOfStep = 8
	maxTextBytes      = 400
)

// handling is an event while its handler runs.
type handling struct {
	cause Cause
	added bool // whether the handler has added the key
}

func newController(page *Page, config Config) *Controller {
	if len(config.Stages) == 0 {
		config.Stages = []Stage{StageSync}
	}
	c := &Controller{
		Config: config, page: page,
		handlers: map[string]int{"added": 0, "updated": 0, "deleted": 0, "skipped": 0},
		handling: map[cache.ObjectName][]*handling{},
		pending:  map[cache.ObjectName]*Journey{},
		waiting:  map[cache.ObjectName]*Waiting{},
		running:  map[cache.ObjectName]*work{},
	}
	c.line = firstIn{c}
	return c
}

// Shows sets the line of a queue that is not first in, first out. Without it, the page shows
// the keys that were added and not taken since, the oldest ones first.
func (c *Controller) Shows(line Line) {
	if c.page.isOff() {
		return
	}
	c.page.mu.Lock()
	defer c.page.mu.Unlock()
	c.line = line
}

// firstIn is the Line of the keys that a Controller knows. It needs the lock of the Page.
type firstIn struct{ *Controller }

// Len implements Line.
func (l firstIn) Len() int { return len(l.pending) }

// Front implements Line.
func (l firstIn) Front(most int) (keys []cache.ObjectName) {
	earlier := func(a, b cache.ObjectName) int { return l.pending[a].Queued.Compare(l.pending[b].Queued) }
	for key := range l.pending {
		at, _ := slices.BinarySearchFunc(keys, key, earlier)
		if at < most {
			keys = slices.Insert(keys, at, key)
			keys = keys[:min(len(keys), most)]
		}
	}
	return keys
}

// Happened implements observe.Observer.
func (c *Controller) Happened(key cache.ObjectName, event observe.Event) {
	if c.page.isOff() {
		return
	}
	now := c.page.clock.Now()
	switch event.Type {
	case observe.Received: // needs no lock of the Page: the informer's is held
		c.moments.add(Moment{Time: now, Stage: StageWatch, Text: "resourceVersion " + event.ResourceVersion}, key)
	case observe.Handling:
		c.handlerBegins(key, Cause{
			Time: now, Type: event.Cause, ResourceVersion: event.ResourceVersion, Changed: event.Changed,
		})
	case observe.Handled:
		c.handlerEnds(key, now)
	case observe.Added:
		c.added(key, Cause{Time: now, Type: event.Cause})
	case observe.Delayed:
		c.delayed(&Waiting{Key: nameOf(key), Failures: event.Failures, From: now, Until: now.Add(event.Delay)}, key)
	case observe.Due:
		c.page.mu.Lock()
		delete(c.waiting, key)
		c.page.mu.Unlock()
		c.added(key, Cause{Time: now, Type: "retry"})
	}
}

func (c *Controller) handlerBegins(key cache.ObjectName, cause Cause) {
	c.page.mu.Lock()
	c.handling[key] = append(c.handling[key], &handling{cause: cause})
	c.handlers[cause.Type]++
	c.page.mu.Unlock()
	for _, stage := range []Stage{StageFIFO, StageIndexer, StageHandler} {
		c.moments.add(Moment{Time: cause.Time, Stage: stage, Text: cause.words()}, key)
	}
}

// handlerEnds ends the oldest event of a key: the handlers of several informers may run at a
// time, and which of them ends first makes no difference.
func (c *Controller) handlerEnds(key cache.ObjectName, now time.Time) {
	c.page.mu.Lock()
	events := c.handling[key]
	if len(events) == 0 {
		c.page.mu.Unlock()
		return
	}
	event := events[0]
	if c.handling[key] = events[1:]; len(events) == 1 {
		delete(c.handling, key)
	}
	if !event.added {
		c.handlers["skipped"]++
	}
	c.page.mu.Unlock()
	if !event.added {
		c.moments.add(Moment{Time: now, Stage: StageSkipped, Text: event.cause.words()}, key)
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
func (c *Controller) added(key cache.ObjectName, cause Cause) {
	c.page.mu.Lock()
	for _, event := range c.handling[key] {
		atStart := cause.Type == "start"
		if event.added, cause = true, event.cause; atStart {
			cause.Type = "start"
		}
	}
	stage, journey := StageMerged, c.pending[key]
	if journey != nil {
		c.merged++
	} else {
		stage, journey = StageQueue, &Journey{ID: "pending", Key: nameOf(key), Queued: cause.Time}
		if len(c.pending) < maxKeys {
			c.pending[key] = journey
		}
	}
	if journey.CauseCount++; len(journey.Causes) < maxCauses {
		journey.Causes = append(journey.Causes, cause)
	}
	c.page.mu.Unlock()
	c.moments.add(Moment{Time: cause.Time, Stage: stage, Text: cause.Type}, key)
}

// delayed records that a key is added after a delay.
func (c *Controller) delayed(delayed *Waiting, key cache.ObjectName) {
	c.page.mu.Lock()
	defer c.page.mu.Unlock()
	before := c.waiting[key]
	switch {
	case before != nil && before.Until.Before(delayed.Until):
		delayed.Until = before.Until // the queue keeps the earlier time
	case before != nil || len(c.waiting) < maxKeys:
		c.waiting[key] = delayed
	}
	for _, w := range c.busy {
		if w != nil && w.key == key {
			w.journey.Retry = delayed
		}
	}
}

// Begin implements observe.Observer.
func (c *Controller) Begin(ctx context.Context, begun observe.Work) (context.Context, func(observe.Result)) {
	switch w := workOf(ctx); {
	case c.page.isOff():
	case begun.Kind == observe.Sync:
		return c.beginSync(ctx, begun)
	case begun.Kind == observe.Step && w != nil:
		return w.beginStep(ctx, clip(begun.Text.String()))
	case begun.Kind == observe.Request:
		return ctx, c.page.beginRequest(ctx, begun)
	}
	return ctx, func(observe.Result) {}
}

// nameOf returns a key as it is shown.
func nameOf(key cache.ObjectName) string { return clip(key.String()) }

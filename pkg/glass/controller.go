package glass

import (
	"slices"
	"strings"
	"time"
	"unicode"

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
	line     Line // nil if the queue is first in, first out
	handlers map[string]int
	handling map[cache.ObjectName][]*handling // the events in event handlers
	pending  map[cache.ObjectName]*Journey    // of the keys that were added, and not taken since
	waiting  map[cache.ObjectName]*Waiting    // the keys that are added after a delay
	merged   int
	busy     []*work    // by worker
	journeys []*Journey // of the last syncs, the oldest first
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
	maxKeys          = 20_000 // in each map
	maxJourneys      = 200
	maxJourneysOfKey = 20
	maxCauses        = 5  // of a journey
	maxMoments       = 50 // of a journey
	maxTextBytes     = 400
)

// handling is an event while its handler runs.
type handling struct {
	observe.Event
	added bool // whether the handler has added the key
}

// words returns the cause with the details of an event, such as "updated: spec, resourceVersion 7".
func (h *handling) words(cause string) string {
	if h.Changed != "" {
		cause += ": " + h.Changed
	}
	if h.ResourceVersion != "" {
		cause += ", resourceVersion " + h.ResourceVersion
	}
	return cause
}

func newController(page *Page, config Config) *Controller {
	if len(config.Stages) == 0 {
		config.Stages = []Stage{StageSync}
	}
	return &Controller{
		Config: config, page: page,
		handlers: map[string]int{"added": 0, "updated": 0, "deleted": 0, "skipped": 0},
		handling: map[cache.ObjectName][]*handling{},
		pending:  map[cache.ObjectName]*Journey{},
		waiting:  map[cache.ObjectName]*Waiting{},
	}
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

func (c *Controller) Happened(key cache.ObjectName, event observe.Event) {
	if c.page.isOff() {
		return
	}
	now := c.page.clock.Now()
	if event.Type == observe.Received { // needs no lock of the Page: the informer's is held
		c.moments.add(Moment{Time: now, Stage: StageWatch, Text: "resourceVersion " + event.ResourceVersion}, key)
		return
	}
	c.page.mu.Lock()
	defer c.page.mu.Unlock()
	switch event.Type {
	case observe.Handling:
		begun := &handling{Event: event}
		c.handling[key] = append(c.handling[key], begun)
		c.handlers[event.Cause]++
		for _, stage := range []Stage{StageFIFO, StageIndexer, StageHandler} {
			c.moments.add(Moment{Time: now, Stage: stage, Text: begun.words(event.Cause)}, key)
		}
	case observe.Handled:
		c.handled(key, now)
	case observe.Added:
		c.added(key, event.Cause, now)
	case observe.Delayed:
		c.delayed(key, &Waiting{Key: nameOf(key), Failures: event.Failures, From: now, Until: now.Add(event.Delay)})
	default: // observe.Due
		delete(c.waiting, key)
		c.added(key, "retry", now)
	}
}

// handled ends the oldest event of a key: the handlers of several informers may run at a
// time, and which of them ends first makes no difference.
func (c *Controller) handled(key cache.ObjectName, now time.Time) {
	events := c.handling[key]
	if len(events) == 0 {
		return
	}
	if c.handling[key] = events[1:]; len(events) == 1 {
		delete(c.handling, key)
	}
	if !events[0].added {
		c.handlers["skipped"]++
		c.moments.add(Moment{Time: now, Stage: StageSkipped, Text: events[0].words(events[0].Cause)}, key)
	}
}

// added records that a key is added to the queue. If an event handler adds it, its event is
// the cause.
func (c *Controller) added(key cache.ObjectName, cause string, now time.Time) {
	text := cause
	for _, event := range c.handling[key] {
		event.added = true
		if text = event.words(event.Cause); cause == "start" {
			text = event.words(cause)
		}
	}
	moment, journey := Moment{Time: now, Key: nameOf(key), Stage: StageMerged, Text: text}, c.pending[key]
	if journey != nil {
		c.merged++
	} else {
		moment.Stage, journey = StageQueue, &Journey{ID: "pending", Key: moment.Key}
		if len(c.pending) < maxKeys {
			c.pending[key] = journey
		}
	}
	if journey.Adds++; journey.Adds <= maxCauses {
		journey.Moments = append(journey.Moments, &moment)
	}
	c.moments.add(moment, key)
}

// delayed records that a key is added after a delay.
func (c *Controller) delayed(key cache.ObjectName, delayed *Waiting) {
	before := c.waiting[key]
	switch {
	case before != nil && before.Until.Before(delayed.Until):
		delayed.Until = before.Until // the queue keeps the earlier time
	case before != nil || len(c.waiting) < maxKeys:
		c.waiting[key] = delayed
	}
	if w := c.syncOf(key); w != nil {
		w.journey.Retry = delayed
	}
}

// syncOf returns the sync of a key that runs, or nil.
func (c *Controller) syncOf(key cache.ObjectName) *work {
	at := slices.IndexFunc(c.busy, func(w *work) bool { return w != nil && w.key == key })
	if at < 0 {
		return nil
	}
	return c.busy[at]
}

// nameOf returns a key as it is shown.
func nameOf(key cache.ObjectName) string { return clip(key.String()) }

// clip makes a text short, and replaces what is not printable, which must not move the cursor
// of a terminal or forge a line.
func clip(text string) string {
	if len(text) > maxTextBytes {
		text = text[:maxTextBytes-len("…")] + "…"
	}
	printable := func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}
	return strings.Map(printable, strings.ToValidUTF8(text, "")) // the cut may have split a character
}

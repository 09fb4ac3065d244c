package glass

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/pkg/observe"
)

// work is the sync of a key. Its journey, last moment and error need the lock of the Page.
type work struct {
	*Controller
	key     cache.ObjectName
	worker  int
	journey *Journey
	last    *Moment
	err     error // of a sync that Queue has begun
}

type workKey struct{}

// workOf returns the sync of a context, or nil.
func workOf(ctx context.Context) *work {
	of, _ := ctx.Value(workKey{}).(*work)
	return of
}

func (c *Controller) Begin(ctx context.Context, begun observe.Work) (context.Context, func(observe.Result)) {
	switch w := workOf(ctx); {
	case c.page.isOff():
	case begun.Kind == observe.Sync:
		return c.beginSync(ctx, begun)
	case begun.Kind == observe.Step && w != nil:
		return ctx, w.beginStep(clip(begun.Text.String()))
	case begun.Kind == observe.Request:
		return ctx, c.page.beginRequest(ctx, begun)
	}
	return ctx, func(observe.Result) {}
}

func (c *Controller) Reach(ctx context.Context, stage observe.Stage, text func() string, err error) {
	w := workOf(ctx)
	if c.page.isOff() || w == nil {
		return
	}
	found := Moment{Stage: stage, Failed: err != nil}
	if err != nil {
		found.Text = clip(err.Error())
	} else {
		found.Text = clip(text())
	}
	if stage == StageReport && w.setOutcome(found.Text) {
		planned := Moment{Stage: StagePlan, Text: found.Text, Failed: found.Failed}
		if err == nil {
			planned.Text = "nothing to do"
		}
		w.record(&planned)
	}
	w.record(&found)
}

// setOutcome sets the outcome, and reports whether the sync had no step.
func (w *work) setOutcome(text string) bool {
	w.page.mu.Lock()
	defer w.page.mu.Unlock()
	w.journey.Outcome = text
	isStep := func(m *Moment) bool { return m.Stage == StageApply }
	return !slices.ContainsFunc(w.journey.Moments, isStep)
}

// beginSync records that a worker took a key.
func (c *Controller) beginSync(ctx context.Context, begun observe.Work) (context.Context, func(observe.Result)) {
	c.page.mu.Lock()
	w := &work{Controller: c, key: begun.Key, journey: c.pending[begun.Key]}
	if delete(c.pending, begun.Key); w.journey == nil {
		w.journey = &Journey{Key: nameOf(begun.Key), Moments: []*Moment{}}
	}
	free := slices.Index(c.busy, nil) // the first worker without a key
	if free < 0 {
		free, c.busy = len(c.busy), append(c.busy, nil)
	}
	c.busy[free], w.worker, w.journey.ID = w, free+1, begun.ID
	c.keep(w.journey)
	c.page.mu.Unlock()
	ctx = context.WithValue(ctx, workKey{}, w)
	w.record(&Moment{Stage: StageWorker})
	if c.Stages[0] == StageSync {
		w.record(&Moment{Stage: StageSync})
	}
	return ctx, func(result observe.Result) { w.end(result.Err) }
}

// keep adds a journey to those that are kept, and drops an old one if there are too many.
func (c *Controller) keep(journey *Journey) {
	c.journeys = append(c.journeys, journey)
	oldest, ofKey := 0, 0
	for i, other := range slices.Backward(c.journeys) {
		if other.Key == journey.Key {
			oldest, ofKey = i, ofKey+1
		}
	}
	switch {
	case ofKey > maxJourneysOfKey:
		c.journeys = slices.Delete(c.journeys, oldest, oldest+1)
	case len(c.journeys) > maxJourneys:
		c.journeys = slices.Delete(c.journeys, 0, 1)
	}
}

// journeysOf returns the journeys of a key as JSON, the newest first, or of all keys if it is
// empty. If the key was added since a worker took it, the first one has no worker.
func (c *Controller) journeysOf(key cache.ObjectName) json.RawMessage {
	c.page.mu.Lock()
	defer c.page.mu.Unlock()
	found := []*Journey{}
	if pending := c.pending[key]; pending != nil {
		found = append(found, pending)
	}
	for _, journey := range slices.Backward(c.journeys) {
		if key.Name == "" || journey.Key == nameOf(key) {
			found = append(found, journey)
		}
	}
	encoded, _ := json.Marshal(found) // it has only types that can be encoded
	return encoded
}

// record records a moment of the sync, in its journey as well.
func (w *work) record(moment *Moment) {
	moment.Time, moment.Key, moment.Worker = w.page.clock.Now(), w.journey.Key, w.worker
	w.page.mu.Lock()
	defer w.page.mu.Unlock()
	w.last = moment
	if len(w.journey.Moments) < maxMoments {
		w.journey.Moments = append(w.journey.Moments, moment)
	}
	w.moments.add(*moment, w.key)
}

// beginStep records that a step begins. The function that it returns ends it.
func (w *work) beginStep(text string) func(observe.Result) {
	w.record(&Moment{Stage: StagePlan, Text: text})
	step := &Moment{Stage: StageApply, Text: text}
	w.record(step)
	begun := w.page.clock.Now()
	return func(result observe.Result) {
		w.page.mu.Lock()
		step.Milliseconds = milliseconds(w.page.clock.Since(begun))
		w.page.mu.Unlock()
		if result.Err != nil {
			w.record(&Moment{Stage: StageApply, Text: clip(result.Err.Error()), Failed: true})
		}
	}
}

// end ends the sync with the error to retry, or nil.
func (w *work) end(err error) {
	now, moment := w.page.clock.Now(), Moment{Stage: StageDone, Failed: err != nil}
	w.page.mu.Lock()
	journey := w.journey
	if err != nil {
		journey.Outcome = clip(err.Error())
	}
	if journey.Retry != nil {
		moment.Stage = StageBackoff
	}
	journey.Ended, journey.Failed, moment.Text = &now, err != nil, journey.Outcome
	w.page.mu.Unlock()
	w.record(&moment)
	w.page.mu.Lock()
	defer w.page.mu.Unlock()
	w.busy[w.worker-1] = nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

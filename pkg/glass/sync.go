package glass

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/pkg/observe"
)

// work is the sync of a key. Its journey, stage and error need the lock of the Page.
type work struct {
	*Controller
	key     cache.ObjectName
	worker  int
	journey *Journey
	stage   Stage
	err     error // of a sync that Queue has begun
}

type workKey struct{}

type stepKey struct{}

// workOf returns the sync of a context, or nil.
func workOf(ctx context.Context) *work {
	of, _ := ctx.Value(workKey{}).(*work)
	return of
}

// Reach implements observe.Observer.
func (c *Controller) Reach(ctx context.Context, stage observe.Stage, text func() string, err error) {
	w := workOf(ctx)
	if c.page.isOff() || w == nil {
		return
	}
	words, failed, hasSteps := "", err != nil, false
	if failed {
		words = clip(err.Error())
	} else {
		words = clip(text())
	}
	w.change(func(j *Journey) {
		hasSteps = len(j.Steps) > 0
		if stage == StageReport {
			j.Outcome = words
		} else {
			j.find(stage, words)
		}
	})
	switch {
	case stage == observe.Report && !hasSteps && failed:
		w.reach(ctx, StagePlan, words, true)
	case stage == observe.Report && !hasSteps:
		w.reach(ctx, StagePlan, "nothing to do", false)
	}
	w.reach(ctx, stage, words, failed)
}

// find notes what a stage has found. A stage that is reached again has found something else.
func (j *Journey) find(stage Stage, text string) {
	at := slices.IndexFunc(j.Found, func(found Found) bool { return found.Stage == stage })
	switch {
	case at >= 0:
		j.Found[at].Text = text
	case len(j.Found) < maxFound:
		j.Found = append(j.Found, Found{Stage: stage, Text: text})
	}
}

// beginSync records that a worker took a key.
func (c *Controller) beginSync(ctx context.Context, begun observe.Work) (context.Context, func(observe.Result)) {
	now := c.page.clock.Now()
	w := &work{Controller: c, key: begun.Key}
	c.page.mu.Lock()
	w.journey = c.pending[begun.Key]
	if delete(c.pending, begun.Key); w.journey == nil {
		w.journey = &Journey{Key: nameOf(begun.Key), Causes: []Cause{}, Queued: now}
	}
	free := slices.Index(c.busy, nil) // the first worker without a key
	if free < 0 {
		free, c.busy = len(c.busy), append(c.busy, nil)
	}
	c.busy[free], w.worker = w, free+1
	w.journey.ID, w.journey.Taken, w.journey.Worker = begun.ID, &now, w.worker
	c.keep(w.journey)
	c.page.mu.Unlock()
	ctx = context.WithValue(ctx, workKey{}, w)
	w.reach(ctx, StageWorker, "", false)
	if c.Stages[0] == StageSync {
		w.reach(ctx, StageSync, "", false)
	}
	return ctx, func(result observe.Result) { w.end(ctx, result.Err) }
}

// keep adds a journey to those that are kept, and drops an old one if there are too many.
func (c *Controller) keep(journey *Journey) {
	c.journeys = append(c.journeys, journey)
	oldest, ofKey := -1, 0
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

// journeysOf returns the journeys of a key as JSON, the newest first. If the key was added
// since a worker took it, the first one has no worker.
func (c *Controller) journeysOf(key cache.ObjectName) []byte {
	c.page.mu.Lock()
	defer c.page.mu.Unlock()
	found := []*Journey{}
	if pending := c.pending[key]; pending != nil {
		found = append(found, pending)
	}
	for _, journey := range slices.Backward(c.journeys) {
		if journey.Key == nameOf(key) {
			found = append(found, journey)
		}
	}
	encoded, _ := json.Marshal(found) // it has only types that can be encoded
	return encoded
}

// reach records that the sync reaches a stage, and holds it there in slow motion.
func (w *work) reach(ctx context.Context, stage Stage, text string, failed bool) {
	w.change(func(*Journey) { w.stage = stage })
	moment := Moment{Time: w.page.clock.Now(), Stage: stage, Text: text, Worker: w.worker, Failed: failed}
	w.moments.add(moment, w.key)
	w.page.hold(ctx)
}

// change changes the journey.
func (w *work) change(change func(*Journey)) {
	w.page.mu.Lock()
	defer w.page.mu.Unlock()
	change(w.journey)
}

// beginStep records that a step begins.
func (w *work) beginStep(ctx context.Context, text string) (context.Context, func(observe.Result)) {
	w.reach(ctx, StagePlan, text, false)
	step := &JourneyStep{Text: text, Begun: w.page.clock.Now()}
	w.change(func(j *Journey) { j.addStep(step) })
	w.reach(ctx, StageApply, text, false)
	w.change(func(*Journey) { step.Begun = w.page.clock.Now() }) // it was held
	return context.WithValue(ctx, stepKey{}, step), func(result observe.Result) {
		sent := ""
		w.change(func(*Journey) { sent = step.end(w.page.clock.Since(step.Begun), result.Err) })
		if sent != "" {
			w.reach(ctx, StageServer, sent, result.Err != nil)
		}
	}
}

// addStep adds a step, unless there are too many.
func (j *Journey) addStep(step *JourneyStep) {
	if len(j.Steps) < maxSteps {
		j.Steps = append(j.Steps, step)
	}
}

// end ends a step. It returns the last request to another server than Kubernetes, if any.
func (s *JourneyStep) end(took time.Duration, err error) (sent string) {
	s.Milliseconds = milliseconds(took)
	if err != nil {
		s.Error = clip(err.Error())
	}
	for _, request := range s.Requests {
		if request.Server != observe.Kubernetes {
			sent = fmt.Sprintf("%s: %s: %d in %.0f ms", request.Server, request.Operation, request.Code, request.Milliseconds)
		}
	}
	return sent
}

// end ends the sync with the error to retry, or nil.
func (w *work) end(ctx context.Context, err error) {
	now, stage, outcome := w.page.clock.Now(), StageDone, ""
	w.change(func(j *Journey) {
		if err != nil {
			j.Outcome = clip(err.Error())
		}
		if j.Retry != nil {
			stage = StageBackoff
		}
		j.Ended, j.Failed, outcome = &now, err != nil, j.Outcome
	})
	w.reach(ctx, stage, outcome, err != nil)
	w.change(func(*Journey) { w.busy[w.worker-1] = nil })
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// unquote reverts what Quote escapes although it is printable.
var unquote = strings.NewReplacer(`\"`, `"`, `\\`, `\`)

// clip escapes what is not printable in a text, which must not move the cursor of a terminal
// or forge a line, and makes it short.
func clip(text string) string {
	cut := func(text string) string {
		if len(text) <= maxTextBytes {
			return text
		}
		end := maxTextBytes - len("…")
		for !utf8.RuneStart(text[end]) {
			end--
		}
		return text[:end] + "…"
	}
	quoted := strconv.Quote(strings.ToValidUTF8(cut(text), "�"))
	return cut(unquote.Replace(quoted[1 : len(quoted)-1]))
}

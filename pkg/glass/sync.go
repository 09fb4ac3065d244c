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

// work is the sync of a key. Its journey and stage need the lock of the Page.
type work struct {
	page    *Page
	key     cache.ObjectName
	worker  int
	journey *Journey
	stage   Stage
}

type workKey struct{}

type stepKey struct{}

// workOf returns the sync of a context, or nil.
func workOf(ctx context.Context) *work {
	of, _ := ctx.Value(workKey{}).(*work)
	return of
}

// Begin implements observe.Observer.
func (p *Page) Begin(ctx context.Context, begun observe.Work) (context.Context, func(observe.Result)) {
	switch w := workOf(ctx); {
	case begun.Kind == observe.Sync:
		return p.beginSync(ctx, begun)
	case begun.Kind == observe.Step && w != nil:
		return w.beginStep(ctx, clip(begun.Text.String()))
	case begun.Kind == observe.Request && w == nil && begun.Server == observe.Kubernetes:
		return ctx, p.beginList(begun.Request)
	case begun.Kind == observe.Request:
		return ctx, p.beginRequest(ctx, begun)
	}
	return ctx, func(observe.Result) {}
}

// Reach implements observe.Observer.
func (p *Page) Reach(ctx context.Context, stage observe.Stage, text func() string, err error) {
	w := workOf(ctx)
	if w == nil {
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
		switch stage {
		case observe.Desired:
			j.Desired = words
		case observe.Actual:
			j.Actual = words
		case observe.Report:
			j.Outcome = words
		}
	})
	switch {
	case stage == observe.Report && !hasSteps && failed:
		w.reach(ctx, StagePlan, words, true)
	case stage == observe.Report && !hasSteps:
		w.reach(ctx, StagePlan, "nothing to do", false)
	}
	w.reach(ctx, Stage(stage), words, failed)
}

// beginSync records that a worker took a key.
func (p *Page) beginSync(ctx context.Context, begun observe.Work) (context.Context, func(observe.Result)) {
	now := p.clock.Now()
	w := &work{page: p, key: begun.Key}
	p.mu.Lock()
	w.journey = p.pending[begun.Key]
	if delete(p.pending, begun.Key); w.journey == nil {
		w.journey = &Journey{Key: begun.Key.String(), Causes: []Cause{}, Queued: now}
	}
	free := slices.Index(p.busy, nil) // the first worker without a key
	if free < 0 {
		free, p.busy = len(p.busy), append(p.busy, nil)
	}
	p.busy[free], w.worker = w, free+1
	w.journey.ID, w.journey.Taken, w.journey.Worker = begun.ID, &now, w.worker
	p.keep(w.journey)
	p.mu.Unlock()
	ctx = context.WithValue(ctx, workKey{}, w)
	w.reach(ctx, StageWorker, "", false)
	return ctx, func(result observe.Result) { w.end(ctx, result.Err) }
}

// keep adds a journey to those that are kept, and drops an old one if there are too many.
func (p *Page) keep(journey *Journey) {
	p.journeys = append(p.journeys, journey)
	oldest, ofKey := -1, 0
	for i, other := range slices.Backward(p.journeys) {
		if other.Key == journey.Key {
			oldest, ofKey = i, ofKey+1
		}
	}
	switch {
	case ofKey > maxJourneysOfKey:
		p.journeys = slices.Delete(p.journeys, oldest, oldest+1)
	case len(p.journeys) > maxJourneys:
		p.journeys = slices.Delete(p.journeys, 0, 1)
	}
}

// journeysOf returns the journeys of a key as JSON, the newest first. If the key was added
// since a worker took it, the first one has no worker.
func (p *Page) journeysOf(key cache.ObjectName) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := []*Journey{}
	if pending := p.pending[key]; pending != nil {
		found = append(found, pending)
	}
	for _, journey := range slices.Backward(p.journeys) {
		if journey.Key == key.String() {
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
	w.page.moments.add(moment, w.key)
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
			w.reach(ctx, StageNeutron, sent, result.Err != nil)
		}
	}
}

// addStep adds a step, unless there are too many.
func (j *Journey) addStep(step *JourneyStep) {
	if len(j.Steps) < maxSteps {
		j.Steps = append(j.Steps, step)
	}
}

// end ends a step. It returns the last request to Neutron, if there was one.
func (s *JourneyStep) end(took time.Duration, err error) (sent string) {
	s.Milliseconds = milliseconds(took)
	if err != nil {
		s.Error = clip(err.Error())
	}
	for _, request := range s.Requests {
		if request.Server != observe.Kubernetes {
			sent = fmt.Sprintf("%s: %d in %.0f ms", request.Operation, request.Code, request.Milliseconds)
		}
	}
	return sent
}

// beginRequest records a request to Neutron, or one of a sync to Kubernetes. A request of a
// sync that belongs to no step is a step of its own.
func (p *Page) beginRequest(ctx context.Context, sent observe.Work) func(observe.Result) {
	begun, name := p.clock.Now(), clip(sent.Name)
	return func(result observe.Result) {
		took := p.clock.Since(begun)
		p.mu.Lock()
		defer p.mu.Unlock()
		if sent.Server != observe.Kubernetes {
			p.noteRequest(name, took, result.Code)
		}
		w := workOf(ctx)
		if w == nil {
			return
		}
		step, inStep := ctx.Value(stepKey{}).(*JourneyStep)
		if !inStep {
			step = &JourneyStep{Text: name, Begun: begun, Milliseconds: milliseconds(took)}
			w.journey.addStep(step)
		}
		if len(step.Requests) < maxRequestsOfStep {
			step.Requests = append(step.Requests, JourneyRequest{
				Server: sent.Server, Operation: name, Begun: begun, Milliseconds: milliseconds(took), Code: result.Code,
			})
		}
	}
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
	w.change(func(*Journey) { w.page.busy[w.worker-1] = nil })
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

package debugpage

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/pkg/tracing"
)

// work is the sync of a key. It implements tracing.Observer.
type work struct {
	recorder *Recorder
	key      cache.ObjectName
	kept     *kept
	// The following fields need the lock of the Recorder.
	stage     Stage
	step      string
	since     time.Time
	outcome   string // according to Reports
	hasFailed bool
}

type workKey struct{}

type stepKey struct{}

// Begin begins to record the sync of a key that was taken. The function that it
// returns ends it with the error to retry.
func (r *Recorder) Begin(ctx context.Context, key cache.ObjectName, id string) (context.Context, func(error)) {
	if !r.on {
		return ctx, func(error) {}
	}
	r.mu.Lock()
	began := r.worker(key)
	if began == nil {
		r.mu.Unlock()
		return ctx, func(error) {}
	}
	began.kept.journey.ID = id
	r.mu.Unlock()
	ctx = tracing.WithObserver(context.WithValue(ctx, workKey{}, began), began)
	began.reach(ctx, StageWorker, "", false)
	return ctx, func(err error) { began.end(ctx, err) }
}

// reach records that the sync reaches a stage, and holds it there in slow motion.
func (w *work) reach(ctx context.Context, stage Stage, text string, failed bool) {
	r := w.recorder
	now := r.clock.Now()
	r.mu.Lock()
	w.stage, w.since = stage, now
	worker := w.kept.journey.Worker
	r.changes.Add(1)
	r.mu.Unlock()
	r.moments.add(now, stage, w.key, text, worker, failed)
	r.hold(ctx)
}

// Compares implements tracing.Observer.
func (w *work) Compares(ctx context.Context, desired, actual string) {
	w.change(func(j *Journey) { j.Desired, j.Actual = clip(desired), clip(actual) })
	w.reach(ctx, StageDesired, clip(desired), false)
	w.reach(ctx, StageActual, clip(actual), false)
}

// change changes the journey.
func (w *work) change(change func(*Journey)) {
	w.recorder.mu.Lock()
	defer w.recorder.mu.Unlock()
	change(&w.kept.journey)
	w.recorder.changes.Add(1)
}

// Starts implements tracing.Observer.
func (w *work) Starts(ctx context.Context, step string) (context.Context, func(error)) {
	step = clip(step)
	w.reach(ctx, StagePlan, step, false)
	w.change(func(*Journey) { w.step = step })
	w.reach(ctx, StageApply, step, false)
	index := w.addStep(step)
	return context.WithValue(ctx, stepKey{}, index), func(err error) {
		if sent := w.endStep(index, err); sent != "" {
			w.reach(ctx, StageNeutron, sent, err != nil)
		}
		w.change(func(*Journey) { w.step = "" })
	}
}

// addStep adds a step that begins, and returns its index. There is none if there are
// too many.
func (w *work) addStep(text string) (index int) {
	index = -1
	w.change(func(j *Journey) {
		if len(j.Steps) < maxSteps {
			index = len(j.Steps)
			j.Steps = append(j.Steps, JourneyStep{Text: text, Begun: w.recorder.clock.Now(), Requests: []JourneyRequest{}})
		}
	})
	return index
}

// endStep ends a step. It returns the last request to Neutron, if there was one.
func (w *work) endStep(index int, err error) (sent string) {
	w.change(func(j *Journey) {
		if index < 0 {
			return
		}
		step := &j.Steps[index]
		step.Milliseconds = milliseconds(w.recorder.clock.Since(step.Begun))
		if err != nil {
			step.Error = clip(err.Error())
		}
		for _, request := range step.Requests {
			if request.Server == "Neutron" {
				sent = fmt.Sprintf("%s: %d in %.0f ms", request.Operation, request.Code, request.Milliseconds)
			}
		}
	})
	return sent
}

// addRequest adds a request to the step of a context. A request outside of a step is a
// step of its own, with a text.
func (w *work) addRequest(ctx context.Context, request JourneyRequest, text string) {
	index, inStep := ctx.Value(stepKey{}).(int)
	if !inStep {
		index = w.addStep(text)
		w.change(func(j *Journey) {
			if index >= 0 {
				j.Steps[index].Begun, j.Steps[index].Milliseconds = request.Begun, request.Milliseconds
			}
		})
	}
	w.change(func(j *Journey) {
		if index >= 0 && len(j.Steps[index].Requests) < maxRequestsOfStep {
			j.Steps[index].Requests = append(j.Steps[index].Requests, request)
		}
	})
}

// Reports implements tracing.Observer.
func (w *work) Reports(ctx context.Context, outcome error, success string) {
	text := success
	if outcome != nil {
		text = clip(outcome.Error())
	}
	planned := 0
	w.change(func(j *Journey) { w.outcome, w.hasFailed, planned = text, outcome != nil, len(j.Steps) })
	if planned == 0 {
		nothing := "nothing to do"
		if outcome != nil {
			nothing = text
		}
		w.reach(ctx, StagePlan, nothing, outcome != nil)
	}
	w.reach(ctx, StageReport, text, outcome != nil)
}

// end ends the sync with the error to retry, or nil.
func (w *work) end(ctx context.Context, err error) {
	r := w.recorder
	now := r.clock.Now()
	stage, text := StageDone, ""
	r.mu.Lock()
	j := &w.kept.journey
	text = w.outcome
	switch {
	case err != nil:
		text = clip(err.Error())
	case text == "":
		text = "The Network was written for its Deployment"
	}
	j.Ended, j.Outcome, j.Failed = &now, text, err != nil
	if j.Retry != nil {
		stage = StageBackoff
	}
	if r.journeys.isKept(w.kept) {
		r.journeys.resize(w.kept)
	}
	if len(j.Steps) > 0 {
		plan := Plan{Time: now, Key: j.Key, Outcome: text, Failed: err != nil}
		for i := range j.Steps {
			plan.Steps = append(plan.Steps, j.Steps[i].Text)
		}
		r.plans = append([]Plan{plan}, r.plans[:min(len(r.plans), maxPlans-1)]...)
	}
	r.mu.Unlock()
	w.reach(ctx, stage, text, err != nil)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

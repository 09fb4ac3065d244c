package glass

import (
	"maps"
	"slices"
	"strings"
)

// Bounds of what is shown.
const (
	maxWaiting    = 20
	maxFront      = 8
	maxPlans      = 8
	maxListedKeys = 20
)

// state returns what the process does now.
func (p *Page) state() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := State{
		Time: p.clock.Now(), Process: p.process, Informers: []Informer{}, Handlers: maps.Clone(p.handlers),
		Queue: p.queueState(), Workers: p.workerStates(), Neutron: Neutron{Operations: []Operation{}}, Plans: p.plans(),
	}
	state.Process.SlowMilliseconds = p.slow.Load()
	for _, name := range slices.Sorted(maps.Keys(p.operations)) {
		state.Neutron.Operations = append(state.Neutron.Operations, p.operations[name].summary())
	}
	for _, of := range p.informers {
		state.Informers = append(state.Informers, of.state())
	}
	if p.sources.Queue != nil { // known
		p.addSources(&state)
	}
	return state
}

// addSources adds what the sources return.
func (p *Page) addSources(state *State) {
	state.Process.Leads, state.Process.Holder = p.sources.Leads(), p.sources.Holder()
	state.Process.Cloud, _ = p.sources.Cloud()
	state.Queue.Depth = p.sources.Queue.Len()
	for _, key := range p.sources.Queue.Front(maxFront) {
		state.Queue.Front = append(state.Queue.Front, key.String())
	}
	state.Neutron.InFlight, _ = p.sources.Load()
	state.Neutron.Limit = p.sources.Places
	networks, subnets, listedAt := p.sources.Cache()
	state.Cache = Cache{Networks: networks, Subnets: subnets}
	if !listedAt.IsZero() {
		state.Cache.Refreshed = &listedAt
	}
}

func (p *Page) queueState() Queue {
	queue := Queue{Front: []string{}, Merged: p.merged, Waiting: []Waiting{}, WaitingCount: len(p.waiting)}
	sooner := func(a, b Waiting) int { return a.Until.Compare(b.Until) }
	for _, one := range p.waiting {
		if at, _ := slices.BinarySearchFunc(queue.Waiting, *one, sooner); at < maxWaiting {
			queue.Waiting = slices.Insert(queue.Waiting, at, *one)
			queue.Waiting = queue.Waiting[:min(len(queue.Waiting), maxWaiting)]
		}
	}
	return queue
}

func (p *Page) workerStates() []Worker {
	workers := make([]Worker, max(p.workers, len(p.busy)))
	for i := range workers {
		workers[i].Number = i + 1
		if i >= len(p.busy) || p.busy[i] == nil {
			continue
		}
		w := p.busy[i]
		workers[i].Key, workers[i].Stage = w.journey.Key, w.stage
		if steps := w.journey.Steps; len(steps) > 0 && (w.stage == StageApply || w.stage == StageNeutron) {
			workers[i].Step = steps[len(steps)-1].Text
		}
	}
	return workers
}

func (p *Page) plans() []Plan {
	plans := []Plan{}
	for _, journey := range slices.Backward(p.journeys) {
		if journey.Ended == nil || len(journey.Steps) == 0 || len(plans) == maxPlans {
			continue
		}
		plan := Plan{Time: *journey.Ended, Key: journey.Key, Outcome: journey.Outcome, Failed: journey.Failed}
		for _, step := range journey.Steps {
			plan.Steps = append(plan.Steps, step.Text)
		}
		plans = append(plans, plan)
	}
	return plans
}

// keysWith returns at most 20 keys that begin with a text: those of the last syncs, and of
// the objects of the first informer's kind.
func (p *Page) keysWith(prefix string) []string {
	keys, found := []string{}, []string{}
	p.mu.Lock()
	for _, journey := range slices.Backward(p.journeys) {
		keys = append(keys, journey.Key)
	}
	informers := p.sources.Informers
	p.mu.Unlock()
	for _, informer := range informers {
		if informer.Kind == informers[0].Kind {
			keys = append(keys, slices.Sorted(slices.Values(informer.Informer.GetStore().ListKeys()))...)
		}
	}
	for _, key := range keys {
		if len(found) < maxListedKeys && strings.HasPrefix(key, prefix) && !slices.Contains(found, key) {
			found = append(found, key)
		}
	}
	return found
}

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

// state returns what a controller does now.
func (c *Controller) state() State {
	p := c.page
	p.mu.Lock()
	defer p.mu.Unlock()
	state := State{
		Time: p.clock.Now(), Process: p.process, Controllers: []string{}, Controller: c.Name, Stages: c.Stages,
		Informers: []Informer{}, Handlers: maps.Clone(c.handlers), Queue: c.queueState(), Workers: c.workerStates(),
		Servers: []ServerState{}, Plans: c.plans(),
	}
	state.Process.Leads, state.Process.Lease, state.Process.Holder = p.leader.Leads(), p.leader.Lease, p.leader.Holder()
	state.Process.SlowMilliseconds = p.slow.Load()
	for _, other := range p.controllers {
		state.Controllers = append(state.Controllers, other.Name)
	}
	for _, of := range p.informersFor(c) {
		state.Informers = append(state.Informers, of.state())
	}
	for _, of := range p.servers {
		state.Servers = append(state.Servers, of.state())
	}
	return state
}

// informersFor returns all informers, those of the objects of a controller's keys first.
func (p *Page) informersFor(c *Controller) []*informer {
	informers := slices.Clone(p.informers)
	isOwn := func(i *informer) bool { return i.resource() == c.Resource }
	slices.SortStableFunc(informers, func(a, b *informer) int {
		switch {
		case isOwn(a) == isOwn(b):
			return 0
		case isOwn(a):
			return -1
		}
		return 1
	})
	return informers
}

func (c *Controller) queueState() QueueState {
	queue := QueueState{
		Depth: c.line.Len(), Front: []string{}, Merged: c.merged, Waiting: []Waiting{}, WaitingCount: len(c.waiting),
	}
	for _, key := range c.line.Front(maxFront) {
		queue.Front = append(queue.Front, nameOf(key))
	}
	sooner := func(a, b Waiting) int { return a.Until.Compare(b.Until) }
	for _, one := range c.waiting {
		if at, _ := slices.BinarySearchFunc(queue.Waiting, *one, sooner); at < maxWaiting {
			queue.Waiting = slices.Insert(queue.Waiting, at, *one)
			queue.Waiting = queue.Waiting[:min(len(queue.Waiting), maxWaiting)]
		}
	}
	return queue
}

func (c *Controller) workerStates() []Worker {
	workers := make([]Worker, max(c.Workers, len(c.busy), 1))
	for i := range workers {
		workers[i].Number = i + 1
		if i >= len(c.busy) || c.busy[i] == nil {
			continue
		}
		w := c.busy[i]
		workers[i].Key, workers[i].Stage = w.journey.Key, w.stage
		if steps := w.journey.Steps; len(steps) > 0 && (w.stage == StageApply || w.stage == StageServer) {
			workers[i].Step = steps[len(steps)-1].Text
		}
	}
	return workers
}

func (c *Controller) plans() []Plan {
	plans := []Plan{}
	for _, journey := range slices.Backward(c.journeys) {
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

// keysWith returns at most 20 keys that begin with a text: those of the last syncs, of what
// waits, and of the objects of the controller's first resource.
func (c *Controller) keysWith(prefix string) []string {
	keys, listed, found := []string{}, []string{}, []string{}
	c.page.mu.Lock()
	for _, journey := range slices.Backward(c.journeys) {
		keys = append(keys, journey.Key)
	}
	for key := range c.pending {
		listed = append(listed, nameOf(key))
	}
	informers := c.page.informersFor(c)
	c.page.mu.Unlock()
	for _, informer := range informers {
		if informer.resource() == informers[0].resource() {
			listed = append(listed, informer.informer.GetStore().ListKeys()...)
		}
	}
	slices.Sort(listed)
	keys = append(keys, listed...)
	for _, key := range keys {
		if len(found) < maxListedKeys && strings.HasPrefix(key, prefix) && !slices.Contains(found, key) {
			found = append(found, key)
		}
	}
	return found
}

package glass

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Bounds of what is shown.
const (
	maxWaiting    = 20
	maxFront      = 8
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
		Servers: []ServerState{},
	}
	state.Process.Leads, state.Process.Holder = p.leader.Leads(), p.leader.Holder()
	for _, other := range p.controllers {
		state.Controllers = append(state.Controllers, other.Name)
	}
	for _, of := range p.informersOf(c) {
		state.Informers = append(state.Informers, of.state())
	}
	for _, of := range p.servers {
		state.Servers = append(state.Servers, of.state())
	}
	return state
}

// informersOf returns the informers of the objects of a controller's keys.
func (p *Page) informersOf(c *Controller) (found []*informer) {
	for _, of := range p.informers {
		if of.resource == cmp.Or(c.Resource, p.informers[0].resource) {
			found = append(found, of)
		}
	}
	return found
}

func (c *Controller) queueState() QueueState {
	queue := QueueState{Front: []string{}, Merged: c.merged, Waiting: []Waiting{}, WaitingCount: len(c.waiting)}
	if c.line != nil {
		queue.Depth = c.line.Len()
		for _, key := range c.line.Front(maxFront) {
			queue.Front = append(queue.Front, nameOf(key))
		}
	} else {
		earlier := func(a, b *Journey) int { return a.Moments[0].Time.Compare(b.Moments[0].Time) }
		pending := slices.SortedFunc(maps.Values(c.pending), earlier)
		queue.Depth = len(pending)
		for _, journey := range pending[:min(len(pending), maxFront)] {
			queue.Front = append(queue.Front, journey.Key)
		}
	}
	waiting := slices.SortedFunc(maps.Values(c.waiting), func(a, b *Waiting) int { return a.Until.Compare(b.Until) })
	for _, one := range waiting[:min(len(waiting), maxWaiting)] {
		queue.Waiting = append(queue.Waiting, *one)
	}
	return queue
}

func (c *Controller) workerStates() []Worker {
	workers := make([]Worker, max(c.Workers, len(c.busy), 1))
	for i := range workers {
		workers[i].Number = i + 1
		if i >= len(c.busy) || c.busy[i] == nil || c.busy[i].last == nil {
			continue
		}
		last := c.busy[i].last
		workers[i].Key, workers[i].Stage = last.Key, last.Stage
		if last.Stage == StageApply || last.Stage == StageServer {
			workers[i].Step = last.Text
		}
	}
	return workers
}

// keysWith returns at most 20 keys that begin with a text: those of the last syncs, of what
// waits, and of the objects of the controller's first resource.
func (c *Controller) keysWith(prefix string) []string {
	keys, listed, found := []string{}, []string{}, []string{}
	c.page.mu.Lock()
	for _, journey := range slices.Backward(c.journeys) {
		keys = append(keys, journey.Key)
	}
	for _, journey := range c.pending {
		listed = append(listed, journey.Key)
	}
	own := c.page.informersOf(c)
	c.page.mu.Unlock()
	for _, informer := range own {
		listed = append(listed, informer.shared.GetStore().ListKeys()...)
	}
	slices.Sort(listed)
	for _, key := range append(keys, listed...) {
		if len(found) < maxListedKeys && strings.HasPrefix(key, prefix) && !slices.Contains(found, key) {
			found = append(found, key)
		}
	}
	return found
}

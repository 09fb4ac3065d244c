package debugpage

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
)

// state returns what the process does now.
func (r *Recorder) state() State {
	now := r.clock.Now()
	measured := gathered.get(now)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addAllDue(now)
	state := State{
		Time: now, Process: r.process, Handlers: r.handlers, Queue: r.queueState(), Plans: slices.Clone(r.plans),
		Neutron: Neutron{InFlight: r.neutron.inFlight, Limit: measured.limit, Requests: r.neutron.count, Operations: []Operation{}},
	}
	if state.Plans == nil {
		state.Plans = []Plan{}
	}
	state.Process.Leads = r.leads
	if r.sources.holder != nil {
		state.Process.Holder = r.sources.holder()
	}
	pause, _ := r.slow.get()
	state.Process.SlowMilliseconds = int(pause.Milliseconds())
	for _, name := range slices.Sorted(maps.Keys(r.neutron.operations)) {
		state.Neutron.Operations = append(state.Neutron.Operations, r.neutron.operations[name].summary())
	}
	for _, of := range r.informers {
		state.Informers = append(state.Informers, of.state(measured))
	}
	state.Workers = r.workerStates()
	if r.sources.cacheSize != nil {
		networks, subnets, listedAt := r.sources.cacheSize()
		state.Cache = Cache{Networks: networks, Subnets: subnets}
		if !listedAt.IsZero() {
			state.Cache.Refreshed = &listedAt
		}
		state.Process.Cloud, _ = r.sources.cloud()
	}
	return state
}

func (r *Recorder) queueState() Queue {
	queue := Queue{Name: "Networks", Front: []string{}, Adds: r.adds, Merged: r.merged, Waiting: []Waiting{}}
	queued := 0
	for _, e := range r.keys {
		if e.queued && !e.working {
			queued++
		}
		if e.waiting == nil {
			continue
		}
		queue.WaitingCount++
		at, _ := slices.BinarySearchFunc(queue.Waiting, *e.waiting, func(a, b Waiting) int { return a.Until.Compare(b.Until) })
		if at < maxWaiting {
			queue.Waiting = slices.Insert(queue.Waiting, at, *e.waiting)
			queue.Waiting = queue.Waiting[:min(len(queue.Waiting), maxWaiting)]
		}
	}
	if queue.Depth = queued; r.sources.queueLength != nil {
		queue.Depth = r.sources.queueLength()
	}
	for _, key := range r.front {
		if len(queue.Front) == maxFront {
			break
		}
		if text := key.String(); r.isQueued(key) && !slices.Contains(queue.Front, text) {
			queue.Front = append(queue.Front, text)
		}
	}
	return queue
}

func (r *Recorder) workerStates() []Worker {
	workers := []Worker{}
	for i := range max(r.workers, len(r.busy)) {
		worker := Worker{Number: i + 1}
		if i < len(r.busy) && r.busy[i] != nil {
			of := r.busy[i]
			worker.Key, worker.Stage, worker.Step, worker.Since = of.key.String(), of.stage, of.step, &of.since
		}
		workers = append(workers, worker)
	}
	return slices.Clip(workers)
}

func (i *informer) state(measured measurements) Informer {
	of := measured.informers[informerID{i.namespace, i.kind}]
	return Informer{
		Kind: i.kind, Namespace: i.namespace, Activity: i.activity, Since: i.since, Lists: i.lists, Watches: i.watches, LastError: i.lastError,
		ResourceVersion: cmp.Or(of.version, ""), FIFO: of.queued, Objects: len(i.keys()),
	}
}

// measurements are metrics of this process.
type measurements struct {
	limit     int
	informers map[informerID]informerMetrics
}

type informerID struct{ namespace, kind string }

type informerMetrics struct {
	queued  int
	version string
}

// gathered are the metrics that were gathered last. All streams share them.
var gathered gatherer

type gatherer struct {
	mu   sync.Mutex
	at   time.Time
	last measurements
}

// gatherPeriod is the shortest time between two reads of all metrics.
const gatherPeriod = 250 * time.Millisecond

func (g *gatherer) get(now time.Time) measurements {
	g.mu.Lock()
	defer g.mu.Unlock()
	if age := now.Sub(g.at); age >= 0 && age < gatherPeriod {
		return g.last
	}
	g.at, g.last = now, gather()
	return g.last
}

// gather reads the metrics of client-go's informers and of the limit of requests.
func gather() measurements {
	found := measurements{informers: map[informerID]informerMetrics{}}
	families, _ := legacyregistry.DefaultGatherer.Gather() // what it returns besides an error is valid
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			value := metric.GetGauge().GetValue()
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			id := informerID{namespaceOf(labels["name"]), map[string]string{"networks": kindNetwork, "deployments": kindDeployment}[labels["resource"]]}
			of := found.informers[id]
			switch family.GetName() {
			case "samplecrd_neutron_request_limit":
				found.limit = int(value)
				continue
			case "informer_queued_items":
				of.queued = int(value)
			case "informer_store_resource_version":
				of.version = strconv.FormatInt(int64(value), 10)
			default:
				continue
			}
			found.informers[id] = of
		}
	}
	return found
}

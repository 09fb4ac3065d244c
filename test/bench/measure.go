package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samplecrd/network-controller/test/bench/bare"
)

// phase is what one kind of work took: creating, editing or deleting.
type phase struct {
	N, Done    int     // Networks, and those that were done within the limit
	Seconds    float64 // until the last one was done, or the limit
	P50, P99   float64 // seconds from the user's request until one was done
	EventsSent float64 // seconds from the last one until all Events were sent
	Neutron    counts  // requests
	Writes     counts  // to Kubernetes
	CPU        usage
}

func (p phase) finished() bool { return p.Done == p.N }

// rate returns how many were done in a second.
func (p phase) rate() float64 {
	if p.Seconds == 0 {
		return 0
	}
	return float64(p.Done) / p.Seconds
}

// networkWrites returns the writes of Networks.
func (p phase) networkWrites() int {
	return p.Writes.total() - p.events()
}

// events returns the requests about Events.
func (p phase) events() int {
	return p.Writes["POST events"] + p.Writes["PATCH events"] + p.Writes["PUT events"]
}

// run is one measurement of one peer.
type run struct {
	Peer                 string
	N, Round, Workers    int
	Latency              time.Duration
	Create, Edit, Delete phase
	// Resident and Peak are the peer's memory in MB after creating.
	Resident, Peak float64
}

// users is the number of requests that the benchmark has in flight.
const users = 16

// measure creates, edits and deletes n Networks. If not all were ready within the
// limit, it is over, and the site is used up.
func (m measurement) measure(ctx context.Context, n int, edit, remove bool) (r run, err error) {
	r = run{Peer: m.peer.Name, N: n, Workers: m.workers}
	if r.Create, err = m.create(ctx, n); err != nil {
		return r, err
	}
	r.Resident, r.Peak = memory(m.site.peer.PID())
	if edit && r.Create.finished() {
		if r.Edit, err = m.edit(ctx, n); err != nil {
			return r, err
		}
	}
	if remove && r.Create.finished() && r.Edit.finished() {
		r.Delete, err = m.delete(ctx, n)
	}
	return r, err
}

// measurement is a peer at work.
type measurement struct {
	*bench
	site  *site
	peer  peer
	watch *observer
	first int // number of the first Network to create
	// giveUp is the time after which the measurement is not finished.
	giveUp time.Duration
}

func networkName(i int) string { return fmt.Sprintf("network-%05d", i) }

func networkBody(group, name string, i int) string {
	return fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Network","metadata":{"name":%q},"spec":{"cidr":"10.%d.%d.0/24","gateway":"10.%d.%d.1"}}`,
		group, name, i/256%256, i%256, i/256%256, i%256)
}

// warmUp creates a Network and deletes it, so that the peer runs and has its caches.
func (m measurement) warmUp(ctx context.Context) error {
	for _, generation := range []int64{1, gone} {
		done := m.watch.expect(1)
		m.watch.begin(tenant(0)+"/warm-up", generation)
		var err error
		if generation == gone {
			err = m.remove(ctx, tenant(0), "warm-up")
		} else {
			err = m.post(ctx, tenant(0), "warm-up", 65535)
		}
		if err != nil {
			return err
		}
		select {
		case <-done:
		case <-m.site.peer.Done():
			return m.site.peer.Check()
		case <-time.After(time.Minute):
			return context.DeadlineExceeded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := m.watch.failure(); err != nil {
		return err
	}
	_, err := m.settle(ctx)
	return err
}

func (m measurement) create(ctx context.Context, n int) (phase, error) {
	return m.phase(ctx, n, 1, func(ctx context.Context, i int) error {
		return m.post(ctx, tenant(i), networkName(i), i)
	})
}

func (m measurement) edit(ctx context.Context, n int) (phase, error) {
	return m.phase(ctx, n, 2, func(ctx context.Context, i int) error {
		m.count(http.MethodPatch + " networks")
		return m.site.kube.Do(ctx, http.MethodPatch, bare.Path(m.peer.group, tenant(i), networkName(i)), bare.MergePatch,
			fmt.Sprintf(`{"spec":{"gateway":"10.%d.%d.2"}}`, i/256%256, i%256), nil)
	})
}

func (m measurement) delete(ctx context.Context, n int) (phase, error) {
	return m.phase(ctx, n, gone, func(ctx context.Context, i int) error {
		return m.remove(ctx, tenant(i), networkName(i))
	})
}

func (m measurement) post(ctx context.Context, namespace, name string, i int) error {
	m.count(http.MethodPost + " networks")
	body := networkBody(m.peer.group, name, i)
	return m.site.kube.Do(ctx, http.MethodPost, bare.Path(m.peer.group, namespace, ""), bare.JSON, body, nil)
}

func (m measurement) remove(ctx context.Context, namespace, name string) error {
	m.count(http.MethodDelete + " networks")
	return m.site.kube.Do(ctx, http.MethodDelete, bare.Path(m.peer.group, namespace, name), "", "", nil)
}

// count notes a write of the benchmark itself.
func (m measurement) count(write string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.site.made[write]++
}

// phase sends a request for each of n Networks, several at a time, and waits until
// each has reached a generation.
func (m measurement) phase(ctx context.Context, n int, generation int64, send func(ctx context.Context, i int) error) (p phase, err error) {
	s := m.site
	before, err := m.snapshot(ctx)
	if err != nil {
		return p, err
	}
	p.N = n
	ctx, cancel := context.WithTimeout(ctx, m.giveUp)
	defer cancel()
	done := m.watch.expect(n)
	began := time.Now()
	failed := make(chan error, users)
	go parallel(users, n, func(i int) bool {
		i += m.first
		m.watch.begin(tenant(i)+"/"+networkName(i), generation)
		err := send(ctx, i)
		if err != nil && ctx.Err() == nil {
			failed <- err
		}
		return err == nil
	})
	select {
	case <-done:
	case <-ctx.Done():
	case err := <-failed:
		return p, err
	case <-s.peer.Done():
		return p, s.peer.Check()
	}
	p.Seconds = time.Since(began).Seconds()
	if err := m.watch.failure(); err != nil {
		return p, err
	}
	times := m.watch.times()
	p.Done, p.P50, p.P99 = len(times), percentile(times, 0.5), percentile(times, 0.99)

	ctx = context.WithoutCancel(ctx)
	if p.finished() {
		if p.EventsSent, err = m.settle(ctx); err != nil {
			return p, err
		}
	}
	after, err := m.snapshot(ctx)
	if err != nil {
		return p, err
	}
	p.CPU, p.Neutron, p.Writes = after.usage.minus(before.after), after.neutron.minus(before.neutron), after.writes.minus(before.writes)
	return p, nil
}

// parallel calls a function with 0 to n-1, and stops if it returns false.
func parallel(workers, n int, call func(i int) bool) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				if !call(i) {
					return
				}
			}
		})
	}
	all.Wait()
}

// snapshot is the state of all counters. Reading them takes CPU time of the API
// server, so the usage is read before and after.
type snapshot struct {
	usage, after    usage
	neutron, writes counts
}

func (m measurement) snapshot(ctx context.Context) (s snapshot, err error) {
	s.usage = m.site.usage()
	if s.neutron, err = m.site.neutron.counts(ctx); err != nil {
		return s, err
	}
	if s.writes, err = m.site.writes(ctx); err != nil {
		return s, err
	}
	s.after = m.site.usage()
	return s, nil
}

// quiet is how long no Event arrives after the last one.
const quiet = time.Second

// settle waits until the peer sends no more Events, and returns how long it sent some.
func (m measurement) settle(ctx context.Context) (seconds float64, err error) {
	if m.peer.noEvents {
		return 0, nil
	}
	began := time.Now()
	latest, at := -1, began
	for time.Since(at) < quiet && time.Since(began) < m.giveUp {
		n, err := m.site.events(ctx)
		if err != nil {
			return 0, err
		}
		if n != latest {
			if latest >= 0 {
				seconds = time.Since(began).Seconds()
			}
			latest, at = n, time.Now()
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return seconds, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// rest is a peer with N healthy Networks, in which nothing changes.
type rest struct {
	Peer string
	N    int
	// Check is a drift check: what the peer does in one resync period.
	Check work
	// Restart is what a new process does until it is quiet.
	Restart work
	// Resident and Peak are the peer's memory in MB after the check.
	Resident, Peak float64
}

// work is what a peer did in a time.
type work struct {
	Seconds float64
	Neutron counts
	Writes  counts
	CPU     usage
	Done    bool // it was over within the limit
}

const (
	// resyncPeriod is that of all peers.
	resyncPeriod = 30 * time.Second
	// calm is how long a peer must do nothing to be quiet, and calmCPU how much CPU
	// time it may use in that time, in seconds.
	calm    = 2 * time.Second
	calmCPU = 0.1
)

// atRest measures a drift check and a restart. The peer has created n Networks.
func (m measurement) atRest(ctx context.Context, n int) (r rest, err error) {
	r = rest{Peer: m.peer.Name, N: n}
	if _, err = m.work(ctx, 0); err != nil { // the rest of the work that came before
		return r, err
	}
	if r.Check, err = m.driftCheck(ctx); err != nil {
		return r, err
	}
	r.Resident, r.Peak = memory(m.site.peer.PID())
	m.site.stopPeer()
	before, err := m.snapshot(ctx)
	if err != nil {
		return r, err
	}
	if err := m.site.startPeer(m.peer, m.workers); err != nil {
		return r, err
	}
	r.Restart, err = m.workSince(ctx, before, time.Now(), 1)
	return r, err
}

// driftCheck measures one resync period. With lists of all objects, it lasts from the
// end of one check to the end of the next. Otherwise the checks of the Networks are
// spread over the period.
func (m measurement) driftCheck(ctx context.Context) (work, error) {
	if m.peer.lists {
		return m.work(ctx, 1)
	}
	before, err := m.snapshot(ctx)
	if err != nil {
		return work{}, err
	}
	if err := pause(ctx, resyncPeriod); err != nil {
		return work{}, err
	}
	after, err := m.snapshot(ctx)
	w := between(before, after)
	w.Seconds, w.Done = resyncPeriod.Seconds(), true
	return w, err
}

// work waits until the peer has sent a number of requests to Neutron, and is quiet.
func (m measurement) work(ctx context.Context, requests int) (work, error) {
	before, err := m.snapshot(ctx)
	if err != nil {
		return work{}, err
	}
	return m.workSince(ctx, before, time.Now(), requests)
}

func (m measurement) workSince(ctx context.Context, before snapshot, began time.Time, requests int) (w work, err error) {
	latest, at, cpu := before.neutron.total(), time.Now(), 0.0
	for time.Since(began) < m.giveUp {
		now, err := m.site.neutron.counts(ctx)
		if err != nil {
			return w, err
		}
		if used := m.site.usage().Peer; now.total() != latest || used-cpu > calmCPU {
			latest, at, cpu = now.total(), time.Now(), used
		}
		if w.Done = time.Since(at) > calm && latest >= before.neutron.total()+requests; w.Done {
			break
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return w, err
		}
	}
	after, err := m.snapshot(ctx)
	done := w.Done
	w = between(before, after)
	w.Seconds, w.Done = at.Sub(began).Seconds(), done
	return w, err
}

func between(before, after snapshot) work {
	return work{CPU: after.usage.minus(before.after), Neutron: after.neutron.minus(before.neutron), Writes: after.writes.minus(before.writes)}
}

// beside is how long one Network takes alone, and while another tenant creates N, with a
// number of requests at a time.
type beside struct {
	Peer            string
	N, AtATime      int
	Alone, Together pace
}

// pace is how long new Networks take until they are ready, and, of that, the user's own
// request. The latter shows how busy the API server is.
type pace struct{ Ready, Accepted series }

// series are times in seconds.
type series struct {
	Count         int
	P50, P99, Max float64
}

func newSeries(times []float64) series {
	slices.Sort(times)
	return series{len(times), percentile(times, 0.5), percentile(times, 0.99), percentile(times, 1)}
}

const (
	quietTenant = "quiet-tenant"
	busyTenant  = "busy-tenant"
	repetitions = 100
)

// secondTenant measures new Networks of one tenant, alone and beside n of another. Each
// tenant watches its own namespace: a watch of all would be delayed by the n Networks.
func (m measurement) secondTenant(ctx context.Context, n, atATime int) (b beside, err error) {
	b = beside{Peer: m.peer.Name, N: n, AtATime: atATime}
	for _, namespace := range []string{quietTenant, busyTenant} {
		if err := m.site.createNamespace(ctx, namespace); err != nil {
			return b, err
		}
	}
	m.watch.stop()
	m.watch = observe(ctx, m.site.kube, m.peer.group, quietTenant)
	if err := m.one(ctx, "first", &times{}); err != nil {
		return b, err
	}
	var alone, together times
	for i := range repetitions {
		if err := m.one(ctx, fmt.Sprintf("alone-%d", i), &alone); err != nil {
			return b, err
		}
	}
	b.Alone = alone.pace()

	others := observe(ctx, m.site.kube, m.peer.group, busyTenant)
	done := others.expect(n)
	var failed atomic.Pointer[error]
	go parallel(atATime, n, func(i int) bool {
		others.begin(busyTenant+"/"+networkName(i), 1)
		err := m.post(ctx, busyTenant, networkName(i), i)
		if err != nil && ctx.Err() == nil {
			failed.Store(&err)
		}
		return err == nil
	})
	for began, isDone := time.Now(), false; !isDone && time.Since(began) < m.giveUp; {
		if err := m.one(ctx, fmt.Sprintf("beside-%d", len(together.ready)), &together); err != nil {
			return b, err
		}
		select {
		case <-done:
			isDone = true
		case <-time.After(100 * time.Millisecond):
		}
		if err := failed.Load(); err != nil {
			return b, *err
		}
	}
	b.Together = together.pace()
	return b, nil
}

// times are those of one Network after the other, in seconds.
type times struct{ ready, accepted []float64 }

func (t times) pace() pace { return pace{newSeries(t.ready), newSeries(t.accepted)} }

// one creates a Network of the quiet tenant, and adds its times.
func (m measurement) one(ctx context.Context, name string, to *times) error {
	done, began := m.watch.expect(1), time.Now()
	m.watch.begin(quietTenant+"/"+name, 1)
	if err := m.post(ctx, quietTenant, name, len(to.ready)); err != nil {
		return err
	}
	to.accepted = append(to.accepted, time.Since(began).Seconds())
	select {
	case <-done:
		to.ready = append(to.ready, m.watch.times()...)
		return nil
	case <-m.site.peer.Done():
		return m.site.peer.Check()
	case <-time.After(m.giveUp):
		to.ready = append(to.ready, m.giveUp.Seconds()) // at least
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// killed is what Neutron has after the peer was killed with a request in flight.
type killed struct {
	Peer     string
	Hold     float64 // seconds that Neutron works on the request
	Networks int     // with the name of the Network, in the end
	Ready    float64 // seconds from the kill until the Network was ready
}

// hold is how long Neutron works on the request.
const hold = 6 * time.Second

// killedInFlight kills the peer while Neutron creates a network, and starts it again.
func (m measurement) killedInFlight(ctx context.Context) (k killed, err error) {
	k = killed{Peer: m.peer.Name, Hold: hold.Seconds()}
	if err := m.site.neutron.get(ctx, "/bench/hold?for="+hold.String(), nil); err != nil {
		return k, err
	}
	before, err := m.site.neutron.counts(ctx)
	if err != nil {
		return k, err
	}
	done := m.watch.expect(1)
	m.watch.begin(tenant(0)+"/killed", 1)
	if err := m.post(ctx, tenant(0), "killed", 0); err != nil {
		return k, err
	}
	for { // until the request has arrived
		now, err := m.site.neutron.counts(ctx)
		if err != nil {
			return k, err
		}
		if now["POST networks"] > before["POST networks"] {
			break
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return k, err
		}
	}
	if err := syscall.Kill(m.site.peer.PID(), syscall.SIGKILL); err != nil {
		return k, fmt.Errorf("killing the peer: %w", err)
	}
	<-m.site.peer.Done()
	began := time.Now()
	if err := m.site.startPeer(m.peer, m.workers); err != nil {
		return k, err
	}
	select {
	case <-done:
		k.Ready = time.Since(began).Seconds()
	case <-time.After(m.giveUp):
		return k, errors.New("the Network did not get ready after the kill")
	case <-ctx.Done():
		return k, ctx.Err()
	}
	// A duplicate must be deleted by the next drift check at the latest.
	if err := pause(ctx, max(0, hold-time.Since(began))+resyncPeriod+calm); err != nil {
		return k, err
	}
	var all struct{ Networks []struct{ Name string } }
	if err := m.site.neutron.get(ctx, "/v2.0/networks", &all); err != nil {
		return k, err
	}
	for _, network := range all.Networks {
		if strings.HasSuffix(network.Name, "/killed") {
			k.Networks++
		}
	}
	return k, nil
}

// begin starts a peer with an empty Neutron, and returns when it works.
func (b *bench) begin(ctx context.Context, s *site, p peer, latency time.Duration) (m measurement, err error) {
	if err := s.startNeutron(ctx, latency); err != nil {
		return m, err
	}
	if err := s.startPeer(p, b.workers); err != nil {
		return m, err
	}
	m = measurement{b, s, p, observe(ctx, s.kube, p.group, ""), 0, b.giveUp}
	if err := m.warmUp(ctx); err != nil {
		return m, fmt.Errorf("%s did not make a first Network ready: %w%s", p.Name, err, s.peer.LastLines())
	}
	return m, nil
}

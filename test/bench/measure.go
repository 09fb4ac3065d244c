package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// users is the number of requests that the users have in flight.
	users = 16
	// giveUp is the time after which a measurement has failed, and forEach what it may take
	// longer for each Network.
	giveUp  = 2 * time.Minute
	forEach = 30 * time.Millisecond
	// resyncPeriod is that of all peers.
	resyncPeriod = 30 * time.Second
	// calm is how long a peer must do nothing to be quiet, and calmCPU how much CPU
	// time it may use in that time, in seconds.
	calm    = 2 * time.Second
	calmCPU = 0.1
)

// run is one measurement of one peer.
type run struct {
	Peer                 string
	Round                int
	Latency              time.Duration
	Create, Edit, Delete phase
	// Resident and Peak are the peer's memory in MB after creating.
	Resident, Peak float64
}

// phase is what one kind of work took: creating, editing or deleting.
type phase struct {
	cost
	N        int
	Seconds  float64 // until the last one was done
	P50, P99 float64 // seconds from the user's request until one was done
}

// rate returns how many were done in a second.
func (p phase) rate() float64 { return float64(p.N) / p.Seconds }

// lifeOf creates, edits and deletes n Networks.
func (s *site) lifeOf(ctx context.Context, n int) (r run, err error) {
	if r.Create, err = s.create(ctx, 0, n); err != nil {
		return r, fmt.Errorf("creating: %w", err)
	}
	r.Resident, r.Peak = memory(s.process.PID())
	if r.Edit, err = s.phase(ctx, 0, n, change{2, s.edit}); err != nil {
		return r, fmt.Errorf("editing: %w", err)
	}
	r.Delete, err = s.phase(ctx, 0, n, change{gone, func(ctx context.Context, namespace, name string, _ int) error {
		return s.remove(ctx, namespace, name)
	}})
	return r, err
}

// change is what users do to a Network, which then is ready with a generation, or gone.
type change struct {
	generation int64
	request    func(ctx context.Context, namespace, name string, i int) error
}

// create creates the Networks with the numbers from first to last, without the last.
func (s *site) create(ctx context.Context, first, last int) (phase, error) {
	return s.phase(ctx, first, last, change{1, s.post})
}

// phase makes users change Networks, and waits until all are done and their Events sent.
func (s *site) phase(ctx context.Context, first, last int, c change) (p phase, err error) {
	p.N = last - first
	p.cost, err = s.costOf(ctx, func() error {
		done, began := s.watch.expect(p.N), time.Now()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		go parallel(users, p.N, func(i int) bool {
			i += first
			s.watch.begin(tenant(i), networkName(i), c.generation)
			err := c.request(ctx, tenant(i), networkName(i), i)
			if err != nil {
				cancel(err)
			}
			return err == nil
		})
		if err := s.wait(ctx, done, giveUp+time.Duration(p.N)*forEach); err != nil {
			return err
		}
		p.Seconds = time.Since(began).Seconds()
		return s.settle(ctx)
	})
	times := s.watch.times()
	p.P50, p.P99 = percentile(times, 0.5), percentile(times, 0.99)
	p.Networks -= p.N // the requests of the users
	return p, err
}

// wait waits until the expected Networks are done.
func (s *site) wait(ctx context.Context, done <-chan struct{}, limit time.Duration) error {
	select {
	case <-done:
		return nil
	case err := <-s.watch.failed:
		return err
	case <-s.process.Done():
		return s.process.Check()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(limit):
		return fmt.Errorf("only %d Networks were done within %v%s", len(s.watch.times()), limit, s.process.LastLines())
	}
}

// createOne creates a Network, and returns the seconds until it was ready, and those of the
// request.
func (s *site) createOne(ctx context.Context, namespace, name string) (t times, err error) {
	done, began := s.watch.expect(1), time.Now()
	s.watch.begin(namespace, name, 1)
	if err := s.post(ctx, namespace, name, 0); err != nil {
		return t, err
	}
	t.accepted = time.Since(began).Seconds()
	err = s.wait(ctx, done, giveUp)
	t.ready = time.Since(began).Seconds()
	return t, err
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

// settle waits until a peer has sent no Event for a second.
func (s *site) settle(ctx context.Context) error {
	if s.peer.isBare {
		return nil
	}
	for latest := -1; ; {
		sent, err := s.events(ctx)
		if err != nil || sent == latest {
			return err
		}
		latest = sent
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// resting is a peer with N healthy Networks, in which nothing changes.
type resting struct {
	Peer string
	N    int
	// Check is a drift check: what the peer does in one resync period.
	Check cost
	// Restart is what a new process does until it is quiet, and Quiet the seconds until then.
	Restart cost
	Quiet   float64
	// Resident and Peak are the peer's memory in MB after the check.
	Resident, Peak float64
}

// atRest measures a drift check and a restart. The peer has created n Networks.
func (s *site) atRest(ctx context.Context, n int) (r resting, err error) {
	r = resting{Peer: s.peer.Name, N: n}
	if _, err = s.untilQuiet(ctx, 0); err != nil { // the rest of the work that came before
		return r, err
	}
	if r.Check, err = s.costOf(ctx, func() error { return s.driftCheck(ctx) }); err != nil {
		return r, err
	}
	r.Resident, r.Peak = memory(s.process.PID())
	s.stopPeer()
	r.Restart, err = s.costOf(ctx, func() error {
		before := s.neutron.requests().toNeutron()
		if err := s.startPeer(s.peer.flags...); err != nil {
			return err
		}
		r.Quiet, err = s.untilQuiet(ctx, before+1)
		return err
	})
	return r, err
}

// driftCheck waits for one resync period. This controller lists all objects, so its period
// lasts until the end of the next list. Others spread their checks over the period.
func (s *site) driftCheck(ctx context.Context) error {
	if s.peer.Name != nameOurs {
		return pause(ctx, resyncPeriod)
	}
	_, err := s.untilQuiet(ctx, s.neutron.requests().toNeutron()+1)
	return err
}

// untilQuiet waits until Neutron has received a number of requests, and the peer is quiet.
// It returns the seconds until then.
func (s *site) untilQuiet(ctx context.Context, least int) (seconds float64, err error) {
	began := time.Now()
	latest, at, cpu := 0, began, 0.0
	for time.Since(at) < calm || latest < least {
		if time.Since(began) > giveUp {
			return 0, errors.New("the program does not get quiet")
		}
		if sent, used := s.neutron.requests().toNeutron(), s.cpuTime().Peer; sent != latest || used-cpu > calmCPU {
			latest, at, cpu = sent, time.Now(), used
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return at.Sub(began).Seconds(), nil
}

// beside is how long one Network takes alone, and while another tenant creates N, with a
// number of requests at a time.
type beside struct {
	N, AtATime      int
	Alone, Together pace
}

// pace is how long new Networks take until they are ready, and, of that, the user's own
// request. The latter shows how busy the API server is.
type pace struct {
	Count           int
	Ready, Accepted series
}

// series are times in seconds.
type series struct{ P50, P99 float64 }

// times are those of one Network, in seconds.
type times struct{ ready, accepted float64 }

func paceOf(all []times) pace {
	ready, accepted := make([]float64, len(all)), make([]float64, len(all))
	for i, one := range all {
		ready[i], accepted[i] = one.ready, one.accepted
	}
	seriesOf := func(values []float64) series {
		slices.Sort(values)
		return series{percentile(values, 0.5), percentile(values, 0.99)}
	}
	return pace{len(all), seriesOf(ready), seriesOf(accepted)}
}

const (
	quietTenant = "quiet-tenant"
	busyTenant  = "busy-tenant"
	repetitions = 100
)

// secondTenant measures new Networks of one tenant, alone and beside n of another. Each
// tenant watches its own namespace: a watch of all would be delayed by the n Networks.
func (s *site) secondTenant(ctx context.Context, n, atATime int) (b beside, err error) {
	b = beside{N: n, AtATime: atATime}
	for _, namespace := range []string{quietTenant, busyTenant} {
		if err := s.createNamespace(ctx, namespace); err != nil {
			return b, err
		}
	}
	s.watch.stop()
	s.watch = observe(ctx, s.kube, quietTenant)
	var alone, together []times
	for i := range repetitions + 1 {
		one, err := s.createOne(ctx, quietTenant, fmt.Sprintf("alone-%d", i))
		if err != nil {
			return b, err
		}
		alone = append(alone, one)
	}
	b.Alone = paceOf(alone[1:]) // the first one waits for connections

	ctx, cancel := context.WithTimeout(ctx, giveUp+time.Duration(n)*forEach)
	defer cancel()
	others := observe(ctx, s.kube, busyTenant)
	done := others.expect(n)
	go parallel(atATime, n, func(i int) bool {
		others.begin(busyTenant, networkName(i), 1)
		return s.post(ctx, busyTenant, networkName(i), i) == nil // otherwise it never ends
	})
	for {
		one, err := s.createOne(ctx, quietTenant, fmt.Sprintf("beside-%d", len(together)))
		if err != nil {
			return b, err
		}
		together = append(together, one)
		select {
		case <-done:
			b.Together = paceOf(together)
			return b, nil
		case err := <-others.failed:
			return b, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

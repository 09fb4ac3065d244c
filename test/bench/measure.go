package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// users is the number of requests that the users have in flight.
	users = 16
	// giveUp is the time after which a measurement has failed, and forEach what it may take
	// longer for each Network.
	giveUp  = 2 * time.Minute
	forEach = 30 * time.Millisecond
	// noOther is a number whose CIDR no other Network of the comparison has.
	noOther = 1<<16 - 1
	// resyncPeriod is that of all peers.
	resyncPeriod = 30 * time.Second
	// calm is how long a peer must do nothing to be quiet, and calmCPU how much CPU
	// time it may use in that time, in seconds.
	calm    = 2 * time.Second
	calmCPU = 0.1
)

// measure measures the peer.
func (s *site) measure(ctx context.Context, m step) (figures, error) {
	switch m.kind {
	case life:
		return s.lifeOf(ctx, m.N)
	case tenant:
		return s.secondTenant(ctx, m.N, m.AtATime)
	}
	if _, err := s.create(ctx, 0, m.N); err != nil {
		return nil, err
	}
	return s.atRest(ctx)
}

// lifeOf creates, edits and deletes n Networks.
func (s *site) lifeOf(ctx context.Context, n int) (figures, error) {
	found := figures{}
	for _, c := range []change{{"create", 1, s.post}, {"edit", 2, s.edit}, {"delete", gone, s.remove}} {
		cost, err := s.phase(ctx, 0, n, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		found.add(c.name, cost)
		if c.name == "create" {
			found.add("", memory(s.process.PID()))
		}
	}
	return found, nil
}

// change is what users do to a Network, which then is ready with a generation, or gone.
type change struct {
	name       string
	generation int64
	request    func(ctx context.Context, namespace, name string, i int) error
}

// create creates the Networks with the numbers from first to last, without the last.
func (s *site) create(ctx context.Context, first, last int) (figures, error) {
	return s.phase(ctx, first, last, change{"create", 1, s.post})
}

// phase makes users change Networks, and waits until all are done and their Events sent. It
// returns the cost for each Network, with CPU times in milliseconds, the Networks in a
// second, and the seconds from a user's request until the Network was done.
func (s *site) phase(ctx context.Context, first, last int, c change) (figures, error) {
	n, took := last-first, time.Duration(0)
	cost, err := s.costOf(ctx, func() error {
		done, began := s.watch.expect(n), time.Now()
		err := parallel(ctx, users, n, func(ctx context.Context, i int) error {
			namespace, name := s.namespace(first+i), networkName(first+i)
			s.watch.begin(namespace, name, c.generation)
			return c.request(ctx, namespace, name, first+i)
		})
		if err != nil {
			return err
		}
		if err := s.wait(ctx, s.watch, done); err != nil {
			return err
		}
		took = time.Since(began)
		return s.settle(ctx)
	})
	if err != nil {
		return nil, err
	}
	cost["Writes"] -= float64(n) // the requests of the users
	for name := range cost {
		cost[name] /= float64(n)
	}
	for _, process := range []string{"Program", "APIServer", "Etcd"} {
		cost[process] *= 1000
	}
	cost["Rate"] = float64(n) / took.Seconds()
	cost.add("", percentiles(s.watch.times()))
	return cost, nil
}

// percentiles returns the median and the 99th percentile.
func percentiles(all []float64) figures {
	slices.Sort(all)
	at := func(p float64) float64 { return all[min(len(all)-1, int(float64(len(all))*p))] }
	return figures{"P50": at(0.5), "P99": at(0.99)}
}

// parallel calls a function with 0 to n-1, some at a time, until it returns an error.
func parallel(ctx context.Context, atATime, n int, call func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atATime)
	for i := 0; i < n && ctx.Err() == nil; i++ {
		group.Go(func() error { return call(ctx, i) })
	}
	return group.Wait()
}

// wait waits until the Networks are done that an observer expects.
func (s *site) wait(ctx context.Context, by *observer, done <-chan struct{}) error {
	limit := giveUp + time.Duration(by.left())*forEach
	select {
	case <-done:
		return nil
	case err := <-by.failed:
		return err
	case <-s.process.Done():
		return s.process.Check()
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(limit):
		return fmt.Errorf("%d Networks were not done within %v%s", by.left(), limit, s.process.LastLines())
	}
}

// createOne creates a Network, and returns the seconds until it was ready, and those of the
// request, which show how busy the API server is.
func (s *site) createOne(ctx context.Context, namespace, name string) (ready, accepted float64, err error) {
	done, began := s.watch.expect(1), time.Now()
	s.watch.begin(namespace, name, 1)
	if err := s.post(ctx, namespace, name, noOther); err != nil {
		return 0, 0, err
	}
	accepted = time.Since(began).Seconds()
	err = s.wait(ctx, s.watch, done)
	return time.Since(began).Seconds(), accepted, err
}

// atRest measures a peer while nothing changes: "check" is a drift check, in one resync
// period, and "restart" what a new process does until it is quiet.
func (s *site) atRest(ctx context.Context) (found figures, err error) {
	found = figures{}
	if _, err = s.untilQuiet(ctx, 0); err != nil { // the rest of the work that came before
		return nil, err
	}
	check, err := s.costOf(ctx, func() error { return s.driftCheck(ctx) })
	if err != nil {
		return nil, err
	}
	found.add("check", check)
	found.add("", memory(s.process.PID()))
	s.stopPeer()
	restart, err := s.costOf(ctx, func() error {
		before, _ := s.cloud.requests()
		if err := s.startPeer(s.flags...); err != nil {
			return err
		}
		found["Quiet"], err = s.untilQuiet(ctx, before+1)
		return err
	})
	found.add("restart", restart)
	return found, err
}

// driftCheck waits for one resync period. This controller lists all objects, so its period
// lasts until the end of the next list. Others spread their checks over the period.
func (s *site) driftCheck(ctx context.Context) error {
	if s.peer.Name != ours.Name {
		return pause(ctx, resyncPeriod)
	}
	sent, _ := s.cloud.requests()
	_, err := s.untilQuiet(ctx, sent+1)
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
		sent, _ := s.cloud.requests()
		if used := s.cpuTime()["Program"]; sent != latest || used-cpu > calmCPU {
			latest, at, cpu = sent, time.Now(), used
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return at.Sub(began).Seconds(), nil
}

const (
	quietTenant = "quiet-tenant"
	busyTenant  = "busy-tenant"
	repetitions = 100
)

// secondTenant measures new Networks of one tenant, alone and beside n of another. Each
// tenant watches its own namespace: a watch of all would be delayed by the n Networks.
func (s *site) secondTenant(ctx context.Context, n, atATime int) (figures, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*giveUp+time.Duration(n)*forEach)
	defer cancel()
	for _, namespace := range []string{quietTenant, busyTenant} {
		if err := s.createNamespace(ctx, namespace); err != nil {
			return nil, err
		}
	}
	s.watch.stop()
	s.watch = observe(ctx, s.kube, quietTenant)
	var alone, beside paces
	for i := range repetitions + 1 {
		if err := alone.add(s.createOne(ctx, quietTenant, fmt.Sprintf("alone-%d", i))); err != nil {
			return nil, err
		}
	}
	others, finished := observe(ctx, s.kube, busyTenant), make(chan error, 1)
	done := others.expect(n)
	go func() {
		err := parallel(ctx, atATime, n, func(ctx context.Context, i int) error {
			others.begin(busyTenant, networkName(i), 1)
			return s.post(ctx, busyTenant, networkName(i), i)
		})
		if err == nil {
			err = s.wait(ctx, others, done)
		}
		finished <- err
	}()
	for {
		if err := beside.add(s.createOne(ctx, quietTenant, fmt.Sprintf("beside-%d", len(beside.ready)))); err != nil {
			return nil, err
		}
		select {
		case err := <-finished:
			found := figures{}
			found.add("alone", paces{alone.ready[1:], alone.accepted[1:]}.figures()) // the first waits for connections
			found.add("beside", beside.figures())
			return found, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// paces are the times of Networks that were created one after the other, in seconds.
type paces struct{ ready, accepted []float64 }

func (p *paces) add(ready, accepted float64, err error) error {
	p.ready, p.accepted = append(p.ready, ready), append(p.accepted, accepted)
	return err
}

func (p paces) figures() figures {
	f := figures{"Count": float64(len(p.ready))}
	f.add("Ready", percentiles(p.ready))
	f.add("Accepted", percentiles(p.accepted))
	return f
}

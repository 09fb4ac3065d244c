package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// step is one measurement. It reports whether it left the site without Networks, so
// that the next one can use it.
type step struct {
	name    string
	measure func(context.Context, *site) (clean bool, err error)
}

// large is the size from which each measurement gets a Kubernetes of its own, one
// round, and no edits and deletions, which would take as long as creating.
const large = 5000

// forEach is by how much longer this controller may take for each of many Networks.
const forEach = 30 * time.Millisecond

// schedule returns the measurements, the most valuable ones first: one round of
// everything, this controller with many Networks, and then the other rounds. In each
// round, the peers alternate.
func (b *bench) schedule() (all []step) {
	sizes := slices.DeleteFunc(slices.Clone(b.sizes), func(n int) bool { return n >= large })
	slices.Reverse(sizes) // the size with which the peers are compared comes first
	many := slices.DeleteFunc(slices.Clone(b.sizes), func(n int) bool { return n < large })
	var last []step
	for round := range b.rounds {
		for i, n := range sizes {
			all = append(all, b.roundOf(n, round, i == 0)...)
		}
		if round > 0 {
			continue
		}
		for _, p := range b.peers {
			if p.Name == nameOurs && !b.short {
				most := b.sizes[len(b.sizes)-1]
				all = append(all, b.killStep(p), b.tenantStep(p, most, users), b.tenantStep(p, min(most, oneByOne), 1))
			}
			for _, n := range many {
				if step := b.stepOf(p, n, 1, b.mainLatency()); p.Name == nameOurs {
					all = append(all, step)
				} else {
					last = append(last, step)
				}
			}
		}
	}
	if len(sizes) > 0 {
		for _, p := range b.peers {
			switch step := b.restStep(p, sizes[0]); {
			case p.noEvents || b.short && p.Name != nameOurs:
			case p.Name == nameCourse: // it takes five minutes
				last = append(last, step)
			default:
				all = append(all, step)
			}
		}
	}
	return append(all, last...)
}

// roundOf returns the measurements of one round with n Networks, at all latencies or
// at the one of most measurements.
func (b *bench) roundOf(n, round int, allLatencies bool) (all []step) {
	for _, latency := range b.latency {
		if latency != b.mainLatency() && !allLatencies {
			continue
		}
		for _, p := range b.peers {
			if p.Name == nameCourse && (round > 0 || latency != b.mainLatency()) {
				continue // its limiter takes minutes, and does not vary
			}
			all = append(all, b.stepOf(p, n, round+1, latency))
		}
	}
	return all
}

// mainLatency is the latency of the measurements at all sizes.
func (b *bench) mainLatency() time.Duration { return b.latency[len(b.latency)-1] }

// stepOf creates n Networks, and edits and deletes them unless there are many. For
// many, this controller is also measured at rest.
func (b *bench) stepOf(p peer, n, round int, latency time.Duration) step {
	name := fmt.Sprintf("%s, N=%d, latency %v, round %d", p.Name, n, latency, round)
	return step{name, func(ctx context.Context, s *site) (clean bool, err error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		m, err := b.begin(ctx, s, p, latency)
		if err != nil {
			return false, err
		}
		if n >= large && p.Name == nameOurs { // what follows needs all of them
			m.giveUp += time.Duration(n) * forEach
		}
		r, err := m.measure(ctx, n, n < large && round == 1, n < large)
		if err != nil {
			return false, err
		}
		r.Round, r.Latency = round, latency
		fmt.Println(r)
		b.results.Runs = append(b.results.Runs, r)
		if n >= large && p.Name == nameOurs && r.Create.finished() {
			return false, b.rest(ctx, m, n)
		}
		return n < large && r.Delete.N > 0 && r.Delete.finished(), nil
	}}
}

func (b *bench) rest(ctx context.Context, m measurement, n int) error {
	r, err := m.atRest(ctx, n)
	if err != nil {
		return err
	}
	fmt.Printf("%59s%v\n", "", r)
	b.results.Rests = append(b.results.Rests, r)
	return nil
}

// restStep creates n Networks, and measures the peer at rest.
func (b *bench) restStep(p peer, n int) step {
	return step{fmt.Sprintf("%s, at rest with N=%d", p.Name, n), func(ctx context.Context, s *site) (clean bool, err error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		m, err := b.begin(ctx, s, p, b.mainLatency())
		if err != nil {
			return false, err
		}
		created, err := m.create(ctx, n)
		if err != nil {
			return false, err
		}
		if !created.finished() {
			return false, fmt.Errorf("only %d of %d Networks were ready within %v", created.Done, n, b.giveUp)
		}
		return false, b.rest(ctx, m, n)
	}}
}

// oneByOne is the number of Networks that another tenant creates one after the other.
const oneByOne = 3000

func (b *bench) tenantStep(p peer, n, atATime int) step {
	return step{fmt.Sprintf("%s, beside N=%d of another tenant, %d at a time", p.Name, n, atATime), func(ctx context.Context, s *site) (clean bool, err error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		m, err := b.begin(ctx, s, p, b.mainLatency())
		if err != nil {
			return false, err
		}
		r, err := m.secondTenant(ctx, n, atATime)
		if err != nil {
			return false, err
		}
		fmt.Println(r)
		b.results.Besides = append(b.results.Besides, r)
		return false, nil
	}}
}

func (b *bench) killStep(p peer) step {
	return step{p.Name + ", killed with a POST in flight", func(ctx context.Context, s *site) (clean bool, err error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		m, err := b.begin(ctx, s, p, b.mainLatency())
		if err != nil {
			return false, err
		}
		r, err := m.killedInFlight(ctx)
		if err != nil {
			return false, err
		}
		fmt.Println(r)
		b.results.Kills = append(b.results.Kills, r)
		return false, nil
	}}
}

// String returns a line about creating.
func (r run) String() string {
	c := r.Create
	each := func(seconds float64) float64 { return 1000 * seconds / float64(max(1, c.Done)) }
	return fmt.Sprintf("%d of %d ready in %.1fs (%.0f/s), p99 %.2fs; Neutron %d, writes %d, events %d; CPU %.1f ms each, API server %.1f; %.0f MB",
		c.Done, c.N, c.Seconds, c.rate(), c.P99, c.Neutron.total(), c.networkWrites(), c.events(), each(c.CPU.Peer), each(c.CPU.APIServer), r.Resident)
}

func (r rest) String() string {
	return fmt.Sprintf("check: Neutron %d, writes %d, CPU %.2fs; restart: quiet after %.1fs, Neutron %d, writes %d, CPU %.2fs; %.0f MB",
		r.Check.Neutron.total(), r.Check.Writes.total(), r.Check.CPU.Peer, r.Restart.Seconds, r.Restart.Neutron.total(), r.Restart.Writes.total(), r.Restart.CPU.Peer, r.Resident)
}

func (b beside) String() string {
	text := func(p pace) string {
		return fmt.Sprintf("p50 %.3fs p99 %.3fs (%d; accepted p50 %.3fs)", p.Ready.P50, p.Ready.P99, p.Ready.Count, p.Accepted.P50)
	}
	return "alone " + text(b.Alone) + ", beside " + text(b.Together)
}

func (k killed) String() string {
	return fmt.Sprintf("%d networks, ready %.1fs after the kill", k.Networks, k.Ready)
}

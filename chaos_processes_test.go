package main

import (
	"fmt"
	"sync"
	"syscall"
	"time"
)

// chaosReplica is a controller that is started again when its process ends.
type chaosReplica struct {
	c      *chaos
	number int
	api    *apiFront
	log    output // of all its processes
	done   sync.WaitGroup

	mu      sync.Mutex
	process *program // the latest one
	ended   bool
}

func newChaosReplica(c *chaos, number int) *chaosReplica {
	r := &chaosReplica{c: c, number: number, api: newAPIFront(c, number, c.cluster.RESTConfig())}
	c.Cleanup(r.end)
	return r
}

// begin runs processes, one after the other, until the end of the replica.
func (r *chaosReplica) begin() {
	r.done.Go(func() {
		for r.live() {
		}
	})
}

// live runs one process. It reports whether another one follows.
func (r *chaosReplica) live() bool {
	c := r.c
	args := []string{
		"-master=" + r.api.server.URL, "-cluster-name=" + c.clusterName, "-neutron-endpoint=" + c.neutron.url,
		"-leader-elect", "-leader-elect-resource-namespace=" + c.namespace,
		"-leader-elect-lease-duration=" + chaosLease.String(),
		"-leader-elect-renew-deadline=1500ms", "-leader-elect-retry-period=300ms",
		"-neutron-timeout=" + c.timeout.String(), "-resync-period=1s", "-shutdown-timeout=1s",
		"-workers=8", "-allow-adoption", "-v=4",
	}
	if c.deletesOrphans() {
		args = append(args, "-delete-orphans", "-max-orphan-deletions=0", fmt.Sprint("-orphan-grace-period=", orphanGrace/c.scale))
	}
	p := newDefaultProgram(c.T, args...)
	p.Env = append(p.Env, fmt.Sprintf("%s=%d", limitsScale, c.scale))
	p.Stdout, p.Stderr = &r.log, &r.log
	if !r.start(p) {
		return false
	}
	c.journal.add("", "replica %d starts", r.number)
	err := p.Wait()
	c.leader.CompareAndSwap(int64(r.number), noReplica)
	c.journal.add("", "replica %d ended: %v", r.number, err)
	if p.ProcessState.ExitCode() == 2 {
		log := r.log.String()
		c.Errorf("the process panicked, or its flags are wrong:\n%s", log[max(0, len(log)-4000):])
		return false
	}
	return true
}

// start reports whether it has started a process; not after the replica's end.
func (r *chaosReplica) start(p *program) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	if err := p.Start(); err != nil {
		r.c.Errorf("starting a process: %v", err)
		return false
	}
	r.process = p
	return true
}

func (r *chaosReplica) signal(signal syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process != nil {
		_ = r.process.Process.Signal(signal) // it may have ended
	}
}

// carryOn ends what keeps a process from its work.
func (r *chaosReplica) carryOn() {
	r.api.partitioned.Store(0)
	r.api.stalled.Store(0)
	r.signal(syscall.SIGCONT)
}

func (r *chaosReplica) end() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.signal(syscall.SIGKILL)
	r.done.Wait()
}

// noReplica leads if no replica has renewed the Lease since the latest leader was struck.
const noReplica = -1

// strike does something to a replica: mostly to the leader, when it has written a few
// times.
func (c *chaos) strike(a act) {
	part := time.Duration(a.pick/8%1000) * time.Millisecond
	r := c.replicas[a.pick/4%2]
	if a.pick%4 != 0 {
		for c.leader.Load() == noReplica && c.calm.Err() == nil {
			c.pause(20 * time.Millisecond)
		}
		r = c.replicas[max(0, c.leader.Load())]
		end := r.api.writes.Load() + a.pick/8%24
		for late := time.Now().Add(chaosLease); r.api.writes.Load() < end && time.Now().Before(late); {
			c.pause(5 * time.Millisecond)
		}
	}
	if c.calm.Err() != nil {
		return
	}
	name := fmt.Sprintf("replica %d: %s", r.number, a.verb)
	switch a.verb {
	case "kill":
		c.journal.add("", "%s", name)
		r.signal(syscall.SIGKILL)
	case "term":
		c.journal.add("", "%s", name)
		r.signal(syscall.SIGTERM)
	case "pause": // a process that decides to create something, or just has
		duration := chaosLease + part*3
		if a.pick%8 > 4 { // longer than any request
			duration += 2 * time.Minute / c.scale
		}
		trap := func(r *chaosReplica) {
			c.journal.add("", "replica %d: pause for %v", r.number, duration)
			r.signal(syscall.SIGSTOP)
			c.leader.CompareAndSwap(int64(r.number), noReplica)
			time.AfterFunc(duration, func() {
				c.journal.add("", "replica %d continues", r.number)
				r.signal(syscall.SIGCONT)
			})
		}
		c.trap.Store(&trap)
	case "partition":
		c.journal.add("", "%s for %v", name, 2*part)
		r.api.partitioned.Store(time.Now().Add(2 * part).UnixNano())
		r.api.server.CloseClientConnections()
	case "stall":
		c.journal.add("", "%s for %v", name, 3*part)
		r.api.stalled.Store(time.Now().Add(3 * part).UnixNano())
	case "set-clock":
		by := []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2}[a.pick/8%2]
		c.journal.add("", "%s by an hour (%v)", name, by)
		r.signal(by)
	case "cut":
		c.journal.add("", "%s", name)
		r.api.server.CloseClientConnections()
	}
}

// springTrap pauses a replica if a pause is due. Requests to Neutron do not tell from
// which replica they are: -1 is the leader.
func (c *chaos) springTrap(number int64) {
	if number < 0 {
		number = max(0, c.leader.Load())
	}
	if trap := c.trap.Swap(nil); trap != nil {
		(*trap)(c.replicas[number])
	}
}

// third runs a third replica in the second half.
func (c *chaos) third() {
	c.pause(c.length / 2)
	c.replicas[2].begin()
	c.pause(c.length)
	c.replicas[2].carryOn()
	c.replicas[2].end()
}

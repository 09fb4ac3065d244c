package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/samplecrd/network-controller/test/internal/process"
)

// replica is a controller that is started again when its process ends.
type replica struct {
	c      *round
	number int
	api    *apiFront
	dir    string // with the log of all its processes
	done   sync.WaitGroup

	mu      sync.Mutex
	process *process.Process // the latest one
	ended   bool
}

func newReplica(c *round, number int) *replica {
	r := &replica{c: c, number: number, api: newAPIFront(c, number), dir: c.TempDir()}
	c.Cleanup(r.end)
	return r
}

// begin runs processes, one after the other, until the end of the replica.
func (r *replica) begin() {
	r.done.Go(func() {
		for r.live() {
		}
	})
}

// live runs one process. It reports whether another one follows.
func (r *replica) live() bool {
	c := r.c
	p := r.start()
	if p == nil {
		return false
	}
	c.journal.add("", "replica %d starts", r.number)
	<-p.Done()
	c.leader.CompareAndSwap(int64(r.number), noReplica)
	end := p.Check().Error()
	c.journal.add("", "replica %d ended: %.100s", r.number, end)
	if strings.Contains(end, "exit status 2") {
		log := r.log()
		c.Errorf("the process panicked, or its flags are wrong:\n%s", log[max(0, len(log)-4000):])
		return false
	}
	return true
}

// start starts a process. After the replica's end, it returns nil.
func (r *replica) start() *process.Process {
	c := r.c
	args := []string{
		builtProgram,
		"-master=" + r.api.server.URL, "-cluster-name=" + c.namespace, "-neutron-endpoint=" + c.neutron.url,
		"-leader-elect", "-leader-elect-resource-namespace=" + c.namespace,
		"-leader-elect-lease-duration=" + leaseDuration.String(),
		"-leader-elect-renew-deadline=1500ms", "-leader-elect-retry-period=300ms",
		"-neutron-timeout=" + c.timeout.String(), "-resync-period=1s", "-shutdown-timeout=1s",
		"-workers=8", "-allow-adoption", "-v=4",
	}
	if c.deletesOrphans() {
		grace := fmt.Sprint("-orphan-grace-period=", orphanGrace/c.scale)
		args = append(args, "-delete-orphans", "-max-orphan-deletions=0", grace)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	env := []string{fmt.Sprintf("CHAOS_SCALE=%d", c.scale)}
	p, err := process.Start(r.dir, process.Program{Name: "controller", Args: args, Env: env})
	if err != nil {
		c.Errorf("starting a process: %v", err)
		return nil
	}
	r.process = p
	return p
}

func (r *replica) log() string {
	text, _ := os.ReadFile(filepath.Join(r.dir, "controller.log")) // none if it never ran
	return string(text)
}

func (r *replica) signal(signal syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process != nil && !r.process.Ended() {
		_ = syscall.Kill(r.process.PID(), signal) // it may have ended
	}
}

// carryOn ends what keeps a process from its work.
func (r *replica) carryOn() {
	r.api.partitioned.Store(0)
	r.api.stalled.Store(0)
	r.signal(syscall.SIGCONT)
}

func (r *replica) end() {
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
func (c *round) strike(a act) {
	part := time.Duration(a.pick/8%1000) * time.Millisecond
	r := c.replicas[a.pick/4%2]
	if a.pick%4 != 0 {
		for c.leader.Load() == noReplica && c.calm.Err() == nil {
			c.pause(20 * time.Millisecond)
		}
		r = c.replicas[max(0, c.leader.Load())]
		end := r.api.writes.Load() + a.pick/8%24
		for late := time.Now().Add(leaseDuration); r.api.writes.Load() < end && time.Now().Before(late); {
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
		duration := leaseDuration + part*3
		if a.pick%8 > 4 { // longer than any request
			duration += 2 * time.Minute / c.scale
		}
		trap := func(r *replica) {
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
func (c *round) springTrap(number int64) {
	if number < 0 {
		number = max(0, c.leader.Load())
	}
	if trap := c.trap.Swap(nil); trap != nil {
		(*trap)(c.replicas[number])
	}
}

// third runs a third replica in the second half.
func (c *round) third() {
	c.pause(c.length / 2)
	c.replicas[2].begin()
	c.pause(c.length)
	c.replicas[2].carryOn()
	c.replicas[2].end()
}

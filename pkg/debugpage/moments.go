package debugpage

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/pkg/watchdog"
)

// moments are the last moments of some keys. A reader that is too slow misses some.
type moments struct {
	readers atomic.Int32 // without one, nothing is recorded

	mu       sync.Mutex
	ring     [1024]Moment
	count    int // of all that were in the ring
	followed map[cache.ObjectName]int

	// Under load, only every nth key is sampled, so that its path is complete.
	second  time.Time
	offered int // in this second
	nth     uint64
}

// momentsPerSecond is about how many moments are recorded.
const momentsPerSecond = 250

var seed = maphash.MakeSeed()

// add records a moment, unless no stream is open or there are too many.
func (m *moments) add(now time.Time, stage Stage, key cache.ObjectName, text string, worker int, failed bool) {
	if m.readers.Load() == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.second) >= time.Second {
		m.second, m.nth, m.offered = now, uint64(m.offered/momentsPerSecond+1), 0
	}
	m.offered++
	if m.followed[key] == 0 {
		nth := max(m.nth, uint64(m.offered/momentsPerSecond+1)) // a burst raises it at once
		if nth > 1 && maphash.Comparable(seed, key)%nth != 0 {
			return
		}
	}
	m.ring[m.count%len(m.ring)] = Moment{Time: now, Stage: stage, Key: key.String(), Text: text, Worker: worker, Failed: failed}
	m.count++
}

// since returns the moments after the first n, as far as they are in the ring, and the
// number of all.
func (m *moments) since(n int) (some []Moment, count int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := max(n, m.count-len(m.ring)); i < m.count; i++ {
		some = append(some, m.ring[i%len(m.ring)])
	}
	return some, m.count
}

// read begins to record moments, and all of a key, if it is not empty. The function
// that it returns ends that.
func (m *moments) read(key cache.ObjectName) (begin int, end func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.followed == nil {
		m.followed = map[cache.ObjectName]int{}
	}
	m.readers.Add(1)
	m.followed[key]++
	return m.count, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.readers.Add(-1)
		if m.followed[key]--; m.followed[key] == 0 {
			delete(m.followed, key)
		}
	}
}

// slowMotion holds each stage of a sync.
type slowMotion struct {
	mu      sync.Mutex
	pause   time.Duration
	changed chan struct{} // closed when the pause changes
}

// maxSlow is the longest time that a stage can be held.
const maxSlow = 5 * time.Second

func (s *slowMotion) get() (pause time.Duration, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pause, s.changed
}

func (s *slowMotion) set(pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed) // ends what is being held
	s.pause, s.changed = min(max(pause, 0), maxSlow), make(chan struct{})
}

// hold holds a worker in slow motion, until that is changed or the process stops.
func (r *Recorder) hold(ctx context.Context) {
	pause, changed := r.slow.get()
	if pause == 0 {
		return
	}
	timer := r.clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-changed:
	case <-r.stopped:
	case <-ctx.Done():
	}
	watchdog.Progress(ctx)
}

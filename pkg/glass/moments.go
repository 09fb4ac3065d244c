package glass

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/cache"
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
	offered uint64 // in this second
	nth     uint64
}

// momentsPerSecond is about how many moments are recorded.
const momentsPerSecond = 250

var seed = maphash.MakeSeed()

// add records a moment of a key, unless no stream reads it or there are too many.
func (m *moments) add(moment Moment, key cache.ObjectName) {
	if m.readers.Load() == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if moment.Time.Sub(m.second) >= time.Second {
		m.second, m.nth, m.offered = moment.Time, m.offered/momentsPerSecond+1, 0
	}
	m.offered++
	nth := max(m.nth, m.offered/momentsPerSecond+1) // a burst raises it at once
	if m.followed[key] == 0 && maphash.Comparable(seed, key)%nth != 0 {
		return
	}
	moment.Key = nameOf(key)
	m.ring[m.count%len(m.ring)] = moment
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

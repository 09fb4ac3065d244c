package budget

import "time"

const (
	// firstLimit is the limit before anything is known.
	firstLimit = 4
	// tolerance is how many times longer than on an idle Neutron requests may take,
	// in addition to slack. If they take longer, further requests only wait.
	tolerance = 2
	// slack is the delay that is never a sign of load: a busy host of the controller
	// causes as much.
	slack = 20 * time.Millisecond
	// minSamples is the smallest number of responses that change the limit.
	minSamples = 4
	// A probe measures how long requests take if there are few of them. It uses a
	// quarter of the limit, after firstProbe, and from then on every probePeriod. Then
	// probes take at most a fiftieth of the time. If requests stay slow after a decrease,
	// the next probe does not wait for that: Neutron itself may have become slower.
	firstProbe  = 5 * time.Second
	probePeriod = 30 * time.Second
	probeShare  = 50
	maxProbe    = 5 * time.Second // a request may get no response
)

// limit is the number of requests that Neutron may get at a time: additive increase,
// multiplicative decrease. It judges a number of responses together, each compared
// with the duration of its kind on an idle Neutron.
type limit struct {
	value, max float64
	// epoch counts decreases and probes. Responses to requests of an earlier epoch say
	// nothing about the value.
	epoch int
	// isStarting is true until the first decrease: the value doubles.
	isStarting bool
	idle       map[string]time.Duration // how long requests of a kind take if there are few

	// Since the value was last considered: the responses by kind, and the most requests
	// at a time.
	samples map[string]sample
	count   int
	peak    int

	wasSlow   bool // when the value was last considered
	probing   bool
	restore   float64   // the value after the probe
	probed    time.Time // when the probe began
	nextProbe time.Time
}

type sample struct {
	count int
	total time.Duration
}

func (s sample) mean() time.Duration { return s.total / time.Duration(s.count) }

func newLimit(most int) limit {
	return limit{value: min(firstLimit, float64(most)), max: float64(most), isStarting: true, idle: map[string]time.Duration{}, samples: map[string]sample{}}
}

// places returns the limit as a number of requests.
func (l *limit) places() int { return int(l.value) }

func (l *limit) noteInFlight(inFlight int) { l.peak = max(l.peak, inFlight) }

// grow sets a larger value. What is in flight remains comparable.
func (l *limit) grow(value float64) {
	l.value = min(value, l.max)
	l.begin()
}

// change sets another value and begins an epoch.
func (l *limit) change(value float64) {
	l.value = max(value, 1)
	l.epoch++
	l.begin()
}

// begin forgets the responses.
func (l *limit) begin() {
	l.count, l.peak = 0, 0
	clear(l.samples)
}

// shrink decreases the limit by a factor.
func (l *limit) shrink(factor float64, now time.Time) {
	l.endProbe(now)
	l.isStarting = false
	l.change(l.value * factor)
}

// endProbe ends a probe, if there is one.
func (l *limit) endProbe(now time.Time) {
	if l.probing {
		l.probing = false
		l.nextProbe = now.Add(max(probePeriod, probeShare*now.Sub(l.probed)))
		l.change(l.restore)
	}
}

// note records the duration of a request, and changes the limit if there are enough.
// It reports whether a probe begins.
func (l *limit) note(kind string, took time.Duration, now time.Time) (probe bool) {
	if l.nextProbe.IsZero() {
		l.nextProbe = now.Add(firstProbe)
	}
	of := l.samples[kind]
	l.samples[kind] = sample{of.count + 1, of.total + took}
	if l.count++; l.count < max(minSamples, l.places()) {
		return false
	}
	actual, allowed := l.compare()
	isFull := l.peak >= l.places()
	switch {
	case l.probing:
		l.endProbe(now)
	case l.value > 1 && now.After(l.nextProbe) && isFull, l.value > 1 && now.After(l.probed.Add(firstProbe)) && actual > allowed && l.wasSlow:
		l.probing, l.probed, l.restore, l.wasSlow = true, now, l.value, false
		l.change(l.value / 4)
		return true
	case actual > allowed:
		l.wasSlow = true
		l.shrink(max(0.5, float64(allowed)/float64(actual)), now)
		return false
	case isFull && l.isStarting:
		l.grow(l.value * 2)
	case isFull && l.value < l.max:
		l.grow(l.value + 1)
	default:
		l.begin()
	}
	l.wasSlow = false
	return false
}

// compare updates the durations on an idle Neutron. It returns how long the requests
// took, and how long they may take.
func (l *limit) compare() (actual, allowed time.Duration) {
	for kind, of := range l.samples {
		idle, known := l.idle[kind]
		isAlone := (l.probing || l.peak == 1) && of.count > 1 // Neutron itself may have become slower
		if !known || isAlone || of.count >= minSamples && of.mean() < idle {
			idle = of.mean()
			l.idle[kind] = idle
		}
		actual += of.total
		allowed += time.Duration(of.count) * (tolerance*idle + slack)
	}
	return actual, allowed
}

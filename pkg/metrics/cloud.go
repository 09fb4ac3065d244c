package metrics

import (
	"slices"
	"sync"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Cloud are the metrics of one cloud. The gauges show the sum of all clouds, and of the
// times and quotas that of the cloud that is worst. Without a cloud, the times go on.
type Cloud struct {
	identity                                     string
	orphans, paused, retained, networks, subnets int
	took, pause                                  time.Duration
	listedAt                                     int64
	isNone, isClosed                             bool // there is nothing to list; the last list may still end
	quotas                                       map[string]neutron.Quota
}

var clouds = struct {
	sync.Mutex
	all map[*Cloud]bool
}{all: map[*Cloud]bool{}}

// SetOrphans sets the number of orphans, and of retained networks.
func (c *Cloud) SetOrphans(orphans, retained int) {
	c.set(func() { c.orphans, c.retained = orphans, retained })
}

// SetPaused sets the number of orphans if it is too large to delete them.
func (c *Cloud) SetPaused(paused int) { c.set(func() { c.paused = paused }) }

// ObserveListing records a refresh of the cache of Neutron's state, and the pause
// until the next one.
func (c *Cloud) ObserveListing(listing neutron.Listing, pause time.Duration, err error) {
	c.set(func() {
		c.took, c.pause = listing.Took, pause
		if err != nil {
			cacheRefreshes.WithLabelValues("failure").Inc()
			return
		}
		cacheRefreshes.WithLabelValues("success").Inc()
		c.identity, c.networks, c.subnets, c.listedAt = listing.Cloud, listing.Networks, listing.Subnets, time.Now().Unix()
		c.quotas = listing.Quotas
	})
}

// SetNone records that there is no cloud, and the pause until it is looked for again.
func (c *Cloud) SetNone(pause time.Duration) {
	c.set(func() { *c = Cloud{isNone: true, pause: pause, listedAt: time.Now().Unix()} })
}

// Close removes the cloud from the metrics.
func (c *Cloud) Close() {
	clouds.Lock()
	defer clouds.Unlock()
	c.isClosed = true
	delete(clouds.all, c)
	publish()
}

func (c *Cloud) set(change func()) {
	clouds.Lock()
	defer clouds.Unlock()
	if c.isClosed {
		return
	}
	clouds.all[c] = true
	change()
	publish()
}

// publish sets the gauges. The caller holds the lock.
func publish() {
	total, oldest := Cloud{quotas: map[string]neutron.Quota{}}, []int64{}
	var none *Cloud
	for _, gauge := range []*metrics.GaugeVec{neutronInfo, quotaLimit, quotaUsed} {
		gauge.Reset() // after another login, it may be another project
	}
	for c := range clouds.all {
		if c.isNone {
			none = c
			continue
		}
		total.orphans, total.paused = total.orphans+c.orphans, total.paused+c.paused
		total.retained += c.retained
		total.networks, total.subnets = total.networks+c.networks, total.subnets+c.subnets
		total.took, total.pause = max(total.took, c.took), max(total.pause, c.pause)
		oldest = append(oldest, c.listedAt)
		for kind, quota := range c.quotas {
			if fullest, ok := total.quotas[kind]; !ok || isFuller(quota, fullest) {
				total.quotas[kind] = quota
			}
		}
		if c.identity != "" {
			neutronInfo.WithLabelValues(c.identity).Set(1)
		}
	}
	switch {
	case len(oldest) > 0:
		total.listedAt = slices.Min(oldest)
	case none != nil: // this replica is ready, and its cache of nothing is not stale
		total.pause, total.listedAt = none.pause, none.listedAt
	}
	for kind, quota := range total.quotas {
		quotaLimit.WithLabelValues(kind).Set(float64(quota.Limit))
		quotaUsed.WithLabelValues(kind).Set(float64(quota.Used))
	}
	orphans.Set(float64(total.orphans))
	orphanDeletionsPaused.Set(float64(total.paused))
	retained.Set(float64(total.retained))
	cacheObjects.WithLabelValues("network").Set(float64(total.networks))
	cacheObjects.WithLabelValues("subnet").Set(float64(total.subnets))
	cacheDuration.Set(total.took.Seconds())
	cachePeriod.Set(total.pause.Seconds())
	cacheTime.Set(float64(total.listedAt))
}

// isFuller reports whether a smaller part of a quota is left than of another one. A negative
// limit means that there is none.
func isFuller(a, b neutron.Quota) bool {
	return a.Limit >= 0 && (b.Limit < 0 || a.Used*b.Limit > b.Used*a.Limit)
}

// Package drift finds what changes in Neutron. Kubernetes notifies its informers
// of changes; Neutron sends no notifications. So Neutron's state is listed periodically
// into a cache and compared in memory with the Networks. The keys of those that
// differ, and of orphans, go into the work queue like those of any other change.
package drift

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/metrics"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/observe"
	"github.com/samplecrd/network-controller/pkg/store"
)

// Options configure a Detector.
type Options struct {
	// Cluster identifies this Kubernetes cluster in owner markers.
	Cluster string
	// ResyncPeriod is the longest pause between two lists, if a list takes at most a
	// tenth of it.
	ResyncPeriod time.Duration
	// StartTimeout is how long Start waits for the first list.
	StartTimeout time.Duration
	// OrphanGracePeriod is how long a network must have been an orphan before it is
	// deleted; 0 means never.
	OrphanGracePeriod time.Duration
	// MaxOrphanDeletions is the largest number of orphans that are deleted. If there are
	// more, none is deleted; 0 means no limit.
	MaxOrphanDeletions int
}

// Reconciler is what a Detector needs of package reconcile.
type Reconciler interface {
	// StartedAt returns when this replica started leading, or the zero Time.
	StartedAt() time.Time
	// Drift reports whether a Network needs a sync according to the cache of
	// Neutron's state, and whether that is because Neutron has changed.
	Drift(network *samplecrdv1.Network) (needsSync, drifted bool)
	// Listed is called after each complete list, with the time at which it began. It
	// returns the keys of objects that do not exist and that left something there.
	Listed(began time.Time) (leftovers []cache.ObjectName)
	// HasLeftover reports whether Neutron has a network of a key whose object does not
	// exist, and that the controller itself left there.
	HasLeftover(key cache.ObjectName) bool
	// DeleteOrphan requests that the next sync deletes the networks of a key whose
	// object does not exist.
	DeleteOrphan(key cache.ObjectName)
}

// Detector compares Neutron's state with the Networks, repeatedly.
type Detector struct {
	neutron    *neutron.Cache
	networks   *store.Networks
	reconciler Reconciler
	events     record.EventRecorder
	observer   observe.Observer
	clock      clock.WithTicker
	options    Options
	metrics    metrics.Cloud

	stop    func() // the background work
	enqueue func(cache.ObjectName)
	// orphans are those of the last comparison: since when each network is one, by
	// the key of its object.
	orphans map[cache.ObjectName]map[string]time.Time
	// paused is how many networks the last comparison did not delete, because they
	// were too many.
	paused int
}

// Dependencies are what a Detector works with. The observer sees its lists.
type Dependencies struct {
	Neutron    *neutron.Cache
	Networks   *store.Networks
	Reconciler Reconciler
	Events     record.EventRecorder
	Observer   observe.Observer
	Clock      clock.WithTicker
}

// New returns a Detector.
func New(d Dependencies, options Options) *Detector {
	return &Detector{
		neutron: d.Neutron, networks: d.Networks, reconciler: d.Reconciler, events: d.Events, observer: d.Observer,
		clock: d.Clock, options: options, stop: func() {},
	}
}

// Start lists Neutron's state in the background, at once, then periodically, and when the
// cache requests it, until the context ends. It waits for the first list, but not longer
// than StartTimeout: without the list, each Network costs requests, but none has to wait.
// When this replica leads, each list enqueues the keys of the Networks that need a
// sync.
func (d *Detector) Start(ctx context.Context, enqueue func(cache.ObjectName)) {
	ctx, cancel := context.WithCancel(ctx)
	listed, ended := make(chan struct{}), make(chan struct{})
	d.enqueue, d.stop = enqueue, func() {
		cancel()
		d.wait(context.Background(), ended, stopTimeout)
	}
	go func() {
		defer close(ended)
		pause, err := d.resync(ctx)
		timer := d.clock.NewTimer(pause)
		defer timer.Stop()
		close(listed)
		for {
			requests := d.neutron.RefreshRequests()
			if err != nil {
				requests = nil // a Neutron that fails gets its pause
			}
			select {
			case <-ctx.Done():
				return
			case <-requests:
			case <-timer.C():
			}
			pause, err = d.resync(ctx)
			timer.Reset(pause)
		}
	}()
	if !d.wait(ctx, listed, d.options.StartTimeout) && ctx.Err() == nil {
		klog.FromContext(ctx).Info("Listing Neutron's state takes long; starting without it",
			"waited", d.options.StartTimeout)
	}
}

// stopTimeout is how long Stop waits for a list that it has canceled.
const stopTimeout = 5 * time.Second

// Stop ends the background work.
func (d *Detector) Stop() {
	d.stop()
	d.metrics.Close()
}

// wait waits until a channel is closed, but not longer than a timeout. It reports
// whether the channel was closed.
func (d *Detector) wait(ctx context.Context, closed <-chan struct{}, timeout time.Duration) bool {
	timer := d.clock.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-closed:
		return true
	case <-ctx.Done():
	case <-timer.C():
	}
	return false
}

// resync lists Neutron's state and compares it with the Networks. It returns the
// pause until the next list.
func (d *Detector) resync(ctx context.Context) (pause time.Duration, err error) {
	logger := klog.FromContext(ctx)
	ctx, end := d.observer.Begin(ctx, observe.Work{Kind: observe.Task, Name: "the list of Neutron's state"})
	defer end(observe.Result{})
	listing, err := d.neutron.Refresh(ctx)
	pause = pauseAfter(listing.Took, d.options.ResyncPeriod, err)
	if isWithoutCloud(err) {
		d.metrics.SetNone(pause)
	} else {
		d.metrics.ObserveListing(listing, pause, err)
	}
	if err != nil {
		if ctx.Err() == nil && !isWithoutCloud(err) {
			logger.Error(err, "Refreshing the cache of Neutron's state failed; drift is not detected until it succeeds",
				"retryAfter", pause.Round(time.Second))
		}
		return pause, err
	}
	logger.V(2).Info("Refreshed the cache of Neutron's state",
		"networks", listing.Networks, "subnets", listing.Subnets, "duration", listing.Took,
		"nextRefresh", pause.Round(time.Second))
	// A list that began before this replica started leading may lack what the
	// former leader did last.
	if started := d.reconciler.StartedAt(); !started.IsZero() && listing.Began.After(started) {
		for _, key := range d.reconciler.Listed(listing.Began) {
			d.enqueue(key) // the create request was late, say
		}
		d.enqueueDrifted()
		d.enqueueOrphans(logger)
	}
	return pause, nil
}

// isWithoutCloud reports whether there is nothing to list.
func isWithoutCloud(err error) bool {
	return errors.Is(err, neutron.ErrNoCloud)
}

// maxRetryAfter bounds how long a server can stop the lists with Retry-After.
const maxRetryAfter = 5 * time.Minute

// pauseAfter returns the pause after a list that took so long, and that may have failed:
// lists take at most a tenth of Neutron's time. Pauses are spread, so that several
// controllers do not list at once.
func pauseAfter(took, period time.Duration, err error) time.Duration {
	pause := wait.Jitter(period*3/4, 1.0/3)
	var failure *neutron.Error
	if errors.As(err, &failure) {
		pause = max(pause, min(failure.RetryAfter, maxRetryAfter))
		switch {
		case isWithoutCloud(err):
			return maxRetryAfter // nothing ever comes of it
		case failure.Type == neutron.NotSent:
			return pause // the list waited for other requests
		}
	}
	return max(pause, 9*took)
}

func (d *Detector) enqueueDrifted() {
	for _, listed := range d.networks.List() {
		key := cache.MetaObjectToName(listed)
		network, err := d.networks.Get(key) // the last write may be newer
		if err != nil || network == nil {
			continue
		}
		needsSync, drifted := d.reconciler.Drift(network)
		if drifted {
			metrics.DriftDetected.Inc()
		}
		if needsSync {
			d.enqueue(key)
		}
	}
}

// enqueueOrphans enqueues the orphans to delete, unless there are too many.
func (d *Detector) enqueueOrphans(logger klog.Logger) {
	now := d.clock.Now()
	count := d.findOrphans(logger, now)
	due := dueOrphans(d.orphans, d.options.OrphanGracePeriod, now)
	if d.areTooMany(logger, due, count) {
		return
	}
	for _, key := range due {
		d.reconciler.DeleteOrphan(key)
		d.enqueue(key)
	}
}

// findOrphans looks for orphans: networks in Neutron with an owner marker of this
// cluster whose Network does not exist. A user removed the finalizer, say, or
// restored a backup of the cluster that is older than they are. It returns their number.
func (d *Detector) findOrphans(logger klog.Logger, now time.Time) (count int) {
	usage, _ := d.neutron.Usage(d.options.Cluster, metav1.NamespaceAll)
	before := d.orphans
	d.orphans = map[cache.ObjectName]map[string]time.Time{}
	for owner, ids := range usage.Owned {
		key := cache.NewObjectName(owner.Namespace, owner.Name)
		if !d.networks.IsComplete(key.Namespace) {
			continue // the Network may exist
		}
		if network, err := d.networks.Get(key); err != nil || network != nil {
			continue
		}
		if d.reconciler.HasLeftover(key) {
			continue
		}
		d.orphans[key] = map[string]time.Time{}
		for _, id := range ids {
			since, known := before[key][id]
			if !known {
				since = now
				logger.Info("Found an orphan: a Neutron network with an owner marker of this cluster but without a Network object",
					"network", key, "networkID", id, "deletedAfter", d.fate())
			}
			d.orphans[key][id] = since
		}
		count += len(ids)
	}
	retained := 0
	for _, ids := range usage.Retained {
		retained += len(ids)
	}
	d.metrics.SetOrphans(count, retained)
	return count
}

// dueOrphans returns the sorted keys of the orphans to delete: those whose networks have
// all been orphans for the grace period. Without a grace period, there are none.
func dueOrphans(
	orphans map[cache.ObjectName]map[string]time.Time, grace time.Duration, now time.Time,
) (due []cache.ObjectName) {
	for key, networks := range orphans {
		isYoung := func(since time.Time) bool { return now.Sub(since) < grace }
		if grace > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(networks)), isYoung) {
			due = append(due, key)
		}
	}
	slices.SortFunc(due, func(a, b cache.ObjectName) int { return strings.Compare(a.String(), b.String()) })
	return due
}

// areTooMany reports whether there are so many orphans that somebody has to confirm
// their deletion: after the restoration of an old backup, all networks created since are
// orphans. Those that are not due yet count, because not all are found at once. The log and
// an event report it when the first is due, and whenever the number changes.
func (d *Detector) areTooMany(logger klog.Logger, due []cache.ObjectName, count int) bool {
	before, limit := d.paused, d.options.MaxOrphanDeletions
	d.paused = 0
	if len(due) > 0 && limit > 0 && count > limit {
		d.paused = count
	}
	d.metrics.SetPaused(d.paused)
	if d.paused == 0 || d.paused == before {
		return d.paused > 0
	}
	err := fmt.Errorf("there are %d orphaned Neutron networks, and -max-orphan-deletions=%d allows fewer: "+
		"none of them is deleted. Check whether an old backup of the cluster was restored. "+
		"To have the networks deleted, run the controller with -max-orphan-deletions=%d", count, limit, count)
	logger.Error(err, "The deletion of orphans is paused", "first", due[0])
	first := &samplecrdv1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: due[0].Namespace, Name: due[0].Name}}
	d.events.Eventf(first, corev1.EventTypeWarning, "OrphanDeletionsPaused", "%v.", err)
	return true
}

func (d *Detector) fate() string {
	if d.options.OrphanGracePeriod == 0 {
		return "never (-delete-orphans is not set)"
	}
	return d.options.OrphanGracePeriod.String()
}

// Package metrics contains the controller's own metrics, in the registry of
// client-go's metrics. Their names begin with samplecrd_. Durations are in seconds.
// Every label has a bounded number of values.
package metrics

import (
	"context"
	"net/http"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // of queues, requests to Kubernetes, leader election, informers
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/observe"
	"github.com/samplecrd/network-controller/pkg/status"
)

const subsystem = "samplecrd"

var (
	orphans = gauge("orphans", "Neutron networks that carry an owner marker of this cluster but have no Network object. "+
		"Only the leader counts them.")
	orphanDeletionsPaused = gauge("orphan_deletions_paused",
		"Orphaned Neutron networks that are not deleted because there are more than -max-orphan-deletions. "+
			"It is 0 if there are fewer, or if none is due for deletion. Only the leader counts them.")
	retained = gauge("retained_networks", "Neutron networks of this cluster that deletionPolicy Retain has kept after "+
		"the deletion of their Network. Only the leader counts them.")
	// DriftDetected counts Networks that Neutron no longer matches.
	DriftDetected = counter("drift_detected_total",
		"Networks for which a refresh of the cache of Neutron's state found a new difference from the spec.")
	// DriftRepaired counts steps that reverted a change in Neutron.
	DriftRepaired = counter("drift_repaired_total", "Changes in Neutron by others that the controller reverted.")

	skippedObjects = counters("neutron_skipped_objects_total",
		"Objects that lists of Neutron's state skipped, by kind (networks, subnets, ports). Their values are unusable, "+
			"such as a negative MTU, and they carry no owner marker. Each list counts them again.", "kind")

	readyDuration = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "network_ready_duration_seconds",
		Help: "Time from the creation of a Network until it was Ready for the first time. A Network that was already " +
			"provisioned when this replica became the leader is not counted.",
		Buckets: []float64{0.5, 1, 2, 5, 10, 30, 60, 300, 600, 3600},
	})
	neutronDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "neutron_request_duration_seconds",
		Help: "Duration of requests to Neutron and Keystone until the response headers arrived, by operation and HTTP " +
			"status code. The code is none if there was no response, and like 5xx if it is not a registered one.",
		Buckets: []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
	}, []string{"operation", "code"})

	cacheObjects = gauges("neutron_cache_objects",
		"Objects in the cache of Neutron's state after the last successful refresh, by kind (network, subnet).", "kind")
	cacheRefreshes = counters("neutron_cache_refreshes_total",
		"Refreshes of the cache of Neutron's state, by result (success, failure).", "result")
	cacheDuration = gauge("neutron_cache_refresh_duration_seconds",
		"Duration of the last refresh of the cache of Neutron's state.")
	cachePeriod = gauge("neutron_cache_period_seconds",
		"Current interval between two refreshes of the cache of Neutron's state. It exceeds -resync-period if a refresh "+
			"takes more than a tenth of it. It is 0 before the first refresh has ended.")
	cacheTime = gauge("neutron_cache_last_success_timestamp_seconds",
		"Time of the last successful refresh of the cache of Neutron's state, in seconds since the Unix epoch.")

	quotaLimit = gauges("neutron_quota_limit",
		"How many objects of a kind (network, subnet) the OpenStack project may have; negative without a limit. "+
			"It is read every 5 minutes, if the cloud permits that.", "kind")
	quotaUsed = gauges("neutron_quota_used",
		"How many objects of a kind (network, subnet) the OpenStack project has, also those of others.", "kind")

	neutronInfo = gauges("neutron_info",
		"Always 1. The label contains the identity of the Neutron that is in use: region and project ID after a login, "+
			"embedded for the embedded Neutron, noauth and the address otherwise. Before the first login, there is no series.",
		"cloud")
	buildInfo = gauges("build_info", "Always 1. The labels contain the version of the controller and of Go.",
		"version", "go_version")
)

func gauge(name, help string) *metrics.Gauge {
	return metrics.NewGauge(&metrics.GaugeOpts{Subsystem: subsystem, Name: name, Help: help})
}

func gauges(name, help string, labels ...string) *metrics.GaugeVec {
	return metrics.NewGaugeVec(&metrics.GaugeOpts{Subsystem: subsystem, Name: name, Help: help}, labels)
}

func counter(name, help string) *metrics.Counter {
	return metrics.NewCounter(&metrics.CounterOpts{Subsystem: subsystem, Name: name, Help: help})
}

func counters(name, help string, labels ...string) *metrics.CounterVec {
	return metrics.NewCounterVec(&metrics.CounterOpts{Subsystem: subsystem, Name: name, Help: help}, labels)
}

func init() {
	legacyregistry.MustRegister(orphans, orphanDeletionsPaused, retained, DriftDetected, DriftRepaired, skippedObjects,
		readyDuration, neutronDuration, quotaLimit, quotaUsed, cacheObjects, cacheRefreshes, cacheDuration, cachePeriod,
		cacheTime, neutronInfo, buildInfo)
	legacyregistry.CustomMustRegister(&scraped)
	for _, result := range []string{"success", "failure"} { // so that their rate is 0 and not unknown
		cacheRefreshes.WithLabelValues(result)
	}
	for _, kind := range []string{"networks", "subnets", "ports"} {
		skippedObjects.WithLabelValues(kind)
	}
}

// SetVersion sets the version of the program.
func SetVersion(version string) { buildInfo.WithLabelValues(version, runtime.Version()).Set(1) }

// ObserveReady records the time until a new Network was Ready.
func ObserveReady(took time.Duration) { readyDuration.Observe(took.Seconds()) }

// Observer measures the requests to Neutron and Keystone.
type Observer struct{ observe.Nothing }

// Neutron is the Server of requests that an Observer measures.
const Neutron = "Neutron"

func (o Observer) Begin(ctx context.Context, work observe.Work) (context.Context, func(observe.Result)) {
	if work.Kind != observe.Request || work.Server != Neutron {
		return o.Nothing.Begin(ctx, work)
	}
	begun := time.Now()
	return ctx, func(result observe.Result) { observeNeutron(work.Name, result.Code, time.Since(begun)) }
}

func observeNeutron(operation string, code int, took time.Duration) {
	text := strconv.Itoa(code)
	switch {
	case code == 0:
		text = "none"
	case http.StatusText(code) == "": // a server may invent hundreds
		text = text[:1] + "xx"
	}
	neutronDuration.WithLabelValues(operation, text).Observe(took.Seconds())
}

// CountSkipped counts the objects that a list of Neutron's state has skipped. The log has
// the reason only with -v=2: a controller lists every few minutes, for months.
func CountSkipped(ctx context.Context, kind string, count int, reason string) {
	skippedObjects.WithLabelValues(kind).Add(float64(count))
	klog.FromContext(ctx).V(2).Info("Skipped unusable objects of others in Neutron",
		"kind", kind, "count", count, "firstReason", reason)
}

// CountNetworks makes the metric samplecrd_networks count the Networks that list
// returns, whenever the metrics are scraped. Only the leader calls it.
func CountNetworks(list func() []*samplecrdv1.Network) { scraped.networks.Store(&list) }

// CountRequests makes the metrics show how many requests to Neutron are in flight and
// how many wait, whenever they are scraped.
func CountRequests(load func() (inFlight, waiting int)) { scraped.requests.Store(&load) }

// scraped counts when it is scraped, so that no counter has to be maintained.
var scraped collector

type collector struct {
	metrics.BaseStableCollector
	networks atomic.Pointer[func() []*samplecrdv1.Network]
	requests atomic.Pointer[func() (inFlight, waiting int)]
}

var (
	networksDesc = desc("networks",
		"Networks by status and reason of their condition Ready. Only the leader counts them. "+
			"A reason that the controller never sets counts as Other.", "ready", "reason")
	inFlightDesc = desc("neutron_requests_in_flight",
		"Requests to Neutron that are in flight, without logins. There are at most -neutron-max-requests.")
	waitingDesc = desc("neutron_requests_waiting",
		"Requests to Neutron that wait because -neutron-max-requests are in flight.")
)

func desc(name, help string, labels ...string) *metrics.Desc {
	return metrics.NewDesc(subsystem+"_"+name, help, labels, nil, metrics.ALPHA, "")
}

func (*collector) DescribeWithStability(descs chan<- *metrics.Desc) {
	for _, desc := range []*metrics.Desc{networksDesc, inFlightDesc, waitingDesc} {
		descs <- desc
	}
}

func (c *collector) CollectWithStability(values chan<- metrics.Metric) {
	if load := c.requests.Load(); load != nil {
		inFlight, waiting := (*load)()
		values <- metrics.NewLazyConstMetric(inFlightDesc, metrics.GaugeValue, float64(inFlight))
		values <- metrics.NewLazyConstMetric(waitingDesc, metrics.GaugeValue, float64(waiting))
	}
	list := c.networks.Load()
	if list == nil {
		return
	}
	type state struct{ ready, reason string }
	count := map[state]int{}
	for _, network := range (*list)() {
		in := state{string(metav1.ConditionUnknown), status.Pending}
		if ready := meta.FindStatusCondition(network.Status.Conditions, samplecrdv1.ConditionReady); ready != nil {
			in = state{string(ready.Status), status.KnownReason(ready.Reason)}
		}
		count[in]++
	}
	for in, n := range count {
		values <- metrics.NewLazyConstMetric(networksDesc, metrics.GaugeValue, float64(n), in.ready, in.reason)
	}
}

// Handler serves the metrics in the text format of Prometheus.
func Handler() http.Handler { return legacyregistry.Handler() }

// Package metrics has the controller's own metrics, in the registry that
// client-go's are in. Their names begin with samplecrd_; durations are in
// seconds. No label has values without bounds.
package metrics

import (
	"net/http"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // of queues, requests to Kubernetes, leader election, informers

	"github.com/samplecrd/network-controller/pkg/neutron"
)

const subsystem = "samplecrd"

var (
	// Orphans is how many networks are marked as this cluster's and have no
	// Network object.
	Orphans = gauge("orphans", "Networks in Neutron that are marked as this cluster's and have no Network object.")
	// DriftDetected counts the Networks that were in step with Neutron and were
	// found to be no longer, without a change of theirs.
	DriftDetected = counter("drift_detected_total", "Networks that Neutron was found to differ from at a list, and had not before.")
	// DriftRepaired counts the changes that put right what somebody else had
	// changed in Neutron.
	DriftRepaired = counter("drift_repaired_total", "Changes that put right what somebody else had changed in Neutron.")

	readyDuration = metrics.NewHistogram(&metrics.HistogramOpts{Subsystem: subsystem, Name: "network_ready_duration_seconds",
		Help: "Time from the creation of a Network until it was Ready for the first time.", Buckets: []float64{0.5, 1, 2, 5, 10, 30, 60, 300, 600, 3600}})
	neutronDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{Subsystem: subsystem, Name: "neutron_request_duration_seconds",
		Help:    "Requests to Neutron and Keystone, until their answer began, by operation and HTTP status code (none where no answer came).",
		Buckets: []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}}, []string{"operation", "code"})

	mirrorObjects = metrics.NewGaugeVec(&metrics.GaugeOpts{Subsystem: subsystem, Name: "mirror_objects",
		Help: "What Neutron had when it was last listed, by kind (network, subnet)."}, []string{"kind"})
	mirrorRefreshes = metrics.NewCounterVec(&metrics.CounterOpts{Subsystem: subsystem, Name: "mirror_refreshes_total",
		Help: "Lists of all that Neutron has, by result (success, failure)."}, []string{"result"})
	mirrorDuration = gauge("mirror_refresh_duration_seconds", "How long the last list of all that Neutron has took.")
	mirrorPeriod   = gauge("mirror_period_seconds", "The present pause between two lists of all that Neutron has. It grows beyond -resync-period where a list takes more than a tenth of that.")
	mirrorTime     = gauge("mirror_last_success_timestamp_seconds", "When Neutron was last listed whole, in seconds since 1970.")

	buildInfo = metrics.NewGaugeVec(&metrics.GaugeOpts{Subsystem: subsystem, Name: "build_info",
		Help: "Always 1: the version of this program and of Go."}, []string{"version", "go_version"})
)

func gauge(name, help string) *metrics.Gauge {
	return metrics.NewGauge(&metrics.GaugeOpts{Subsystem: subsystem, Name: name, Help: help})
}

func counter(name, help string) *metrics.Counter {
	return metrics.NewCounter(&metrics.CounterOpts{Subsystem: subsystem, Name: name, Help: help})
}

func init() {
	legacyregistry.MustRegister(Orphans, DriftDetected, DriftRepaired, readyDuration, neutronDuration,
		mirrorObjects, mirrorRefreshes, mirrorDuration, mirrorPeriod, mirrorTime, buildInfo)
	legacyregistry.CustomMustRegister(&networks)
	for _, result := range []string{"success", "failure"} { // so that their rate is 0 and not unknown
		mirrorRefreshes.WithLabelValues(result)
	}
}

// SetVersion says which version of the program serves the metrics.
func SetVersion(version string) { buildInfo.WithLabelValues(version, runtime.Version()).Set(1) }

// ObserveReady notes how long it took until a new Network was Ready.
func ObserveReady(took time.Duration) { readyDuration.Observe(took.Seconds()) }

// ObserveNeutron notes a request to Neutron or Keystone. The code is 0 where no
// answer came.
func ObserveNeutron(operation string, code int, took time.Duration) {
	text := "none"
	if code != 0 {
		text = strconv.Itoa(code)
	}
	neutronDuration.WithLabelValues(operation, text).Observe(took.Seconds())
}

// ObserveListing notes what a list of all that Neutron has came to, and after
// which pause the next one comes.
func ObserveListing(listing neutron.Listing, pause time.Duration, err error) {
	mirrorDuration.Set(listing.Took.Seconds())
	mirrorPeriod.Set(pause.Seconds())
	if err != nil {
		mirrorRefreshes.WithLabelValues("failure").Inc()
		return
	}
	mirrorRefreshes.WithLabelValues("success").Inc()
	mirrorObjects.WithLabelValues("network").Set(float64(listing.Networks))
	mirrorObjects.WithLabelValues("subnet").Set(float64(listing.Subnets))
	mirrorTime.Set(float64(time.Now().Unix()))
}

// State is what a Network's condition Ready says: its status and reason, of
// which there must be few.
type State struct{ Ready, Reason string }

// CountNetworks has the metric samplecrd_networks tell what count returns,
// whenever it is asked for.
func CountNetworks(count func() map[State]int) { networks.count.Store(&count) }

// networks counts when it is asked, so that it needs no bookkeeping.
var networks networkCollector

type networkCollector struct {
	metrics.BaseStableCollector
	count atomic.Pointer[func() map[State]int]
}

var networksDesc = metrics.NewDesc(subsystem+"_networks", "Networks by status and reason of their condition Ready. Only the process that has the lead counts them.",
	[]string{"ready", "reason"}, nil, metrics.ALPHA, "")

// DescribeWithStability implements metrics.StableCollector.
func (*networkCollector) DescribeWithStability(descs chan<- *metrics.Desc) { descs <- networksDesc }

// CollectWithStability implements metrics.StableCollector.
func (c *networkCollector) CollectWithStability(values chan<- metrics.Metric) {
	count := c.count.Load()
	if count == nil {
		return
	}
	for state, n := range (*count)() {
		values <- metrics.NewLazyConstMetric(networksDesc, metrics.GaugeValue, float64(n), state.Ready, state.Reason)
	}
}

// Handler serves the metrics in the text format of Prometheus.
func Handler() http.Handler { return legacyregistry.Handler() }

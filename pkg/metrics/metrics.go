// Package metrics has the controller's own metrics, in the registry that
// client-go's are in. Their names begin with samplecrd_; durations are in
// seconds.
package metrics

import (
	"net/http"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

const subsystem = "samplecrd"

var (
	// Orphans is how many networks are marked as this cluster's and have no
	// Network object.
	Orphans = gauge("orphans", "Networks in Neutron that are marked as this cluster's and have no Network object.")
	// DriftRepaired counts the changes that put right what somebody else had
	// changed in Neutron.
	DriftRepaired = metrics.NewCounter(&metrics.CounterOpts{Subsystem: subsystem, Name: "drift_repaired_total",
		Help: "Changes that put right what somebody else had changed in Neutron."})

	mirrorObjects = metrics.NewGaugeVec(&metrics.GaugeOpts{Subsystem: subsystem, Name: "mirror_objects",
		Help: "What Neutron had when it was last listed, by kind (network, subnet)."}, []string{"kind"})
	mirrorRefreshes = metrics.NewCounterVec(&metrics.CounterOpts{Subsystem: subsystem, Name: "mirror_refreshes_total",
		Help: "Lists of all that Neutron has, by result (success, failure)."}, []string{"result"})
	mirrorDuration = gauge("mirror_refresh_duration_seconds", "How long the last list of all that Neutron has took.")
	mirrorPeriod   = gauge("mirror_period_seconds", "The present pause between two lists of all that Neutron has. It grows beyond -resync-period where a list takes more than a tenth of that.")
	mirrorTime     = gauge("mirror_last_success_timestamp_seconds", "When Neutron was last listed whole, in seconds since 1970.")
)

func gauge(name, help string) *metrics.Gauge {
	return metrics.NewGauge(&metrics.GaugeOpts{Subsystem: subsystem, Name: name, Help: help})
}

func init() {
	legacyregistry.MustRegister(Orphans, DriftRepaired, mirrorObjects, mirrorRefreshes, mirrorDuration, mirrorPeriod, mirrorTime)
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

// Handler serves the metrics in the text format of Prometheus.
func Handler() http.Handler { return legacyregistry.Handler() }

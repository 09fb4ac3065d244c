package instrument

import (
	"context"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"k8s.io/klog/v2"

	"github.com/samplecrd/network-controller/pkg/metrics"
	"github.com/samplecrd/network-controller/pkg/neutron/budget"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
	"github.com/samplecrd/network-controller/pkg/tracing"
	"github.com/samplecrd/network-controller/pkg/watchdog"
)

// Neutron returns a transport that measures each request to Neutron or Keystone,
// traces it, and counts it as progress.
func Neutron(next http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(watchdog.Transport(measured{next}),
		otelhttp.WithFilter(func(*http.Request) bool { return tracing.Enabled() }),
		otelhttp.WithSpanNameFormatter(func(_ string, request *http.Request) string { return openstack.Operation(request) }))
}

type measured struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (m measured) RoundTrip(request *http.Request) (*http.Response, error) {
	begun := time.Now()
	response, err := m.next.RoundTrip(request)
	code := 0
	if err == nil {
		code = response.StatusCode
	}
	metrics.ObserveNeutron(openstack.Operation(request), code, time.Since(begun))
	return response, err
}

// Budget returns a limit for the number of requests to Neutron at a time. Its metrics
// show the limit.
func Budget(most int) *budget.Budget {
	return budget.New(budget.Options{Max: most, Describe: describe, Observe: metrics.ObserveBudget, Waited: metrics.ObserveWait, Now: time.Now})
}

// describe describes a request for a budget. Logins are not limited: all requests
// wait for them. The duration of a list of everything depends on how much there is.
func describe(request *http.Request) (operation, kind string, limited bool) {
	operation = openstack.Operation(request)
	if request.Method != http.MethodGet {
		return operation, operation, operation != "login"
	}
	query := request.URL.Query()
	for _, key := range []string{"id", "network_id", "description", "name"} {
		if query.Has(key) {
			return operation, operation + " by " + key, true
		}
	}
	return operation, "", true
}

// Skipped returns a function that counts the objects that a list of Neutron's state
// has skipped. It logs them if their number or the reason has changed since the last
// list of this kind: a controller lists every few minutes, for months.
func Skipped() func(ctx context.Context, kind string, count int, reason string) {
	type skipped struct {
		count  int
		reason string
	}
	var mu sync.Mutex
	last := map[string]skipped{} // by kind
	return func(ctx context.Context, kind string, count int, reason string) {
		metrics.SkippedObjects.WithLabelValues(kind).Add(float64(count))
		mu.Lock()
		defer mu.Unlock()
		if now := (skipped{count, reason}); last[kind] != now {
			last[kind] = now
			klog.FromContext(ctx).Info("Skipped unusable objects of others in Neutron", "kind", kind, "count", count, "firstReason", reason)
		}
	}
}

package instrument

import (
	"context"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"k8s.io/klog/v2"

	"github.com/samplecrd/network-controller/pkg/metrics"
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

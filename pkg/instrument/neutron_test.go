package instrument_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/samplecrd/network-controller/pkg/instrument"
	"github.com/samplecrd/network-controller/pkg/metrics"
)

// TestSkippedLog: objects that each list skips are logged once, until their number or
// the reason changes. Each list counts them.
func TestSkippedLog(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx := klog.NewContext(t.Context(), logger)
	log := logger.GetSink().(ktesting.Underlier).GetBuffer() //nolint:forcetypeassert // it is one
	skipped := instrument.Skipped()
	total := 0
	for _, step := range []struct {
		kind   string
		count  int
		reason string
		lines  int // in the log so far
	}{
		{"networks", 1, "mtu is -1", 1},
		{"networks", 1, "mtu is -1", 1},
		{"ports", 1, "mtu is -1", 2}, // of another kind
		{"networks", 1, "mtu is -1", 2},
		{"networks", 2, "mtu is -1", 3},
		{"networks", 2, "mtu is -2", 4},
		{"networks", 1, "mtu is -1", 5}, // as once before
		{"networks", 1, "mtu is -1", 5},
	} {
		skipped(ctx, step.kind, step.count, step.reason)
		if lines := strings.Count(log.String(), "Skipped unusable objects"); lines != step.lines {
			t.Errorf("after %+v, the log has %d lines:\n%s", step, lines, log.String())
		}
		if step.kind == "networks" {
			total += step.count
		}
	}
	scrape := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if want := fmt.Sprintf(`samplecrd_neutron_skipped_objects_total{kind="networks"} %d`, total); !strings.Contains(scrape.Body.String(), want+"\n") {
		t.Errorf("the metrics do not have the line %s", want)
	}
}

type answering struct{}

func (answering) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: request}, nil
}

// TestTracingOffIsCheap: without a collector, a request to Neutron takes a fraction of
// what a traced one takes, and it has a span as soon as there is a collector.
func TestTracingOffIsCheap(t *testing.T) {
	transport := instrument.Neutron(answering{})
	allocations := func() float64 {
		return testing.AllocsPerRun(100, func() {
			response, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2.0/networks", http.NoBody))
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
		})
	}
	off := allocations()
	before, spans := otel.GetTracerProvider(), tracetest.NewInMemoryExporter()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	on := allocations()
	t.Logf("allocations: %v without tracing, %v with it", off, on)
	if off > on/2 || len(spans.GetSpans()) == 0 {
		t.Errorf("a request makes %v allocations without tracing and %v with it; it has %d spans", off, on, len(spans.GetSpans()))
	}
}

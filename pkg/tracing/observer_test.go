package tracing_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/pkg/observe"
	"github.com/samplecrd/network-controller/pkg/tracing"
)

type responding struct{}

func (responding) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: request}, nil
}

// TestOffIsCheap: without a collector, a request takes a fraction of what a traced one
// takes. With one, it has a span, unless it is one to Kubernetes outside of a sync.
func TestOffIsCheap(t *testing.T) {
	observer := tracing.NewObserver()
	operation := func(*http.Request) string { return "list networks" }
	neutron := observe.Transport(observer, "Neutron", operation)(responding{})
	kubernetes := observe.Transport(observer, observe.Kubernetes, operation)(responding{})
	allocations := func(transport http.RoundTripper) float64 {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2.0/networks", http.NoBody)
		return testing.AllocsPerRun(100, func() {
			if _, err := transport.RoundTrip(request); err != nil { //nolint:bodyclose // it has none
				t.Fatal(err)
			}
		})
	}
	off := allocations(neutron)
	spans := exportTo(t)
	if allocations(kubernetes); len(spans.GetSpans()) > 0 {
		t.Errorf("%d requests to Kubernetes outside of a sync have spans", len(spans.GetSpans()))
	}
	on := allocations(neutron)
	t.Logf("allocations: %v without tracing, %v with it", off, on)
	if off > on/2 || len(spans.GetSpans()) == 0 {
		t.Errorf("a request makes %v allocations without tracing and %v with it; it has %d spans", off, on, len(spans.GetSpans()))
	}
}

func exportTo(t *testing.T) *tracetest.InMemoryExporter {
	t.Helper()
	before, spans := otel.GetTracerProvider(), tracetest.NewInMemoryExporter()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	return spans
}

// TestLinks: a sync is linked to what added its key, and to the failed sync that it
// repeats.
func TestLinks(t *testing.T) {
	spans, observer := exportTo(t), tracing.NewObserver()
	key := cache.NewObjectName("default", "example")
	observer.Happened(key, observe.Event{Type: observe.Added, Cause: "event"})
	for _, err := range []error{errors.New("unavailable"), nil} {
		_, end := observer.Begin(t.Context(), observe.Work{Kind: observe.Sync, Key: key, ID: "1234"})
		end(observe.Result{Err: err})
	}
	all := spans.GetSpans()
	if len(all) != 3 {
		t.Fatalf("the spans are %v, want those of an event and two syncs", all)
	}
	for i, cause := range []string{"event", "retry"} {
		links := all[i+1].Links
		if len(links) != 1 || links[0].SpanContext.SpanID() != all[i].SpanContext.SpanID() || links[0].Attributes[0].Value.AsString() != cause {
			t.Errorf("sync %d has the links %+v, want one to the %s", i+1, links, cause)
		}
	}
}

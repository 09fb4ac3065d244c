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

// TestRequests: a request has a span, unless it is one to Kubernetes outside of a sync.
func TestRequests(t *testing.T) {
	spans, observer := exportTo(t), tracing.NewObserver()
	for i, server := range []string{observe.Kubernetes, "Neutron"} {
		transport := observe.Transport(observer, server, func(*http.Request) string { return "list" })(responding{})
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/networks", http.NoBody)
		if _, err := transport.RoundTrip(request); err != nil || len(spans.GetSpans()) != i { //nolint:bodyclose // it has none
			t.Errorf("a request to %s has %d spans (%v), want %d", server, len(spans.GetSpans()), err, i)
		}
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
	for range 100 { // a busy key
		observer.Happened(key, observe.Event{Type: observe.Added, Cause: "event"})
	}
	_, end := observer.Begin(t.Context(), observe.Work{Kind: observe.Sync, Key: key})
	end(observe.Result{})
	if busy := spans.GetSpans(); len(busy[len(busy)-1].Links) != 8 {
		t.Errorf("a sync with 100 causes has %d links", len(busy[len(busy)-1].Links))
	}
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

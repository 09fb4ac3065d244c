package main

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"syscall"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// spans is a collector that stores the spans it receives.
type spans struct {
	mu  sync.Mutex
	all []*tracev1.Span
}

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	request := &collector.ExportTraceServiceRequest{}
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, request) != nil {
		http.Error(w, "no traces", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			s.all = append(s.all, scope.Spans...)
		}
	}
}

// find returns the spans with a name; if below is set, only its children.
func (s *spans) find(name string, below *tracev1.Span) (found []*tracev1.Span) {
	for _, span := range s.all {
		if span.Name == name && (below == nil || string(span.ParentSpanId) == string(below.SpanId) && string(span.TraceId) == string(below.TraceId)) {
			found = append(found, span)
		}
	}
	return found
}

func attributeOf(span *tracev1.Span, key string) string {
	for _, attribute := range span.Attributes {
		if attribute.Key == key {
			return attribute.Value.GetStringValue()
		}
	}
	return ""
}

// TestTraces: each sync is a trace with a span for each step and each request to
// Neutron, linked to the sync's causes.
func TestTraces(t *testing.T) {
	h, sent := newHarness(t), &spans{}
	server := httptest.NewServer(sent)
	defer server.Close()
	p := h.createTraced(server.URL)

	steps := sent.find("CreateSubnet", nil)
	if len(steps) != 1 || attributeOf(steps[0], "samplecrd.step") != "create subnet: 10.0.0.0/24, gateway 10.0.0.1" {
		t.Fatalf("the spans are %v, want one for the step that creates a subnet", sent.all)
	}
	if requests := sent.find("create subnet", steps[0]); len(requests) != 1 {
		t.Errorf("the children of the step are %v, want one request to Neutron", requests)
	}
	var sync *tracev1.Span
	for _, span := range sent.find("sync", nil) {
		if string(span.SpanId) == string(steps[0].ParentSpanId) {
			sync = span
		}
	}
	if sync == nil || len(sync.ParentSpanId) != 0 || attributeOf(sync, "samplecrd.network") != h.namespace+"/example" {
		t.Fatalf("the parent of the step is %v, want a sync that is the root of its trace", sync)
	}
	if !regexp.MustCompile(`"Created subnet" network="` + h.namespace + `/example" sync="` + attributeOf(sync, "samplecrd.sync") + `" step="create subnet`).MatchString(p.log.String()) {
		t.Errorf("the log has no line of sync %q:\n%s", attributeOf(sync, "samplecrd.sync"), &p.log)
	}
	events := sent.find("event", nil)
	if len(events) == 0 || len(sync.Links) != 1 || string(sync.Links[0].SpanId) != string(events[0].SpanId) {
		t.Errorf("the sync is linked to %v, want the event %v", sync.Links, events)
	}
	if hex.EncodeToString(sync.TraceId) == hex.EncodeToString(events[0].TraceId) {
		t.Error("the event is in the trace of the sync, want it in its own trace")
	}
}

// TestNothingIsSampled: with -tracing-sampling-ratio=0, no sync is traced.
func TestNothingIsSampled(t *testing.T) {
	h, sent := newHarness(t), &spans{}
	server := httptest.NewServer(sent)
	defer server.Close()
	h.createTraced(server.URL, "-tracing-sampling-ratio=0")
	if len(sent.all) > 0 {
		t.Errorf("%d spans were sent, want none", len(sent.all))
	}
}

// TestCollectorUnavailable: an unavailable collector delays nothing.
func TestCollectorUnavailable(t *testing.T) {
	h := newHarness(t)
	h.createTraced("http://127.0.0.1:1")
}

// createTraced runs a controller that sends traces to an endpoint until it has
// created a Network.
func (h *harness) createTraced(endpoint string, args ...string) *program {
	h.Helper()
	p := startProgram(h.T, append(args, "-kubeconfig="+cluster.Kubeconfig(), "-neutron-endpoint="+h.neutronURL, "-cluster-name="+testCluster,
		"-namespaces="+h.namespace, "-tracing-endpoint="+endpoint)...)
	p.waitFor(h.T, "Starting workers")
	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")
	p.signal(h.T, syscall.SIGTERM)
	p.wantExit(h.T, 0)
	return p
}

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

// spans are what a collector was sent.
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

// find returns the spans of a name, in one trace or any, and below one or any.
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

// TestTraces: one trace for each sync, with a span for each step and each
// request to Neutron, linked to what caused it.
func TestTraces(t *testing.T) {
	h, sent := newHarness(t), &spans{}
	server := httptest.NewServer(sent)
	defer server.Close()
	p := h.makeNetworkTraced(server.URL)

	steps := sent.find("CreateSubnet", nil)
	if len(steps) != 1 || attributeOf(steps[0], "samplecrd.step") != "create subnet: 10.0.0.0/24, gateway 10.0.0.1" {
		t.Fatalf("the spans are %v, want one of a step that creates a subnet", sent.all)
	}
	if requests := sent.find("create subnet", steps[0]); len(requests) != 1 {
		t.Errorf("below the step are %v, want one request to Neutron", requests)
	}
	var sync *tracev1.Span
	for _, span := range sent.find("sync", nil) {
		if string(span.SpanId) == string(steps[0].ParentSpanId) {
			sync = span
		}
	}
	if sync == nil || len(sync.ParentSpanId) != 0 || attributeOf(sync, "samplecrd.network") != h.namespace+"/example" {
		t.Fatalf("above the step is %v, want a sync that is a trace of its own", sync)
	}
	if !regexp.MustCompile(`"Applied step" network="` + h.namespace + `/example" sync="` + attributeOf(sync, "samplecrd.sync") + `" step="create subnet`).MatchString(p.log.String()) {
		t.Errorf("the log has no line of sync %q:\n%s", attributeOf(sync, "samplecrd.sync"), &p.log)
	}
	events := sent.find("event", nil)
	if len(events) == 0 || len(sync.Links) != 1 || string(sync.Links[0].SpanId) != string(events[0].SpanId) {
		t.Errorf("the sync is linked to %v, want the event %v", sync.Links, events)
	}
	if hex.EncodeToString(sync.TraceId) == hex.EncodeToString(events[0].TraceId) {
		t.Error("the event is in the trace of the sync, and could not be linked to two of them")
	}
}

// TestCollectorUnavailable: nothing waits for it.
func TestCollectorUnavailable(t *testing.T) {
	h := newHarness(t)
	h.makeNetworkTraced("http://127.0.0.1:1")
}

// makeNetworkTraced has a controller that sends traces there make a Network, and
// stops it.
func (h *harness) makeNetworkTraced(endpoint string) *program {
	h.Helper()
	p := newProgram(h.T, "-kubeconfig="+cluster.Kubeconfig(), "-neutron-endpoint="+h.neutronURL, "-cluster-name="+testCluster,
		"-namespaces="+h.namespace, "-tracing-endpoint="+endpoint)
	if err := p.Start(); err != nil {
		h.Fatal(err)
	}
	p.waitFor(h.T, "Starting workers")
	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		h.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		h.Fatalf("ended with %v and said\n%s", err, &p.log)
	}
	return p
}

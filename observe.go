package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/metrics"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/report"
)

// How others can see what a controller does: which lines of the log belong to
// one sync, what a trace has of it, and what is counted.

// tracer makes spans of nothing until tracing is started.
var tracer = otel.Tracer("github.com/samplecrd/network-controller")

// beginSync gives a sync a name in the log, and a trace of its own that is
// linked to what caused it. The function that it returns ends both.
func (c *Controller) beginSync(ctx context.Context, key cache.ObjectName) (context.Context, func(error)) {
	id := fmt.Sprintf("%08x", rand.Uint32()) //nolint:gosec // it tells lines of a log apart
	ctx, span := tracer.Start(ctx, "sync", trace.WithNewRoot(), trace.WithLinks(c.causes.take(key)...),
		trace.WithAttributes(attribute.String("samplecrd.network", key.String()), attribute.String("samplecrd.sync", id)))
	c.pulse.beat(key)
	return klog.NewContext(ctx, klog.FromContext(ctx).WithValues("network", klog.KRef(key.Parts()), "sync", id)), func(err error) {
		c.pulse.end(key)
		if err != nil {
			c.causes.add(key, span.SpanContext(), "retry")
		}
		end(span, err)
	}
}

// traceStep does the same for a step of a sync.
func (c *Controller) traceStep(ctx context.Context, network *samplecrdv1.Network, step plan.Step) (context.Context, func(error)) {
	c.pulse.beat(cache.MetaObjectToName(network))
	name := strings.TrimPrefix(fmt.Sprintf("%T", step), "plan.")
	ctx, span := tracer.Start(ctx, name)
	if span.IsRecording() {
		span.SetAttributes(attribute.String("samplecrd.step", step.String()))
	}
	return ctx, func(err error) { end(span, err) }
}

// end ends a span with what came of it.
func end(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// causes remembers what has put each key into the queue, until it is taken out:
// where there are traces, and the first few of each.
type causes struct {
	mu    sync.Mutex
	links map[cache.ObjectName][]trace.Link
}

const maxCauses = 8

// note makes a span of something that happens, and remembers it.
func (c *causes) note(key cache.ObjectName, what string) {
	_, span := tracer.Start(context.Background(), what, trace.WithAttributes(attribute.String("samplecrd.network", key.String())))
	span.End()
	c.add(key, span.SpanContext(), what)
}

func (c *causes) add(key cache.ObjectName, span trace.SpanContext, what string) {
	if !span.IsSampled() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.links == nil {
		c.links = map[cache.ObjectName][]trace.Link{}
	}
	link := trace.Link{SpanContext: span, Attributes: []attribute.KeyValue{attribute.String("samplecrd.cause", what)}}
	if links := c.links[key]; len(links) < maxCauses {
		c.links[key] = append(links, link)
	}
}

func (c *causes) take(key cache.ObjectName) []trace.Link {
	c.mu.Lock()
	defer c.mu.Unlock()
	links := c.links[key]
	delete(c.links, key)
	return links
}

// observeNeutron has each request to Neutron or Keystone measured, and be a span
// of its own.
func observeNeutron(next http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(measured{next}, otelhttp.WithSpanNameFormatter(func(_ string, request *http.Request) string {
		return openstack.Operation(request)
	}))
}

type measured struct{ next http.RoundTripper }

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

// countNetworks returns how many Networks are in which state.
func (c *Controller) countNetworks() map[metrics.State]int {
	count := map[metrics.State]int{}
	for _, network := range c.networks.list() {
		state := metrics.State{Ready: "Unknown", Reason: "Pending"}
		if ready := meta.FindStatusCondition(network.Status.Conditions, samplecrdv1.ConditionReady); ready != nil {
			state = metrics.State{Ready: string(ready.Status), Reason: report.KnownReason(ready.Reason)}
		}
		count[state]++
	}
	return count
}

package tracing

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/pkg/observe"
)

// Observer traces syncs, their steps, and requests. Each sync is a trace of its own that
// is linked to its causes.
type Observer struct {
	observe.Nothing

	mu     sync.Mutex
	causes map[cache.ObjectName][]trace.Link // of the next sync
}

// NewObserver returns an Observer.
func NewObserver() *Observer { return &Observer{causes: map[cache.ObjectName][]trace.Link{}} }

func tracer() trace.Tracer { return otel.Tracer("github.com/samplecrd/network-controller") }

func (o *Observer) Happened(key cache.ObjectName, event observe.Event) {
	if event.Type == observe.Added {
		_, span := tracer().Start(context.Background(), event.Cause, trace.WithAttributes(network(key)))
		span.End()
		o.addCause(key, span.SpanContext(), event.Cause)
	}
}

func (o *Observer) Begin(ctx context.Context, work observe.Work) (context.Context, func(observe.Result)) {
	switch work.Kind {
	case observe.Sync:
		ctx, span := tracer().Start(ctx, "sync", trace.WithNewRoot(), trace.WithLinks(o.takeCauses(work.Key)...),
			trace.WithAttributes(network(work.Key), attribute.String("samplecrd.sync", work.ID)))
		return ctx, func(result observe.Result) {
			if result.Err != nil {
				o.addCause(work.Key, span.SpanContext(), "retry")
			}
			end(span, result)
		}
	case observe.Step:
		ctx, span := tracer().Start(ctx, work.Name)
		if span.IsRecording() {
			span.SetAttributes(attribute.String("samplecrd.step", work.Text.String()))
		}
		return ctx, func(result observe.Result) { end(span, result) }
	case observe.Request:
		if work.Server == observe.Kubernetes && !trace.SpanFromContext(ctx).IsRecording() {
			break // of an informer, or for the Lease
		}
		ctx, span := tracer().Start(ctx, work.Name, trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(attribute.String("http.request.method", work.Request.Method)))
		return ctx, func(result observe.Result) {
			span.SetAttributes(attribute.Int("http.response.status_code", result.Code))
			end(span, result)
		}
	case observe.Task: // is not traced
	}
	return o.Nothing.Begin(ctx, work)
}

func network(key cache.ObjectName) attribute.KeyValue {
	return attribute.String("samplecrd.network", key.String())
}

// end ends a span with the result of what it covers.
func end(span trace.Span, result observe.Result) {
	if result.Err != nil {
		span.SetStatus(codes.Error, result.Err.Error())
	}
	span.End()
}

// maxCauses bounds the causes of one sync.
const maxCauses = 8

func (o *Observer) addCause(key cache.ObjectName, span trace.SpanContext, cause string) {
	if !span.IsSampled() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	link := trace.Link{SpanContext: span, Attributes: []attribute.KeyValue{attribute.String("samplecrd.cause", cause)}}
	if links := o.causes[key]; len(links) < maxCauses {
		o.causes[key] = append(links, link)
	}
}

func (o *Observer) takeCauses(key cache.ObjectName) []trace.Link {
	o.mu.Lock()
	defer o.mu.Unlock()
	links := o.causes[key]
	delete(o.causes, key)
	return links
}

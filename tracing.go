package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"k8s.io/klog/v2"
)

// tracingOptions say where traces go.
type tracingOptions struct {
	endpoint string
	ratio    float64
}

func (t *tracingOptions) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&t.endpoint, "tracing-endpoint", "", "`URL` of an OpenTelemetry collector that takes OTLP over HTTP, such as http://127.0.0.1:4318. Without it, nothing is traced. What its login needs is in OTEL_EXPORTER_OTLP_HEADERS.")
	flags.Float64Var(&t.ratio, "tracing-sampling-ratio", 1, "Which part of all syncs to trace, from 0 to 1.")
}

// check says which flag has a value that cannot be.
func (t tracingOptions) check() error {
	address, err := url.Parse(t.endpoint)
	switch {
	case t.ratio < 0 || t.ratio > 1:
		return fmt.Errorf("-tracing-sampling-ratio is %v: it must be from 0 to 1", t.ratio)
	case t.endpoint == "":
		return nil
	case err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "":
		return errors.New("-tracing-endpoint must be a URL that begins with http:// or https://, such as http://127.0.0.1:4318")
	case address.User != nil:
		return errors.New("-tracing-endpoint holds a user name or password: put them into the environment variable OTEL_EXPORTER_OTLP_HEADERS")
	}
	return nil
}

// start begins to send traces in the background, where that is asked for. A
// collector that is away holds nothing up: what does not fit into a buffer is
// dropped. The function that it returns sends what is left.
func (t tracingOptions) start(ctx context.Context) (end func(), err error) {
	if t.endpoint == "" {
		return func() {}, nil
	}
	base, err := url.Parse(t.endpoint)
	if err != nil {
		return nil, fmt.Errorf("-tracing-endpoint: %w", err)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(base.JoinPath("v1", "traces").String()))
	if err != nil {
		return nil, fmt.Errorf("-tracing-endpoint: %w", err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(t.ratio))),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", controllerName), attribute.String("service.version", version))),
	)
	logger := klog.FromContext(ctx)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.V(2).Info("Sending traces failed", "err", err) }))
	otel.SetTracerProvider(provider)
	logger.Info("Sending traces", "endpoint", t.endpoint, "samplingRatio", t.ratio)
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = provider.Shutdown(ctx) // the error handler is told
	}, nil
}

// Package tracing exports OpenTelemetry traces.
package tracing

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/url"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"k8s.io/klog/v2"

	"github.com/samplecrd/network-controller/pkg/observe"
)

// Options configure tracing.
type Options struct {
	endpoint string
	ratio    float64
}

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.endpoint, "tracing-endpoint", "", "The `URL` of an OpenTelemetry collector that accepts OTLP "+
		"over HTTP, such as http://127.0.0.1:4318. The environment variable OTEL_EXPORTER_OTLP_HEADERS holds its "+
		"credentials. If empty, tracing is disabled.")
	flags.Float64Var(&o.ratio, "tracing-sampling-ratio", 1, "Fraction of syncs to trace, from 0 to 1.")
}

// Validate returns an error that names the flag with an invalid value.
func (o Options) Validate() error {
	address, err := url.Parse(o.endpoint)
	switch {
	case math.IsNaN(o.ratio), o.ratio < 0, o.ratio > 1:
		return fmt.Errorf("-tracing-sampling-ratio is %v: it must be from 0 to 1", o.ratio)
	case o.endpoint == "":
		return nil
	case err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "":
		return errors.New("-tracing-endpoint must be a URL that begins with http:// or https://, such as " +
			"http://127.0.0.1:4318")
	case address.User != nil || address.RawQuery != "":
		return errors.New("-tracing-endpoint contains a user name, a password or a query: set them in the environment " +
			"variable OTEL_EXPORTER_OTLP_HEADERS")
	}
	return nil
}

// NewObserver returns the observer of a controller: one that traces, if traces are exported.
func (o Options) NewObserver() observe.Observer {
	if o.endpoint == "" {
		return observe.Nothing{}
	}
	return NewObserver()
}

// Export starts to export traces in the background, if that is configured. A
// collector that is unavailable delays nothing: what does not fit into a buffer is
// dropped. The function that it returns sends what is left.
func (o Options) Export(ctx context.Context, service, version string) (end func(), err error) {
	if o.endpoint == "" {
		return func() {}, nil
	}
	base, err := url.Parse(o.endpoint)
	if err != nil {
		return nil, fmt.Errorf("-tracing-endpoint: %w", err)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(base.JoinPath("v1", "traces").String()))
	if err != nil {
		return nil, fmt.Errorf("-tracing-endpoint: %w", err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(o.ratio))),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", service), attribute.String("service.version", version))),
	)
	logger := klog.FromContext(ctx)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.V(2).Info("Sending traces failed", "err", err) }))
	otel.SetTracerProvider(provider)
	logger.Info("Exporting traces", "endpoint", o.endpoint, "samplingRatio", o.ratio)
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = provider.Shutdown(ctx) // the error handler logs the error
	}, nil
}

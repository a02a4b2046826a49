// SPDX-License-Identifier: Apache-2.0

// Package tracing exports spans by OTLP over HTTP if the environment names a collector. A slow or unavailable
// collector loses spans and delays nothing else.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const longestValue = 1024

// Tracing is a tracer provider with a shutdown function.
type Tracing struct {
	// Provider is nil without a collector.
	Provider trace.TracerProvider
	end      func(within time.Duration)
}

// End flushes within a timeout and stops all goroutines.
func (t *Tracing) End(within time.Duration) {
	if t.end != nil {
		t.end(within)
	}
}

// Start starts exporting if the environment names a collector. Configuration errors are logged and disable
// tracing.
func Start(ctx context.Context, program, version string, log *slog.Logger) *Tracing {
	env := environment(os.Getenv) // the exporter reads it, too
	if !env.on() {
		return &Tracing{}
	}
	client, err := env.client()
	if err != nil {
		log.WarnContext(ctx, "no spans are sent", "err", err)
		return &Tracing{}
	}
	to, err := otlptrace.New(ctx, client)
	if err != nil {
		log.WarnContext(ctx, "no spans are sent", "err", env.redact(err.Error()))
		return &Tracing{}
	}
	out := newOutlet(to, &complaints{log: log, redact: env.redact})
	otel.SetErrorHandler(otel.ErrorHandlerFunc(out.complaints.hear))
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(out), sdktrace.WithResource(newResource(ctx, program, version)), sdktrace.WithRawSpanLimits(limits()))
	log.InfoContext(ctx, "spans are sent", "to", env.collector())
	return &Tracing{Provider: provider, end: func(within time.Duration) {
		ending, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		_ = provider.Shutdown(ending) // failures have been logged
		out.close()
	}}
}

// newResource identifies the program; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
func newResource(ctx context.Context, program, version string) *resource.Resource {
	r, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", program), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil {
		otel.Handle(fmt.Errorf("attributes of the resource: %w", err))
	}
	return r
}

func limits() sdktrace.SpanLimits {
	l := sdktrace.NewSpanLimits()
	if l.AttributeValueLengthLimit < 0 {
		l.AttributeValueLengthLimit = longestValue
	}
	return l
}

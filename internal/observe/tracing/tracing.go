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

const maxValueLength = 1024

// Tracing is a tracer provider with a shutdown function.
type Tracing struct {
	// Provider is nil without a collector.
	Provider trace.TracerProvider
	shutdown func(within time.Duration)
}

// Shutdown flushes within a timeout and stops all goroutines.
func (t *Tracing) Shutdown(within time.Duration) {
	if t.shutdown != nil {
		t.shutdown(within)
	}
}

// Start starts exporting if the environment names a collector. Configuration errors are logged and disable
// tracing.
func Start(ctx context.Context, program, version string, log *slog.Logger) *Tracing {
	env := environment(os.Getenv) // the exporter reads it, too
	if !env.isEnabled() {
		return &Tracing{}
	}
	client, err := env.newClient()
	if err != nil {
		log.WarnContext(ctx, "no spans are sent", "err", err)
		return &Tracing{}
	}
	to, err := otlptrace.New(ctx, client)
	if err != nil {
		log.WarnContext(ctx, "no spans are sent", "err", env.redactSecrets(err.Error()))
		return &Tracing{}
	}
	out := newClosableExporter(to, &exportLog{log: log, redact: env.redactSecrets})
	otel.SetErrorHandler(otel.ErrorHandlerFunc(out.log.handleError))
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(out), sdktrace.WithResource(newResource(ctx, program, version)), sdktrace.WithRawSpanLimits(spanLimits()))
	log.InfoContext(ctx, "spans are sent", "to", env.collectorURL())
	return &Tracing{Provider: provider, shutdown: func(within time.Duration) {
		ending, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		_ = provider.Shutdown(ending) // failures have been logged
		out.stopExport()
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

func spanLimits() sdktrace.SpanLimits {
	l := sdktrace.NewSpanLimits()
	if l.AttributeValueLengthLimit < 0 {
		l.AttributeValueLengthLimit = maxValueLength
	}
	return l
}

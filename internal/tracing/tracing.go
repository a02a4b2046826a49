// SPDX-License-Identifier: Apache-2.0

// Package tracing sends spans to a collector, by OTLP over HTTP, where the environment names
// one. Spans are worth less than what they tell of: a collector that is slow, or away, costs
// spans, and nothing else waits for it.
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

// longestValue bounds the attributes of spans, in characters, unless the environment does.
const longestValue = 1024

// Tracing is a provider of tracers and its end. That of no collector provides nothing.
type Tracing struct {
	// Provider is nil without a collector.
	Provider trace.TracerProvider
	end      func(within time.Duration)
}

// End sends what is left, within a time, and leaves nothing running.
func (t *Tracing) End(within time.Duration) {
	if t.end != nil {
		t.end(within)
	}
}

// Start begins to send spans of a program if the environment names a collector. What is wrong with the
// environment is logged, and then nothing is sent: that keeps nobody from his work.
func Start(ctx context.Context, program, version string, log *slog.Logger) *Tracing {
	env := environment(os.Getenv) // where the exporter looks, too
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
		_ = provider.Shutdown(ending) // what failed was logged
		out.close()
	}}
}

// who says who sends, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES do.
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

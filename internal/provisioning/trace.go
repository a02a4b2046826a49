// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

func (r *Reconciler) tracer() trace.Tracer {
	if r.Spans == nil {
		return noop.NewTracerProvider().Tracer("")
	}
	return r.Spans.Tracer("weir.dev/weir/internal/provisioning")
}

func (r *run) startSpan(ctx context.Context) (context.Context, trace.Span) {
	return r.reconciler.tracer().Start(ctx, "provision attempt", trace.WithAttributes(
		attribute.String("k8s.namespace.name", r.p.Namespace), attribute.String("weir.provision", r.p.Name),
		attribute.Int64("weir.attempt", r.p.Status.AttemptNumber)))
}

func (r *run) traceStep(ctx context.Context, name string, step func(context.Context) error) error {
	ctx, span := r.reconciler.tracer().Start(ctx, "provision step", trace.WithAttributes(attribute.String("weir.step", name)))
	defer span.End()
	err := step(ctx)
	if err != nil && r.target != nil {
		err = r.target.credentials.addHint(err, time.Now())
	}
	if err != nil {
		span.SetStatus(codes.Error, r.log.CleanText(err.Error()))
	}
	return err
}

// endSpan ends the span with the attempt's result; nil means the process stopped.
func endSpan(span trace.Span, end *attemptResult) {
	defer span.End()
	if end == nil {
		span.SetStatus(codes.Error, "it was broken off")
		return
	}
	span.SetAttributes(attribute.String("weir.result", end.Result))
	if end.Message != "" {
		span.SetStatus(codes.Error, end.failureMessage())
	}
}

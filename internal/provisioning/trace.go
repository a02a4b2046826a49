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

func (a *run) startSpan(ctx context.Context) (context.Context, trace.Span) {
	return a.reconciler.tracer().Start(ctx, "provision attempt", trace.WithAttributes(
		attribute.String("k8s.namespace.name", a.p.Namespace), attribute.String("weir.provision", a.p.Name),
		attribute.Int64("weir.attempt", a.p.Status.AttemptNumber)))
}

func (a *run) traceStep(ctx context.Context, name string, step func(context.Context) error) error {
	ctx, span := a.reconciler.tracer().Start(ctx, "provision step", trace.WithAttributes(attribute.String("weir.step", name)))
	defer span.End()
	err := step(ctx)
	if err != nil && a.target != nil {
		err = a.target.credentials.addHint(err, time.Now())
	}
	if err != nil {
		span.SetStatus(codes.Error, a.log.CleanText(err.Error()))
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

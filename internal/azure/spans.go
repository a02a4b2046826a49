// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// newTracingProvider adapts provider, which may be nil, to the SDK: one span per request on the wire. The SDK's
// other spans would duplicate them, with whole error bodies as status.
func newTracingProvider(provider trace.TracerProvider, attributesOf func(context.Context) []attribute.KeyValue) tracing.Provider {
	if provider == nil {
		return tracing.Provider{}
	}
	return tracing.NewProvider(func(module, version string) tracing.Tracer {
		tracer := provider.Tracer(module, trace.WithInstrumentationVersion(version))
		return tracing.NewTracer(func(ctx context.Context, name string, options *tracing.SpanOptions) (context.Context, tracing.Span) {
			if options == nil || options.Kind != tracing.SpanKindClient {
				return ctx, tracing.Span{}
			}
			ctx, span := tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient),
				trace.WithAttributes(convertAttributes(options.Attributes)...), trace.WithAttributes(attributesOf(ctx)...))
			return ctx, newSpan(span)
		}, nil)
	}, nil)
}

// setCorrelationID sets Azure's correlation ID on the span of a request. The SDK sets only the request
// ID.
func setCorrelationID(ctx context.Context, id string) {
	if id != "" {
		trace.SpanFromContext(ctx).SetAttributes(attribute.String("az.correlation_request_id", id))
	}
}

func newSpan(span trace.Span) tracing.Span {
	return tracing.NewSpan(tracing.SpanImpl{
		End:           func() { span.End() },
		SetAttributes: func(as ...tracing.Attribute) { span.SetAttributes(convertAttributes(as)...) },
		AddEvent: func(name string, as ...tracing.Attribute) {
			span.AddEvent(name, trace.WithAttributes(convertAttributes(as)...))
		},
		SetStatus: func(status tracing.SpanStatus, description string) {
			if status == tracing.SpanStatusError {
				span.SetStatus(codes.Error, redactLine(description))
			}
		},
	})
}

func convertAttributes(as []tracing.Attribute) []attribute.KeyValue {
	kvs := make([]attribute.KeyValue, 0, len(as))
	for _, a := range as {
		switch v := a.Value.(type) {
		case int:
			kvs = append(kvs, attribute.Int(a.Key, v))
		case int64:
			kvs = append(kvs, attribute.Int64(a.Key, v))
		case float64:
			kvs = append(kvs, attribute.Float64(a.Key, v))
		case bool:
			kvs = append(kvs, attribute.Bool(a.Key, v))
		default:
			kvs = append(kvs, attribute.String(a.Key, redactText(fmt.Sprint(v))))
		}
	}
	return kvs
}

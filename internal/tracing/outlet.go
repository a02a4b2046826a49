// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"errors"
	"sync"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// outlet is an exporter that can be closed at any time.
type outlet struct {
	to         sdktrace.SpanExporter
	complaints *complaints

	closing context.Context //nolint:containedctx // it ends what is under way, whoever began it
	cancel  context.CancelFunc
	once    sync.Once
	ended   chan struct{}
}

func newOutlet(to sdktrace.SpanExporter, complaints *complaints) *outlet {
	o := &outlet{to: to, complaints: complaints, ended: make(chan struct{})}
	o.closing, o.cancel = context.WithCancel(context.Background())
	return o
}

// ExportSpans implements sdktrace.SpanExporter. It logs errors itself and returns nil.
func (o *outlet) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if o.closing.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(o.closing, cancel)()
	err := o.to.ExportSpans(ctx, spans)
	if o.closing.Err() != nil {
		err = errors.New("the controller stops, and the collector did not take them in time")
	}
	o.complaints.delivered(len(spans), err)
	return nil
}

// Shutdown implements sdktrace.SpanExporter. It is called once, after the last export.
func (o *outlet) Shutdown(ctx context.Context) error {
	err := o.to.Shutdown(ctx)
	o.once.Do(func() { close(o.ended) })
	return err
}

// close cancels the current export and waits for it.
func (o *outlet) close() {
	o.cancel()
	<-o.ended
}

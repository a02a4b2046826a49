// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"errors"
	"sync"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// closableExporter is an exporter that can be closed at any time.
type closableExporter struct {
	exporter sdktrace.SpanExporter
	log      *exportLog

	closing context.Context //nolint:containedctx // it ends what is under way, whoever began it
	cancel  context.CancelFunc
	once    sync.Once
	ended   chan struct{}
}

func newClosableExporter(to sdktrace.SpanExporter, complaints *exportLog) *closableExporter {
	o := &closableExporter{exporter: to, log: complaints, ended: make(chan struct{})}
	o.closing, o.cancel = context.WithCancel(context.Background())
	return o
}

// ExportSpans implements sdktrace.SpanExporter. It logs errors itself and returns nil.
func (c *closableExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if c.closing.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.closing, cancel)()
	err := c.exporter.ExportSpans(ctx, spans)
	if c.closing.Err() != nil {
		err = errors.New("the controller stops, and the collector did not take them in time")
	}
	c.log.recordExport(len(spans), err)
	return nil
}

// Shutdown implements sdktrace.SpanExporter. It is called once, after the last export.
func (c *closableExporter) Shutdown(ctx context.Context) error {
	err := c.exporter.Shutdown(ctx)
	c.once.Do(func() { close(c.ended) })
	return err
}

// stopExport cancels the current export and waits for it.
func (c *closableExporter) stopExport() {
	c.cancel()
	<-c.ended
}

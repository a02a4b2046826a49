// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"log/slog"
)

// quiet is a log handler to which what controller-runtime says of its own parts, at each start and each stop, is
// for who debugs: it says nothing of what Weir does.
type quiet struct{ slog.Handler }

// chatter are the words of controller-runtime.
var chatter = map[string]bool{
	"Starting EventSource": true, "Starting Controller": true, "Starting workers": true,
	"starting server": true, "Starting metrics server": true, "Serving metrics server": true,
	"healthz check failed": true, // who probes is told, and which check it was is said at debug, too
	"Shutdown signal received, waiting for all workers to finish": true, "All workers finished": true,
	"Stopping and waiting for warmup runnables": true, "Stopping and waiting for non leader election runnables": true,
	"Stopping and waiting for leader election runnables": true, "Stopping and waiting for caches": true,
	"Stopping and waiting for webhooks": true, "Stopping and waiting for HTTP servers": true,
	"Wait completed, proceeding to shutdown the manager": true,
	"shutting down server":                               true, "Shutting down metrics server with timeout of 1 minute": true,
}

// Handle implements slog.Handler.
func (h quiet) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelInfo && chatter[r.Message] {
		r.Level = slog.LevelDebug
		if !h.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{h.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (h quiet) WithGroup(name string) slog.Handler { return quiet{h.Handler.WithGroup(name)} }

// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"log/slog"
)

// quietHandler is a log handler that demotes controller-runtime's start and stop messages to debug level.
type quietHandler struct{ slog.Handler }

var lifecycleMessages = map[string]bool{
	"Starting EventSource": true, "Starting Controller": true, "Starting workers": true,
	"starting server": true, "Starting metrics server": true, "Serving metrics server": true,
	"healthz check failed": true, // the prober gets the error; the failed check is logged at debug level
	"Shutdown signal received, waiting for all workers to finish": true, "All workers finished": true,
	"Stopping and waiting for warmup runnables": true, "Stopping and waiting for non leader election runnables": true,
	"Stopping and waiting for leader election runnables": true, "Stopping and waiting for caches": true,
	"Stopping and waiting for webhooks": true, "Stopping and waiting for HTTP servers": true,
	"Wait completed, proceeding to shutdown the manager": true,
	"shutting down server":                               true, "Shutting down metrics server with timeout of 1 minute": true,
}

func (h quietHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelInfo && lifecycleMessages[r.Message] {
		r.Level = slog.LevelDebug
		if !h.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return h.Handler.Handle(ctx, r)
}

func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attrs)}
}

func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name)}
}

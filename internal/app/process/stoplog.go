// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"log/slog"
)

// stopHandler is a log handler that rewrites controller-runtime's error about lost leadership during a clean
// shutdown.
type stopHandler struct {
	slog.Handler
	// stopping is done when shutdown begins.
	stopping context.Context //nolint:containedctx // it is asked, not passed on
}

const (
	afterStopMessage      = "error received after stop sequence was engaged"
	leadershipLostMessage = "leader election lost"
)

func (h stopHandler) Handle(ctx context.Context, r slog.Record) error {
	if h.stopping.Err() == nil || r.Message != afterStopMessage {
		return h.Handler.Handle(ctx, r)
	}
	lost := false
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		lost = lost || ok && err.Error() == leadershipLostMessage
		return !lost
	})
	if !lost {
		return h.Handler.Handle(ctx, r)
	}
	given := slog.NewRecord(r.Time, slog.LevelInfo, "the lead is given up", r.PC)
	if !h.Enabled(ctx, given.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, given)
}

func (h stopHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return stopHandler{h.Handler.WithAttrs(attrs), h.stopping}
}

func (h stopHandler) WithGroup(name string) slog.Handler {
	return stopHandler{h.Handler.WithGroup(name), h.stopping}
}

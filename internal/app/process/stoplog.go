// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"log/slog"
)

// calmStop is a log handler that calls the end of the lead in a clean stop by its name. To
// controller-runtime every end of it is an error, that of a process which gives it up because
// it was told to stop included.
type calmStop struct {
	slog.Handler
	// stopping is done once the process was told to stop.
	stopping context.Context //nolint:containedctx // it is asked, not passed on
}

// The words of controller-runtime.
const (
	afterStop = "error received after stop sequence was engaged"
	leadLost  = "leader election lost"
)

// Handle implements slog.Handler.
func (h calmStop) Handle(ctx context.Context, r slog.Record) error {
	if h.stopping.Err() == nil || r.Message != afterStop {
		return h.Handler.Handle(ctx, r)
	}
	lost := false
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		lost = lost || ok && err.Error() == leadLost
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

// WithAttrs implements slog.Handler.
func (h calmStop) WithAttrs(attrs []slog.Attr) slog.Handler {
	return calmStop{h.Handler.WithAttrs(attrs), h.stopping}
}

// WithGroup implements slog.Handler.
func (h calmStop) WithGroup(name string) slog.Handler {
	return calmStop{h.Handler.WithGroup(name), h.stopping}
}

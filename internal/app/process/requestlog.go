// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"log/slog"

	"weir.dev/weir/internal/armerror"
)

// requestIDHandler is a log handler that adds Azure's request IDs to lines with an Azure error.
type requestIDHandler struct{ slog.Handler }

func (h requestIDHandler) Handle(ctx context.Context, r slog.Record) error {
	var requestID, correlationID string
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			requestID, correlationID = armerror.RequestIDs(err)
		}
		return requestID == "" && correlationID == ""
	})
	if requestID != "" || correlationID != "" {
		r = r.Clone() // the record may be shared
	}
	if requestID != "" {
		r.AddAttrs(slog.String("requestID", requestID))
	}
	if correlationID != "" {
		r.AddAttrs(slog.String("correlationID", correlationID))
	}
	return h.Handler.Handle(ctx, r)
}

func (h requestIDHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestIDHandler{h.Handler.WithAttrs(attrs)}
}

func (h requestIDHandler) WithGroup(name string) slog.Handler {
	return requestIDHandler{h.Handler.WithGroup(name)}
}

// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"log/slog"

	"weir.dev/weir/internal/fault"
)

// namesRequests is a log handler that adds Azure's request IDs to lines with an Azure error.
type namesRequests struct{ slog.Handler }

func (h namesRequests) Handle(ctx context.Context, r slog.Record) error {
	var requestID, correlationID string
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			requestID, correlationID = fault.RequestOf(err)
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

func (h namesRequests) WithAttrs(attrs []slog.Attr) slog.Handler {
	return namesRequests{h.Handler.WithAttrs(attrs)}
}

func (h namesRequests) WithGroup(name string) slog.Handler {
	return namesRequests{h.Handler.WithGroup(name)}
}

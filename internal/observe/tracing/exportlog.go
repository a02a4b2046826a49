// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// warnInterval is the minimum time between two warnings about lost spans.
	warnInterval   = 10 * time.Minute
	maxErrorLength = 300
)

// exportLog logs the first failure, then a reminder at intervals, then the recovery.
type exportLog struct {
	log    *slog.Logger
	redact func(string) string

	mu    sync.Mutex
	last  time.Time // last warning; zero after success
	spans int       // lost since the last success
}

func (e *exportLog) recordExport(spans int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		if !e.last.IsZero() {
			e.log.Info("spans are delivered again", "lost", e.spans)
		}
		e.last, e.spans = time.Time{}, 0
		return
	}
	e.spans += spans
	e.warnOnce("spans are lost", err)
}

func (e *exportLog) handleError(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.warnOnce("tracing", err)
}

// warnOnce logs an error unless one was logged recently. The caller holds e.mu.
func (e *exportLog) warnOnce(message string, err error) {
	if now := time.Now(); e.last.IsZero() || now.Sub(e.last) >= warnInterval {
		e.log.Warn(message, "lost", e.spans, "err", truncateLine(e.redact(err.Error())))
		e.last = now
	}
}

func truncateLine(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if len(text) > maxErrorLength {
		text = strings.ToValidUTF8(text[:maxErrorLength], "") + "…"
	}
	return text
}

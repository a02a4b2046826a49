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

func (c *exportLog) recordExport(spans int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		if !c.last.IsZero() {
			c.log.Info("spans are delivered again", "lost", c.spans)
		}
		c.last, c.spans = time.Time{}, 0
		return
	}
	c.spans += spans
	c.warnOnce("spans are lost", err)
}

func (c *exportLog) handleError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warnOnce("tracing", err)
}

// warnOnce logs an error unless one was logged recently. The caller holds c.mu.
func (c *exportLog) warnOnce(what string, err error) {
	if now := time.Now(); c.last.IsZero() || now.Sub(c.last) >= warnInterval {
		c.log.Warn(what, "lost", c.spans, "err", truncateLine(c.redact(err.Error())))
		c.last = now
	}
}

func truncateLine(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if len(text) > maxErrorLength {
		text = strings.ToValidUTF8(text[:maxErrorLength], "") + "…"
	}
	return text
}

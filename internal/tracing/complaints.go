// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// complainEvery is the minimum time between two warnings about lost spans.
	complainEvery    = 10 * time.Minute
	longestComplaint = 300
)

// complaints logs the first failure, then a reminder at intervals, then the recovery.
type complaints struct {
	log    *slog.Logger
	redact func(string) string

	mu    sync.Mutex
	last  time.Time // last warning; zero after success
	spans int       // lost since the last success
}

func (c *complaints) delivered(spans int, err error) {
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
	c.complain("spans are lost", err)
}

func (c *complaints) hear(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.complain("tracing", err)
}

// complain logs an error unless one was logged recently. The caller holds c.mu.
func (c *complaints) complain(what string, err error) {
	if now := time.Now(); c.last.IsZero() || now.Sub(c.last) >= complainEvery {
		c.log.Warn(what, "lost", c.spans, "err", shorten(c.redact(err.Error())))
		c.last = now
	}
}

func shorten(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if len(text) > longestComplaint {
		text = strings.ToValidUTF8(text[:longestComplaint], "") + "…"
	}
	return text
}

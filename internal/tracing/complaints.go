// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// complainEvery is how often at most it is logged that spans are lost.
	complainEvery = 10 * time.Minute
	// longestComplaint bounds what is quoted of an error, in bytes.
	longestComplaint = 300
)

// complaints are logged once when something begins to fail, then seldom, and once when it is
// over.
type complaints struct {
	log    *slog.Logger
	redact func(string) string

	mu    sync.Mutex
	last  time.Time // zero while all is well
	spans int       // lost since the last one
}

// delivered hears how many spans were sent, or why they were not.
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

// hear is for all else that OpenTelemetry has to say.
func (c *complaints) hear(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.complain("tracing", err)
}

// complain logs an error, if none was lately. The caller holds c.mu.
func (c *complaints) complain(what string, err error) {
	if now := time.Now(); c.last.IsZero() || now.Sub(c.last) >= complainEvery {
		c.log.Warn(what, "lost", c.spans, "err", shorten(c.redact(err.Error())))
		c.last = now
	}
}

// shorten puts a text on one line of bounded length.
func shorten(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if len(text) > longestComplaint {
		text = strings.ToValidUTF8(text[:longestComplaint], "") + "…"
	}
	return text
}

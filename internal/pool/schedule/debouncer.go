// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"time"

	"weir.dev/weir/internal/ratelimit"
)

// Checks of a load balancer share a read: they wait until none has come for DebounceTime, but at most
// MaxDebounce. A starting process discovers its pools one by one.
const (
	DebounceTime = time.Second
	MaxDebounce  = 10 * time.Second
)

// Debouncer debounces checks.
type Debouncer struct{ since, last time.Time }

// AddCheck records a check.
func (c *Debouncer) AddCheck(now time.Time) {
	if now.Sub(c.last) > DebounceTime {
		c.since = now
	}
	c.last = now
}

// ReadyAt returns when the debouncing ends; zero is now.
func (c Debouncer) ReadyAt() time.Time {
	if c.last.Equal(c.since) {
		return time.Time{} // all came at once
	}
	return ratelimit.MinTime(c.last.Add(DebounceTime), c.since.Add(MaxDebounce))
}

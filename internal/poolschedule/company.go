// SPDX-License-Identifier: Apache-2.0

package poolschedule

import "time"

// Checks of a load balancer share a read: they wait until none has come for QuietGap, but at most
// QuietMost. A starting process discovers its pools one by one.
const (
	QuietGap  = time.Second
	QuietMost = 10 * time.Second
)

// Company debounces checks.
type Company struct{ since, last time.Time }

// Joins records a check.
func (c *Company) Joins(now time.Time) {
	if now.Sub(c.last) > QuietGap {
		c.since = now
	}
	c.last = now
}

// Until returns when the debouncing ends; zero is now.
func (c Company) Until() time.Time {
	if c.last.Equal(c.since) {
		return time.Time{} // all came at once
	}
	return Earlier(c.last.Add(QuietGap), c.since.Add(QuietMost))
}

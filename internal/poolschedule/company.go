// SPDX-License-Identifier: Apache-2.0

package poolschedule

import "time"

// How long a look that nobody waits for waits for others of its load balancer, so that one read
// serves them all: until none has come for QuietGap, and for QuietMost at most. A process that starts
// meets its pools one after the other.
const (
	QuietGap  = time.Second
	QuietMost = 10 * time.Second
)

// Company is when operations that nobody waits for began to come one after the other, and when the
// last one came.
type Company struct{ since, last time.Time }

// Joins notes that one comes.
func (c *Company) Joins(now time.Time) {
	if now.Sub(c.last) > QuietGap {
		c.since = now
	}
	c.last = now
}

// Until is until when they wait for each other.
func (c Company) Until() time.Time {
	if c.last.Equal(c.since) {
		return time.Time{} // all came at once
	}
	return Earlier(c.last.Add(QuietGap), c.since.Add(QuietMost))
}

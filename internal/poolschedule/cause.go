// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"slices"
	"time"
)

// Cause is the kinds of operations that caused an attempt. Operations that it only carried count
// once they are settled.
type Cause struct {
	Member, Admin bool
	// change is true if a membership change, not only a check, caused it; it starts the pool's
	// pace.
	change bool
}

// CauseOf returns the cause of an attempt.
func CauseOf(ops []Operation, settled bool) Cause {
	var c Cause
	for _, op := range ops {
		if op.Carried && !settled {
			continue
		}
		c.change = c.change || op.Member() && (!op.Looks() || op.Differs)
		c.Admin = c.Admin || op.Admin
		c.Member = c.Member || op.Member() && !op.Carried
	}
	return c
}

// OnlyCarried reports whether the operations that were due are gone. Carried ones wait for their
// own time.
func OnlyCarried(ops []Operation) bool {
	return !slices.ContainsFunc(ops, func(op Operation) bool { return !op.Carried })
}

// OldestChange returns when the oldest membership change was seen.
func OldestChange(ops []Operation) time.Time {
	var oldest time.Time
	for _, op := range ops {
		if op.Member() {
			oldest = Earlier(oldest, op.ChangedAt)
		}
	}
	return oldest
}

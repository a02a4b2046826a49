// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"slices"
	"time"
)

// Cause is what caused an attempt. Operations that were not due count once they are settled.
type Cause struct {
	Member, Admin bool
	// change is true for a membership change, which starts the pool's pace.
	change bool
}

// CauseOf returns the cause of an attempt at these operations.
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

// OnlyCarried reports whether only operations that are not due are left.
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

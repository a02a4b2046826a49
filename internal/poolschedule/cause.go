// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"slices"
	"time"
)

// Cause says for which kinds of operations an attempt was made. What it only took along
// counts once it is settled, too.
type Cause struct {
	Member, Admin bool
	// change is true for one of the membership that somebody waits for: from then on the pool has a pace.
	change bool
}

// CauseOf returns what an attempt at operations was made for.
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

// OnlyCarried reports whether what was due is gone, and only what it was to take along is left: that
// waits for its own time.
func OnlyCarried(ops []Operation) bool {
	return !slices.ContainsFunc(ops, func(op Operation) bool { return !op.Carried })
}

// OldestChange returns when the oldest change of the membership was seen.
func OldestChange(ops []Operation) time.Time {
	var oldest time.Time
	for _, op := range ops {
		if op.Member() {
			oldest = Earlier(oldest, op.ChangedAt)
		}
	}
	return oldest
}

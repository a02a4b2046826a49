// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"slices"
	"time"

	"weir.dev/weir/internal/ratelimit"
)

// Cause is what caused an attempt. Operations that were not due count once they are settled.
type Cause struct {
	Member, Admin bool
	hasChange     bool
}

// CauseOf returns the cause of an attempt at these operations.
func CauseOf(ops []Operation, settled bool) Cause {
	var c Cause
	for _, op := range ops {
		if op.Extra && !settled {
			continue
		}
		c.hasChange = c.hasChange || op.IsMember() && (!op.IsCheck() || op.OutOfSync)
		c.Admin = c.Admin || op.Admin
		c.Member = c.Member || op.IsMember() && !op.Extra
	}
	return c
}

// HasOnlyExtra reports whether only operations that are not due are left.
func HasOnlyExtra(ops []Operation) bool {
	return !slices.ContainsFunc(ops, func(op Operation) bool { return !op.Extra })
}

// OldestChange returns when the oldest membership change was seen.
func OldestChange(ops []Operation) time.Time {
	var oldest time.Time
	for _, op := range ops {
		if op.IsMember() {
			oldest = ratelimit.MinTime(oldest, op.ChangedAt)
		}
	}
	return oldest
}

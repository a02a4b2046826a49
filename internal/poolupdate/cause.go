// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"slices"
	"time"
)

// cause says for which kinds of operations an attempt was made. What it only took along
// counts once it is settled, too.
type cause struct{ member, fresh, admin bool }

func causeOf(ops []Operation, settled bool) cause {
	var c cause
	for _, op := range ops {
		if op.carried && !settled {
			continue
		}
		c.fresh = c.fresh || op.fresh()
		c.admin = c.admin || op.Admin
		c.member = c.member || op.member() && !op.carried
	}
	return c
}

// onlyCarried reports whether what was due is gone, and only what it was to take along is left: that
// waits for its own time.
func onlyCarried(ops []Operation) bool {
	return !slices.ContainsFunc(ops, func(op Operation) bool { return !op.carried })
}

// oldestChange returns when the oldest change of the membership was seen.
func oldestChange(ops []Operation) time.Time {
	var oldest time.Time
	for _, op := range ops {
		if op.member() {
			oldest = earlier(oldest, op.ChangedAt)
		}
	}
	return oldest
}

// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"time"

	"weir.dev/weir/internal/wholewrite"
)

// TrialBlockedReason returns why a trial on the load balancer must not run now, or "". While nodes only return,
// admin states may be tried: an ignored write then loses no flow.
func (g Group) TrialBlockedReason(now time.Time, c wholewrite.Change) string {
	switch {
	case g.NotBefore().After(now):
		return "a pool waits for a Retry-After"
	case g.isFailing():
		return ""
	case g.Admin != nil && g.Admin.Impact.Stopping > 0:
		return "nodes drain"
	case g.Admin != nil && c != wholewrite.AdminStates:
		return "nodes return"
	case g.Retry, g.Admin != nil && g.Admin.FailedAttempts > 0:
		return "a pool fails"
	case g.history.Writes.PendingEtag != "":
		return "the fate of a write is not known"
	case g.history.DelayCount > 0:
		return "something of Weir's own is not ready"
	}
	return ""
}

// maxFailures is the number of failures or postponements without a retry limit after which a pool
// counts as failing.
const maxFailures = 5

// isFailing reports whether the pool fails persistently. Such a pool joins no trial and blocks none.
func (g Group) isFailing() bool {
	tries := 0
	if g.Admin != nil {
		tries = g.Admin.FailedAttempts
	}
	return g.history.FinalError != "" || g.history.ExcludedFromBatch && (g.Retry || tries > 0) || tries >= maxFailures || g.history.DelayCount >= maxFailures
}

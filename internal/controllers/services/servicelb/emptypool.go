// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"fmt"
	"time"
)

// EmptyPoolState tracks whether a backend pool is empty in Azure but should have members.
type EmptyPoolState struct {
	// pool is its name; empty for none. is is set once the status must report it; since is when this process
	// first saw it empty, or did not know yet.
	pool  string
	is    bool
	since time.Time
}

// recordEmptyPool records which pool is empty, or was not read yet; reason is that of the condition. A filled pool is
// reported at once.
func (u *EmptyPoolState) recordEmptyPool(pool string, known bool, reason string, now time.Time) {
	if pool == "" {
		*u = EmptyPoolState{}
		return
	}
	if u.pool = pool; u.since.IsZero() {
		u.since = now
	}
	u.is = u.is || reason == ConditionReasonPoolEmpty || known && !now.Before(u.since.Add(noEndpointsDelay))
}

// nextCheck returns when to check the pool again; 0 for never.
func (u *EmptyPoolState) nextCheck(now time.Time) time.Duration {
	switch {
	case u.pool == "":
		return 0
	case u.is, !now.Before(u.since.Add(noEndpointsDelay)):
		return noEndpointsDelay
	}
	return u.since.Add(noEndpointsDelay).Sub(now)
}

func (u *EmptyPoolState) messageText() string {
	return fmt.Sprintf("Backend pool %s has no members in Azure, although nodes should be in it: no flow is served. The status of its BackendPool has the reason", u.pool)
}

// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"fmt"
	"time"
)

// EmptyPoolState tracks whether a backend pool is empty in Azure but should have members.
type EmptyPoolState struct {
	// pool is its name; empty for none. is is set once the status must report it; since is when this process
	// first saw it empty.
	pool  string
	is    bool
	since time.Time
}

// recordEmptyPool records which pool is empty; reason is that of the condition. A filled pool is reported at once.
func (e *EmptyPoolState) recordEmptyPool(pool, reason string, now time.Time) {
	if pool == "" {
		*e = EmptyPoolState{}
		return
	}
	if e.pool = pool; e.since.IsZero() {
		e.since = now
	}
	e.is = e.is || reason == ConditionReasonPoolEmpty || !now.Before(e.since.Add(noEndpointsDelay))
}

// nextCheck returns when to check the pool again; 0 for never.
func (e *EmptyPoolState) nextCheck(now time.Time) time.Duration {
	switch {
	case e.pool == "":
		return 0
	case e.is:
		return noEndpointsDelay
	}
	return max(e.since.Add(noEndpointsDelay).Sub(now), time.Millisecond)
}

func (e *EmptyPoolState) messageText() string {
	return fmt.Sprintf("Backend pool %s has no members in Azure, although nodes should be in it: no flow is served. The status of its BackendPool has the reason", e.pool)
}

// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"fmt"
	"time"
)

// Unfilled says whether a backend pool of a Service is empty in Azure though members are to be in it.
type Unfilled struct {
	// pool is its name; empty for none. is is true once the status is to say so, and since is from when on the pool has
	// been empty, as far as this process knows.
	pool  string
	is    bool
	since time.Time
}

// sees takes in which pool is empty, and what the status says. That none is empty any more is said at once.
func (u *Unfilled) sees(pool, shown string, now time.Time) {
	if pool == "" {
		*u = Unfilled{}
		return
	}
	if u.pool = pool; u.since.IsZero() {
		u.since = now
	}
	u.is = u.is || shown == WhyPoolEmpty || !now.Before(u.since.Add(emptyAfter))
}

// wait is when the pool is looked at again; 0 for never.
func (u *Unfilled) wait(now time.Time) time.Duration {
	switch {
	case u.pool == "":
		return 0
	case u.is:
		return emptyAfter
	}
	return max(u.since.Add(emptyAfter).Sub(now), time.Millisecond)
}

func (u *Unfilled) text() string {
	return fmt.Sprintf("Backend pool %s has no members in Azure though nodes are to be in it: no flow is served. Its BackendPool says what keeps them out", u.pool)
}

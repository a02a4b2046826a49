// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"time"

	"weir.dev/weir/internal/poolupdate"
)

// burst is how many attempts for changes a quiet pool has in hand, of which one more comes back
// each interval. One more than these is one that a look for drift makes of itself, if a change
// comes after the lane has taken the pool and while it waits for its locks.
const (
	burst  = 3
	inHand = burst + 1
)

// stock is what a pool has left of them, by the stage's own count. The zero value is a
// full one.
type stock struct {
	spent float64
	at    time.Time // when that was so
	added int       // the operations that have been paid for
}

// paces pays for an attempt, and says what is wrong if there was nothing left to pay with.
// A look, what was tried again and what was postponed cost nothing. The caller holds s.mu.
func (s *Stage) paces(k *pool, r poolupdate.Report) {
	if r.Admin && !r.AdminRetryAt.IsZero() {
		return // the change that went along has not been attempted, and waits as before
	}
	p := &k.stock
	fresh := k.attempt.added > p.added && !r.Drift
	if p.added = k.attempt.added; !fresh || r.Admin && !r.Settled {
		return
	}
	back := k.begun.Sub(p.at).Seconds() / s.opts.Interval.Seconds()
	p.spent, p.at = max(0, p.spent-back), k.begun
	if r.Admin && p.spent > burst-1 {
		return // admin states wait for none, and what goes along leaves no debt
	}
	if p.spent++; p.spent > inHand+0.001 {
		s.journal.hasty = append(s.journal.hasty, fmt.Sprintf("%s is attempted at %s for a change, and had no attempt left", k.id.Name, s.clock(k.begun)))
	}
}

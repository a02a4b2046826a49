// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// What Azure takes of a subscription's writes, by the stage's own idea of it.
const (
	quotaOf   = 1000
	quotaTime = 5 * time.Minute
)

// paced is what the stage keeps of a pool's pace.
type paced struct {
	begun time.Time // when the last attempt for a change did
	added int       // the operations that have been attempted
	spent int       // what the process had written when its attempt began
}

// spends counts a write that leaves. The caller holds s.mu.
func (p *process) spends(c call) {
	if c.kind != http.MethodPut && c.kind != http.MethodDelete {
		return
	}
	sub := strings.ToLower(c.pool.LoadBalancer.SubscriptionID)
	p.spent[sub] = append(p.spent[sub], time.Now())
}

// spentOn returns how many writes of a pool's subscription left in the last five minutes, as far
// as the process can know: one that has died counts for nobody. The caller holds s.mu.
func (s *Stage) spentOn(k *pool) int {
	sub, now := strings.ToLower(k.id.LoadBalancer.SubscriptionID), time.Now()
	s.process.spent[sub] = slices.DeleteFunc(s.process.spent[sub], func(at time.Time) bool { return now.Sub(at) >= quotaTime })
	return len(s.process.spent[sub])
}

func (s *Stage) share() int { return quotaOf * s.opts.SharePercent / 100 }

// paces says what is wrong if an attempt for a change began within an interval of the one before
// though the share was spent. Each lane may have a write under way that was not sent when that was
// decided, and who goes with others may be earlier by as long as a change waits for company. A look,
// what was tried again, and admin states have no pace, and where the pool is gone nothing is spent. The caller holds s.mu.
func (s *Stage) paces(k *pool, added int, exempt bool) {
	p := &k.paced
	fresh := added > p.added
	if p.added = added; !fresh {
		return
	}
	early := !p.begun.IsZero() && k.begun.Sub(p.begun) < s.opts.Interval-company
	if p.begun = k.begun; exempt || !early {
		return
	}
	if over := p.spent - s.share() - 2*len(s.balances); over >= 0 {
		s.journal.hasty = append(s.journal.hasty, fmt.Sprintf("%s is attempted at %s for a change, %d writes being spent of %d", k.id.Name, s.clock(k.begun), p.spent, s.share()))
	}
}

// plenty reports whether so little is spent that no pool has to wait for long: half of the share
// is left beyond what all pools may need. The caller holds s.mu.
func (s *Stage) plenty(k *pool) bool {
	needed := len(s.pools) * int(quotaTime/s.opts.Interval)
	return s.spentOn(k)+needed <= s.share()/2
}

// pacedUntil is when the pace of a pool lets it be attempted, at the latest. The caller holds s.mu.
func (s *Stage) pacedUntil(k *pool) time.Time {
	switch {
	case k.ended.IsZero():
		return time.Time{}
	case k.backsOff || !s.plenty(k):
		return k.ended.Add(s.opts.Interval)
	}
	return k.begun.Add(s.opts.Interval / 3)
}

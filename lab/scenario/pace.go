// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Azure's write quota per subscription, restated independently.
const (
	quotaOf   = 1000
	quotaTime = 5 * time.Minute
)

// paced tracks the pace of a pool.
type paced struct {
	begun time.Time // start of the last attempt for a change
	added int       // operations attempted
	spent int       // writes of the process when its attempt began
}

// spends counts a sent write. The caller holds s.mu.
func (p *process) spends(c call) {
	if c.kind != http.MethodPut && c.kind != http.MethodDelete {
		return
	}
	sub := strings.ToLower(c.pool.LoadBalancer.SubscriptionID)
	p.spent[sub] = append(p.spent[sub], time.Now())
}

// spentOn returns how many writes the process sent to a pool's subscription in the last five
// minutes. Writes of dead processes do not count. The caller holds s.mu.
func (s *Stage) spentOn(k *pool) int {
	sub, now := strings.ToLower(k.id.LoadBalancer.SubscriptionID), time.Now()
	s.process.spent[sub] = slices.DeleteFunc(s.process.spent[sub], func(at time.Time) bool { return now.Sub(at) >= quotaTime })
	return len(s.process.spent[sub])
}

func (s *Stage) share() int { return quotaOf * s.opts.SharePercent / 100 }

// paces records a violation if an attempt for a change began within an interval of the previous one
// although the quota share was used up. Tolerances: each worker may have one unsent write, and
// batched pools may be early by the wait for company. Reads, retries, admin states and missing
// pools have no pace. The caller holds s.mu.
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

// plenty reports whether no pool must wait long: half of the share exceeds what all pools may need.
// The caller holds s.mu.
func (s *Stage) plenty(k *pool) bool {
	needed := len(s.pools) * int(quotaTime/s.opts.Interval)
	return s.spentOn(k)+needed <= s.share()/2
}

// pacedUntil returns the latest time at which the pace allows an attempt. The caller holds s.mu.
func (s *Stage) pacedUntil(k *pool) time.Time {
	switch {
	case k.ended.IsZero():
		return time.Time{}
	case k.backsOff || !s.plenty(k):
		return k.ended.Add(s.opts.Interval)
	}
	return k.begun.Add(s.opts.Interval / 3)
}

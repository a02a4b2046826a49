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

// poolRate tracks the pace of a pool.
type poolRate struct {
	startedAt     time.Time // start of the last attempt for a change
	operations    int       // operations attempted
	processWrites int       // writes of the process when its attempt began
}

// countWrite counts a sent write. The caller holds s.mu.
func (p *process) countWrite(c call) {
	if c.kind != http.MethodPut && c.kind != http.MethodDelete {
		return
	}
	sub := strings.ToLower(c.pool.LoadBalancer.SubscriptionID)
	p.writeTimes[sub] = append(p.writeTimes[sub], time.Now())
}

// countWrites returns how many writes the process sent to a pool's subscription in the last five
// minutes. Writes of dead processes do not count. The caller holds s.mu.
func (s *Stage) countWrites(k *pool) int {
	sub, now := strings.ToLower(k.id.LoadBalancer.SubscriptionID), time.Now()
	s.process.writeTimes[sub] = slices.DeleteFunc(s.process.writeTimes[sub], func(at time.Time) bool { return now.Sub(at) >= quotaTime })
	return len(s.process.writeTimes[sub])
}

func (s *Stage) writeShare() int { return quotaOf * s.opts.SharePercent / 100 }

// checkRate records a violation if an attempt for a change began within an interval of the previous one
// although the quota share was used up. Tolerances: each worker may have one unsent write, and
// batched pools may be early by the wait for company. Reads, retries, admin states and missing
// pools have no pace. The caller holds s.mu.
func (s *Stage) checkRate(k *pool, added int, exempt bool) {
	p := &k.rate
	fresh := added > p.operations
	if p.operations = added; !fresh {
		return
	}
	early := !p.startedAt.IsZero() && k.startedAt.Sub(p.startedAt) < s.opts.Interval-maxJoinDelay
	if p.startedAt = k.startedAt; exempt || !early {
		return
	}
	if over := p.processWrites - s.writeShare() - 2*len(s.loadBalancers); over >= 0 {
		s.history.earlyAttempts = append(s.history.earlyAttempts, fmt.Sprintf("%s is attempted at %s for a change, %d writes being spent of %d", k.id.Name, s.formatTime(k.startedAt), p.processWrites, s.writeShare()))
	}
}

// hasSpareQuota reports whether no pool must wait long: half of the share exceeds what all pools may need, and no 429
// for the quota of writes has lowered the share, which takes hours to rise again. The caller holds s.mu.
func (s *Stage) hasSpareQuota(k *pool) bool {
	if s.throttleGates["writes of "+strings.ToLower(k.id.LoadBalancer.SubscriptionID)] != nil {
		return false
	}
	needed := len(s.pools) * int(quotaTime/s.opts.Interval)
	return s.countWrites(k)+needed <= s.writeShare()/2
}

// rateDeadline returns the latest time at which the pace allows an attempt. The caller holds s.mu.
func (s *Stage) rateDeadline(k *pool) time.Time {
	switch {
	case k.endedAt.IsZero():
		return time.Time{}
	case k.inBackoff || !s.hasSpareQuota(k):
		return k.endedAt.Add(s.opts.Interval)
	}
	return k.startedAt.Add(s.opts.Interval / 3)
}

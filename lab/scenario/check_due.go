// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"
	"time"
)

func inTime(s *Stage) []string {
	broken := slices.Clone(s.journal.late)
	for _, r := range s.journal.reports {
		if over := r.RetryAt.Sub(r.bound); r.WillRetry && over > time.Second {
			broken = append(broken, fmt.Sprintf("%s: after %s it waits until %s, %s longer than it has to", r.Pool.Name, r.Outcome, s.clock(r.RetryAt), over))
		}
	}
	if s.process == nil || s.process.dead {
		return broken
	}
	now := time.Now()
	for _, id := range s.balances {
		broken = append(broken, s.overdue(id, now)...)
	}
	for _, k := range s.sorted() {
		if lasts := now.Sub(later(k.begun, s.process.woke)); k.underWay() && !k.looked() && s.process.asleep == nil && lasts > longestAttempt+time.Minute {
			broken = append(broken, fmt.Sprintf("an attempt of %s lasts %s", k.id.Name, lasts))
		}
	}
	return broken
}

func fair(s *Stage) []string {
	broken := slices.Clone(s.journal.unfair)
	for _, r := range s.journal.reports {
		if r.Resync && r.passed != "" {
			broken = append(broken, fmt.Sprintf("%s was looked at for drift before %s", r.Pool.Name, r.passed))
		}
	}
	return broken
}

func handsOff(s *Stage) []string {
	broken := slices.Clone(s.journal.left)
	for _, c := range s.journal.calls {
		if c.off != "" {
			broken = append(broken, fmt.Sprintf("%s of %s at %s: %s", c.kind, c.pool.Name, s.clock(c.at), c.off))
		}
	}
	return broken
}

// handsOff returns why Azure must not be called for a pool, or "". SDK retries belong to the
// original request. The caller holds s.mu.
func (s *Stage) handsOff(c call) string {
	k := s.pools[c.pool.Key()]
	if k == nil || c.again || c.second || c.kind != "GET" && c.kind != "PUT" {
		return ""
	}
	switch b := s.cluster.bindings[k.id.Name]; {
	case b == nil:
		return "no BackendPool names it"
	case b.paused:
		return "its BackendPool is paused"
	}
	return ""
}

// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"
	"time"
)

func checkDelays(s *Stage) []string {
	broken := slices.Clone(s.history.expiredAttempts)
	for _, r := range s.history.reports {
		if over := r.RetryAt.Sub(r.retryDeadline); r.WillRetry && over > time.Second {
			broken = append(broken, fmt.Sprintf("%s: after %s it waits until %s, %s longer than it has to", r.Pool.Name, r.Outcome, s.formatTime(r.RetryAt), over))
		}
	}
	if s.process == nil || s.process.killed {
		return broken
	}
	now := time.Now()
	for _, id := range s.loadBalancers {
		broken = append(broken, s.overdueChanges(id, now)...)
	}
	for _, k := range s.sortedPools() {
		if duration := now.Sub(latest(k.startedAt, s.process.resumeTime)); k.isAttempted() && !k.isBatchRead() && s.process.resumeSignal == nil && duration > attemptTimeout+time.Minute {
			broken = append(broken, fmt.Sprintf("an attempt of %s lasts %s", k.id.Name, duration))
		}
	}
	return broken
}

func checkOrder(s *Stage) []string {
	broken := slices.Clone(s.history.orderErrors)
	for _, r := range s.history.reports {
		if r.Resync && r.overtakenChange != "" {
			broken = append(broken, fmt.Sprintf("%s was looked at for drift before %s", r.Pool.Name, r.overtakenChange))
		}
	}
	return broken
}

func checkNoAccess(s *Stage) []string {
	broken := slices.Clone(s.history.orphanedAddresses)
	for _, c := range s.history.calls {
		if c.skipReason != "" {
			broken = append(broken, fmt.Sprintf("%s of %s at %s: %s", c.kind, c.pool.Name, s.formatTime(c.at), c.skipReason))
		}
	}
	return broken
}

// noAccessReason returns why Azure must not be called for a pool, or "". SDK retries belong to the
// original request. The caller holds s.mu.
func (s *Stage) noAccessReason(c call) string {
	k := s.pools[c.pool.Key()]
	if k == nil || c.isRetry || c.isSecondRead || c.kind != "GET" && c.kind != "PUT" {
		return ""
	}
	switch b := s.cluster.bindings[k.id.Name]; {
	case b == nil:
		return "no BackendPool names it"
	case b.isPaused:
		return "its BackendPool is paused"
	}
	return ""
}

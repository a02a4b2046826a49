// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

func checkExclusive(s *Stage) []string {
	var broken []string
	for _, c := range s.history.calls {
		if c.sharedReason != "" {
			broken = append(broken, fmt.Sprintf("%s of %s at %s: %s", c.kind, c.pool.Name, s.formatTime(c.at), c.sharedReason))
		}
	}
	return broken
}

func checkLockOrder(s *Stage) []string {
	p := s.process
	if p == nil || p.killed || p.lease == nil {
		return nil
	}
	atWork := map[lb.LoadBalancerKey]bool{}
	for _, k := range s.pools {
		if k.attempt != nil {
			atWork[k.id.LoadBalancer.Key()] = true
		}
	}
	// A worker that just entered may still be checking the gates.
	if n := p.lease.workers; p.resumeSignal == nil && n > len(atWork) && time.Since(latest(p.lease.enteredAt, p.resumeTime)) > time.Second {
		return []string{fmt.Sprintf("%d lanes are in the lease, and %d are at work", n, len(atWork))}
	}
	return nil
}

// releaseTimeout is the maximum duration of a lease release.
const releaseTimeout = 15 * time.Second

func checkLeaseSharing(s *Stage) []string {
	broken := slices.Clone(s.history.leaseErrors)
	p := s.process
	if p == nil || p.killed || p.lease == nil {
		return broken
	}
	e, now := p.lease, time.Now()
	if idle := now.Sub(latest(e.exitedAt, p.resumeTime)); p.resumeSignal == nil && e.workers == 0 && !e.releaseFailed && !e.exitedAt.IsZero() && s.lease.currentHolder(now) == p.name && idle > releaseTimeout {
		broken = append(broken, fmt.Sprintf("nobody is at work for %s, and the lease is still held", idle))
	}
	return broken
}

// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

func alone(s *Stage) []string {
	var broken []string
	for _, c := range s.journal.calls {
		if c.alone != "" {
			broken = append(broken, fmt.Sprintf("%s of %s at %s: %s", c.kind, c.pool.Name, s.clock(c.at), c.alone))
		}
	}
	return broken
}

func orderOfLocks(s *Stage) []string {
	p := s.process
	if p == nil || p.dead || p.lease == nil {
		return nil
	}
	atWork := map[lb.LoadBalancerKey]bool{}
	for _, k := range s.pools {
		if k.attempt != nil {
			atWork[k.id.LoadBalancer.Key()] = true
		}
	}
	// A worker that just entered may still be checking the gates.
	if n := p.lease.in; p.asleep == nil && n > len(atWork) && time.Since(later(p.lease.entered, p.woke)) > time.Second {
		return []string{fmt.Sprintf("%d lanes are in the lease, and %d are at work", n, len(atWork))}
	}
	return nil
}

// givenBack is the maximum duration of a lease release.
const givenBack = 15 * time.Second

func leaseIsShared(s *Stage) []string {
	broken := slices.Clone(s.journal.selfish)
	p := s.process
	if p == nil || p.dead || p.lease == nil {
		return broken
	}
	e, now := p.lease, time.Now()
	if idle := now.Sub(later(e.left, p.woke)); p.asleep == nil && e.in == 0 && !e.stuck && !e.left.IsZero() && s.lease.heldBy(now) == p.name && idle > givenBack {
		broken = append(broken, fmt.Sprintf("nobody is at work for %s, and the lease is still held", idle))
	}
	return broken
}

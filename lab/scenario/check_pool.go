// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

func levelAtRest(s *Stage) []string {
	p := s.process
	if p == nil || p.dead || !s.resting(p) || p.lagging() {
		return nil
	}
	var broken []string
	for _, k := range s.sorted() {
		if k.givenUp || k.deleted || k.drifted || !s.kept(k) || s.laneAtWork(k) {
			continue
		}
		if how := s.unlevel(k); how != "" {
			broken = append(broken, k.id.Name+": "+how)
		}
	}
	return broken
}

// laneAtWork reports whether a read of a pool is in progress in the worker. It is no change, and
// may repair the result of a write. The caller holds s.mu.
func (s *Stage) laneAtWork(k *pool) bool {
	for _, other := range s.pools {
		if k.inLane(other) && other.underWay() {
			return true
		}
	}
	return false
}

func levelInTime(s *Stage) []string {
	if s.opts.DriftPeriod == 0 {
		return nil
	}
	bound := s.opts.DriftPeriod + 2*s.opts.Interval + 30*time.Second
	var broken []string
	for _, k := range s.sorted() {
		if k.offSince.IsZero() || !s.kept(k) {
			continue
		}
		if off := time.Since(later(k.offSince, k.trouble)); off > bound {
			broken = append(broken, fmt.Sprintf("%s is not level for %s: %s", k.id.Name, off, s.unlevel(k)))
		}
	}
	return broken
}

// soon returns the maximum duration of a change. With recorded latencies a worker may wait for
// writes of several other pools.
func (s *Stage) soon() time.Duration {
	if s.opts.Latency != "" {
		return longestAttempt
	}
	return 2*s.opts.Interval + 30*time.Second
}

func soonLevel(s *Stage) []string {
	bound := s.soon()
	var broken []string
	for _, k := range s.sorted() {
		if k.offSince.IsZero() || k.givenUp || k.deleted || k.drifted || !s.kept(k) {
			continue
		}
		if late := time.Since(later(k.offSince, k.trouble)); late > bound {
			broken = append(broken, fmt.Sprintf("%s is not level for %s: %s", k.id.Name, late, s.unlevel(k)))
		}
	}
	return broken
}

func foreignSurvives(s *Stage) []string {
	broken := slices.Clone(s.journal.lost)
	for _, k := range s.sorted() {
		if missing := s.missingForeign(k); missing != "" {
			broken = append(broken, k.id.Name+" has lost "+missing)
		}
	}
	return broken
}

func nothingUnwanted(s *Stage) []string {
	bound := s.soon()
	var broken []string
	for _, k := range s.sorted() {
		if k.givenUp || k.deleted || k.drifted || !s.kept(k) {
			continue
		}
		for ip, since := range k.unwanted {
			if late := time.Since(later(since, k.trouble)); late > bound {
				broken = append(broken, fmt.Sprintf("%s holds %s %s after it had to go", k.id.Name, ip, late))
			}
		}
	}
	return broken
}

func nothingRises(s *Stage) []string {
	var broken []string
	for _, c := range s.journal.calls {
		k := s.pools[c.pool.Key()]
		if c.created {
			broken = append(broken, c.pool.Name+" was created by a write")
		}
		if !c.gone || c.kind != "PUT" {
			continue
		}
		for _, ip := range c.holds {
			if s.cluster.has(ip) && !foreignTo(k, ip) {
				broken = append(broken, fmt.Sprintf("%s got %s although its Service is gone", c.pool.Name, ip))
			}
		}
	}
	for _, k := range s.sorted() {
		held, there := s.holds(k)
		if there && k.deleted {
			broken = append(broken, k.id.Name+" was deleted and is there again")
		}
		for _, a := range held {
			if k.emptied && !foreignTo(k, a.IP) && !k.left.put[a.IP] {
				broken = append(broken, fmt.Sprintf("%s got %s although its BackendPool is gone", k.id.Name, a.IP))
			}
		}
	}
	return broken
}

func boundedQueue(s *Stage) []string {
	if s.process == nil || s.process.dead {
		return nil
	}
	most := len(s.pools) * (2 + s.opts.MaxRetries)
	if s.opts.AdminState {
		most += len(s.pools)
	}
	if n := s.process.lanes.Backlog().Operations; n > most {
		return []string{fmt.Sprintf("%d operations wait for %d pools, at most %d may", n, len(s.pools), most)}
	}
	return nil
}

func foreignTo(k *pool, ip netip.Addr) bool {
	for _, f := range k.foreign {
		if f.IP == ip {
			return true
		}
	}
	return false
}

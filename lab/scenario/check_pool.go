// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

func checkIdleInSync(s *Stage) []string {
	p := s.process
	if p == nil || p.killed || !s.isIdle(p) || p.hasPendingEvents() {
		return nil
	}
	var broken []string
	for _, k := range s.sortedPools() {
		if k.gaveUp || k.deleted || k.isDrifted || !s.isManaged(k) || s.isReadInProgress(k) {
			continue
		}
		if how := s.outOfSyncReason(k); how != "" {
			broken = append(broken, k.id.Name+": "+how)
		}
	}
	return broken
}

// isReadInProgress reports whether a read of a pool is in progress in the worker. It is no change, and
// may repair the result of a write. The caller holds s.mu.
func (s *Stage) isReadInProgress(k *pool) bool {
	for _, other := range s.pools {
		if k.sharesLoadBalancer(other) && other.isAttempted() {
			return true
		}
	}
	return false
}

func checkDriftRepair(s *Stage) []string {
	if s.opts.DriftPeriod == 0 {
		return nil
	}
	bound := s.opts.DriftPeriod + 2*s.opts.Interval + 30*time.Second
	var broken []string
	for _, k := range s.sortedPools() {
		if k.outOfSyncSince.IsZero() || !s.isManaged(k) {
			continue
		}
		if off := time.Since(latest(k.outOfSyncSince, k.faultEnd)); off > bound {
			broken = append(broken, fmt.Sprintf("%s is not in sync for %s: %s", k.id.Name, off, s.outOfSyncReason(k)))
		}
	}
	return broken
}

// maxChangeTime returns the maximum duration of a change. With recorded latencies a worker may wait for
// writes of several other pools.
func (s *Stage) maxChangeTime() time.Duration {
	if s.opts.Latency != "" {
		return attemptTimeout
	}
	return 2*s.opts.Interval + 30*time.Second
}

func checkChangeDelay(s *Stage) []string {
	bound := s.maxChangeTime()
	var broken []string
	for _, k := range s.sortedPools() {
		if k.outOfSyncSince.IsZero() || k.gaveUp || k.deleted || k.isDrifted || !s.isManaged(k) {
			continue
		}
		if late := time.Since(latest(k.outOfSyncSince, k.faultEnd)); late > bound {
			broken = append(broken, fmt.Sprintf("%s is not in sync for %s: %s", k.id.Name, late, s.outOfSyncReason(k)))
		}
	}
	return broken
}

func checkForeign(s *Stage) []string {
	broken := slices.Clone(s.history.foreignRemoved)
	for _, k := range s.sortedPools() {
		if missing := s.missingForeign(k); missing != "" {
			broken = append(broken, k.id.Name+" has lost "+missing)
		}
	}
	return broken
}

func checkExtra(s *Stage) []string {
	bound := s.maxChangeTime()
	var broken []string
	for _, k := range s.sortedPools() {
		if k.gaveUp || k.deleted || k.isDrifted || !s.isManaged(k) {
			continue
		}
		for ip, since := range k.extraSince {
			if late := time.Since(latest(since, k.faultEnd)); late > bound {
				broken = append(broken, fmt.Sprintf("%s holds %s %s after it had to go", k.id.Name, ip, late))
			}
		}
	}
	return broken
}

func checkRemoved(s *Stage) []string {
	var broken []string
	for _, c := range s.history.calls {
		k := s.pools[c.pool.Key()]
		if c.created {
			broken = append(broken, c.pool.Name+" was created by a write")
		}
		if !c.noDesiredState || c.kind != "PUT" {
			continue
		}
		for _, ip := range c.addresses {
			if s.cluster.hasAddress(ip) && !isForeignAddress(k, ip) {
				broken = append(broken, fmt.Sprintf("%s got %s although its Service is gone", c.pool.Name, ip))
			}
		}
	}
	for _, k := range s.sortedPools() {
		held, ok := s.azureAddresses(k)
		if ok && k.deleted {
			broken = append(broken, k.id.Name+" was deleted and is there again")
		}
		for _, a := range held {
			if k.isEmpty && !isForeignAddress(k, a.IP) && !k.orphaned.added[a.IP] {
				broken = append(broken, fmt.Sprintf("%s got %s although its BackendPool is gone", k.id.Name, a.IP))
			}
		}
	}
	return broken
}

func checkQueueSize(s *Stage) []string {
	if s.process == nil || s.process.killed {
		return nil
	}
	limit := len(s.pools) * (2 + s.opts.MaxRetries)
	if s.opts.AdminState {
		limit += len(s.pools)
	}
	if n := s.process.updater.Backlog().Operations; n > limit {
		return []string{fmt.Sprintf("%d operations wait for %d pools, at most %d may", n, len(s.pools), limit)}
	}
	return nil
}

func isForeignAddress(k *pool, ip netip.Addr) bool {
	for _, f := range k.foreign {
		if f.IP == ip {
			return true
		}
	}
	return false
}

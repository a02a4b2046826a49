// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"net/netip"
	"slices"
)

// minReverts is the number of consecutive reverts that make a conflict. One may be a manual edit.
const minReverts = 2

// conflictState tracks another client that reverts a pool. Weir reports it, and still repairs the pool.
type conflictState struct {
	managed []netip.Addr
	// Addresses that disappear once each, such as those of deleted machines, do not count.
	reverted    []netip.Addr
	revertCount int
	isRepairing bool
}

// recordAttempt ends a conflict only by a check: a change may just see the repaired pool.
func (c conflictState) recordAttempt(r Result, down []netip.Addr, look bool) conflictState {
	switch {
	case r.Outcome == Stale, r.Outcome == Rejected:
		return conflictState{} // a new pool starts over
	case !r.StatesInSync():
		return c
	}
	reverted := intersect(r.Change.MarkedDown, down)
	if !c.isRepairing {
		reverted = append(reverted, intersect(r.Change.addedIPs, c.managed)...)
	}
	switch {
	case len(reverted) > 0:
		if repeated := intersect(reverted, c.reverted); len(repeated) > 0 {
			reverted = repeated
		} else {
			c.revertCount = 0
		}
		c.reverted, c.revertCount = sortIPs(reverted), c.revertCount+1
	case look && !c.isRepairing:
		c.reverted, c.revertCount = nil, 0
	}
	c.isRepairing = r.MemberProgress != nil && (c.isRepairing || len(intersect(r.Change.addedIPs, c.managed)) > 0)
	if r.IsInSync() {
		c.managed = r.written
	} else { // removed by Weir itself: if wanted again early, they were not reverted
		c.managed = slices.DeleteFunc(slices.Clone(c.managed), func(ip netip.Addr) bool { return slices.Contains(r.Change.removedIPs, ip) })
	}
	return c
}

// ConflictingIPs returns the addresses that another client keeps reverting.
func (c conflictState) ConflictingIPs() []netip.Addr {
	if c.revertCount < minReverts {
		return nil
	}
	return c.reverted
}

func intersect(a, b []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(a), func(ip netip.Addr) bool { return !slices.Contains(b, ip) })
}

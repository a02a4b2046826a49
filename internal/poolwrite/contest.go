// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"net/netip"
	"slices"
)

// timesUndone is the number of consecutive reverts that make a conflict. One may be a manual edit.
const timesUndone = 2

// contest tracks another client that reverts a pool. It is only reported; Weir still repairs the
// pool, since no endpoint may be lost.
type contest struct {
	// holds are the managed addresses when last in sync; nil if never.
	holds []netip.Addr
	// undone are the last reverted addresses. Addresses that disappear once each, such as those of
	// deleted machines, do not count.
	undone []netip.Addr
	// times is how often in a row they were reverted.
	times int
	// repairing is true while machines rejoin: missing ones were already counted.
	repairing bool
}

// learn processes an attempt. down are the addresses Down before it. Only a check ends a conflict,
// because a change may just see the repaired pool.
func (c contest) learn(r Result, down []netip.Addr, look bool) contest {
	switch {
	case r.Outcome == Stale, r.Outcome == Refused:
		return contest{} // a new pool starts over
	case !r.Directed():
		return c
	}
	reverted := both(r.Todo.Downed, down)
	if !c.repairing {
		reverted = append(reverted, both(r.Todo.added, c.holds)...)
	}
	switch {
	case len(reverted) > 0:
		if repeated := both(reverted, c.undone); len(repeated) > 0 {
			reverted = repeated
		} else {
			c.times = 0
		}
		c.undone, c.times = sorted(reverted), c.times+1
	case look && !c.repairing:
		c.undone, c.times = nil, 0
	}
	c.repairing = r.Handed != nil && (c.repairing || len(both(r.Todo.added, c.holds)) > 0)
	if r.Settled() {
		c.holds = r.written
	} else { // removed by Weir itself: if wanted again early, they were not reverted
		c.holds = slices.DeleteFunc(slices.Clone(c.holds), func(ip netip.Addr) bool { return slices.Contains(r.Todo.removed, ip) })
	}
	return c
}

// Contested returns the addresses that another client keeps reverting.
func (c contest) Contested() []netip.Addr {
	if c.times < timesUndone {
		return nil
	}
	return c.undone
}

func both(a, b []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(a), func(ip netip.Addr) bool { return !slices.Contains(b, ip) })
}

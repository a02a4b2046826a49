// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"net/netip"
	"slices"
)

// timesUndone is the number of consecutive reverts that make a conflict; a single one may be a
// manual edit.
const timesUndone = 2

// contest tracks another client that reverts a pool. It is only reported: Weir repairs the pool all
// the same, since no endpoint may be lost.
type contest struct {
	// holds are the managed addresses when the pool was last in sync; nil if it has not been.
	holds []netip.Addr
	// undone are the addresses reverted last, and times the number of consecutive reverts of the
	// same ones. Addresses that disappear once each, such as deleted machines, do not count.
	undone []netip.Addr
	times  int
	// repairing is true while machines rejoin the pool: what is missing was already counted.
	repairing bool
}

// learn processes an attempt. down are the addresses that Weir had set Down before it. Only a check
// without reverts ends a conflict, because a change right after a repair sees the repaired pool.
func (c contest) learn(r Result, down []netip.Addr, look bool) contest {
	switch {
	case r.Outcome == Stale, r.Outcome == Refused:
		return contest{} // a new pool starts over
	case !r.Directed():
		return c
	}
	undone := both(r.Todo.Downed, down)
	if !c.repairing {
		undone = append(undone, both(r.Todo.added, c.holds)...)
	}
	switch {
	case len(undone) > 0:
		if again := both(undone, c.undone); len(again) > 0 {
			undone = again
		} else {
			c.times = 0
		}
		c.undone, c.times = sorted(undone), c.times+1
	case look && !c.repairing:
		c.undone, c.times = nil, 0
	}
	c.repairing = r.Handed != nil && (c.repairing || len(both(r.Todo.added, c.holds)) > 0)
	if r.Settled() {
		c.holds = r.written
	} else { // Weir removes these itself: wanted again early, they were not reverted
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

// both returns the addresses in both lists.
func both(a, b []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(a), func(ip netip.Addr) bool { return !slices.Contains(b, ip) })
}

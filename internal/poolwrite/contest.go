// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"net/netip"
	"slices"
)

// timesUndone is how often in a row a pool has to be found changed back for a contest: somebody
// may have edited it by hand once.
const timesUndone = 2

// contest is what a lane remembers of somebody else who changes a pool back. What is repaired,
// and when, does not depend on it: an endpoint may never be lost.
type contest struct {
	// holds is what was ours in the pool when it was last known to be level; nil if it was not
	// since the start.
	holds []netip.Addr
	// undone is what was found changed back last, and times how often in a row.
	undone []netip.Addr
	times  int
	// repairing is true while machines are on their way back into the pool: who is missing meanwhile was
	// counted, and one that is gone was taken out by nobody.
	repairing bool
}

// learn takes in an attempt. down are the addresses that were Down by us before it. Only a look
// that finds nothing undone ends a contest: a change that comes right after a repair finds the
// pool as it was repaired.
func (c contest) learn(r Result, down []netip.Addr, look bool) contest {
	switch {
	case r.Outcome == Stale, r.Outcome == Refused:
		return contest{} // another pool, if there is one again
	case !r.Directed():
		return c
	}
	undone := both(r.Todo.Downed, down)
	if !c.repairing {
		undone = append(undone, both(r.Todo.added, c.holds)...)
	}
	switch {
	case len(undone) > 0:
		c.undone, c.times = sorted(undone), c.times+1
	case look && !c.repairing:
		c.undone, c.times = nil, 0
	}
	c.repairing = r.Handed != nil && (c.repairing || len(both(r.Todo.added, c.holds)) > 0)
	if r.Settled() {
		c.holds = r.written
	} else { // who is on the way out by us, and is wanted again before that is seen, was taken out by nobody
		c.holds = slices.DeleteFunc(slices.Clone(c.holds), func(ip netip.Addr) bool { return slices.Contains(r.Todo.removed, ip) })
	}
	return c
}

// Contested are the addresses that somebody else keeps changing back.
func (c contest) Contested() []netip.Addr {
	if c.times < timesUndone {
		return nil
	}
	return c.undone
}

// both are the addresses that are in both lists.
func both(a, b []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(a), func(ip netip.Addr) bool { return !slices.Contains(b, ip) })
}

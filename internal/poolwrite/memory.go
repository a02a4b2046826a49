// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"net/netip"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

// Memory is what is remembered of a pool's writes from one attempt to the next.
type Memory struct {
	// Lost is the etag that guards a write of ours whose fate is unknown; empty if none.
	Lost string
	// kept is an etag that stayed when the pool was written as it was, and openSince since when
	// a lost write may land that this did not fence off; zero if none may.
	kept      string
	OpenSince time.Time
	// down are the addresses of which people know that they are Down by us, once that is
	// known.
	down      []netip.Addr
	downKnown bool
	contest
}

// Keep takes in what an attempt that ended now has found out about lost writes.
func (m *Memory) Keep(r *Result, now time.Time) {
	m.OpenSince = r.opened(m.OpenSince, now)
	m.Lost, m.kept = r.lost, r.kept
}

// Learn takes in an attempt, look being true of one for drift, and returns which addresses people
// did not know to be Down, or to be so no more. Of a
// process that has read nothing yet they know what the ledger says; so a write whose answer
// was lost is told when the next read shows it.
func (m *Memory) Learn(r Result, look bool) (downed, restored []netip.Addr) {
	m.contest = m.learn(r, m.down, look)
	if r.ledger != nil && !m.downKnown {
		m.down, m.downKnown = r.ledger.Down, true
	}
	if !r.Directed() {
		return nil, nil
	}
	wanted := func(ip netip.Addr) bool {
		return slices.ContainsFunc(r.Wanted, func(a lb.Address) bool { return a.IP == ip })
	}
	downed, restored = slices.Clone(r.Todo.Downed), slices.Clone(r.Todo.restored)
	for _, ip := range r.down {
		if !slices.Contains(m.down, ip) {
			downed = append(downed, ip)
		}
	}
	for _, ip := range m.down {
		if !slices.Contains(r.down, ip) && wanted(ip) {
			restored = append(restored, ip)
		}
	}
	m.down = r.down
	return sorted(downed), sorted(restored)
}

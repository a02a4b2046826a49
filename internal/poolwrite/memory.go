// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"net/netip"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

// Memory is what is known of a pool's writes between attempts.
type Memory struct {
	// Lost is the etag that guards a write with unknown result, or empty.
	Lost string
	// kept is an etag that a rewrite did not change.
	kept string
	// OpenSince is since when a lost write may land despite a rewrite, or zero.
	OpenSince time.Time
	// down are the addresses reported as Down.
	down      []netip.Addr
	downKnown bool
	contest
}

// Keep stores what is known of lost writes.
func (m *Memory) Keep(r *Result, now time.Time) {
	m.OpenSince = r.opened(m.OpenSince, now)
	m.Lost, m.kept = r.lost, r.kept
}

// Learn returns the addresses to report as Down or no longer Down. look is true for a resync. A new
// process assumes that the record was reported, so the next read reports a lost write.
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

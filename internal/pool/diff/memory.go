// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"net/netip"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

// Memory is what is known of a pool's writes between attempts.
type Memory struct {
	// PendingEtag is the etag that guards a write with unknown result, or empty.
	PendingEtag string
	// unchangedEtag is an etag that a rewrite did not change.
	unchangedEtag string
	// PendingSince is since when a lost write may land despite a rewrite, or zero.
	PendingSince time.Time
	// MayRevert is true if Azure may still roll back a write that another overtook: the pool is written even if it is
	// in sync.
	MayRevert bool
	// reportedDown are the addresses reported as Down.
	reportedDown []netip.Addr
	isDownKnown  bool
	conflictState
}

// StorePending stores what is known of lost writes.
func (m *Memory) StorePending(r *Result, now time.Time) {
	m.PendingSince = r.updatePendingSince(m.PendingSince, now)
	m.PendingEtag, m.unchangedEtag = r.pendingEtag, r.unchangedEtag
	m.MayRevert = m.MayRevert && !r.StatesInSync()
}

// RecordResult returns the addresses to report as Down or no longer Down. look is true for a resync. A new
// process assumes that the record was reported, so the next read reports a lost write.
func (m *Memory) RecordResult(r Result, look bool) (downed, restored []netip.Addr) {
	m.conflictState = m.recordAttempt(r, m.reportedDown, look)
	if r.firstRecord != nil && !m.isDownKnown {
		m.reportedDown, m.isDownKnown = r.firstRecord.Down, true
	}
	if !r.StatesInSync() {
		return nil, nil
	}
	wanted := func(ip netip.Addr) bool {
		return slices.ContainsFunc(r.Addresses, func(a lb.Address) bool { return a.IP == ip })
	}
	downed, restored = slices.Clone(r.Change.MarkedDown), slices.Clone(r.Change.markedUp)
	for _, ip := range r.down {
		if !slices.Contains(m.reportedDown, ip) {
			downed = append(downed, ip)
		}
	}
	for _, ip := range m.reportedDown {
		if !slices.Contains(r.down, ip) && wanted(ip) {
			restored = append(restored, ip)
		}
	}
	m.reportedDown = r.down
	return sortIPs(downed), sortIPs(restored)
}

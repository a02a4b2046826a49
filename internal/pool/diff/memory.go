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
	PendingEtag   string
	unchangedEtag string
	// PendingSince is since when a lost write may land despite a rewrite, or zero.
	PendingSince time.Time
	// MayRevert forces a write: Azure may still roll back one that another overtook.
	MayRevert    bool
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

// RecordResult returns the addresses to report as Down and no longer Down. A new process takes its record as reported.
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

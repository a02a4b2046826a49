// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

type pendingWrites struct {
	// pendingEtag is the etag that guards a write with unknown result, or empty.
	pendingEtag string
	hasWritten  bool
	// previousEtag is pendingEtag before the last write.
	previousEtag  string
	unchangedEtag string
	writtenRecord Record
	// HasPending is true if the pool is in sync and a lost write may still land: the pool has no new etag that prevents
	// it.
	HasPending     bool
	mayHavePending bool
	mayRevert      bool
	// ignoresEtag is true if Azure ignores If-Match on pools, or shows no etag.
	ignoresEtag bool
}

// PendingWriteTTL is how long a lost write delays the deletion of its pool: no request outlives its attempt.
const PendingWriteTTL = AttemptDeadline

// setRecord stores the record. Only the first read of an attempt shows what was reported.
func (r *Result) setRecord(recorded Record) {
	if r.firstRecord == nil {
		r.firstRecord = &recorded
	}
	r.writtenRecord = recorded
}

// needsRewrite reports whether to write a pool that is in sync: after its last write failed or may be rolled back, or to
// get a new etag, so that a lost write cannot land. It does not repeat a write that left the etag unchanged.
// extraRecords is true if the record has addresses that the pool lacks.
func (r *Result) needsRewrite(observed lb.Pool, extraRecords bool) (write bool, err error) {
	r.ignoresEtag = r.ignoresEtag || observed.Etag == lb.NoEtag
	sameEtag := r.pendingEtag != "" && r.pendingEtag == observed.Etag
	open := sameEtag || extraRecords && (r.pendingEtag == "" || r.ignoresEtag)
	switch {
	case observed.Provisioning == lb.Updating:
		return false, fmt.Errorf("%w: pool %s shows what it has to, but a write to it is still under way", ErrNotReady, observed.ID.Name)
	case observed.Provisioning == lb.Failed, r.mayRevert:
	case !open:
		return false, nil
	case r.unchangedEtag != "" && r.unchangedEtag == observed.Etag:
		r.HasPending = true
		return false, nil
	}
	r.mayHavePending = open
	return true, nil
}

// CheckEtag learns from the etag after a write whether lost writes can still land.
func (r *Result) CheckEtag(etag string) {
	switch {
	case etag == "":
	case r.ignoresEtag && r.mayHavePending:
		r.unchangedEtag, r.HasPending = etag, true
	case etag == r.Change.Next.Etag:
		r.unchangedEtag, r.HasPending = etag, r.mayHavePending || !r.Change.IsEmpty()
	}
}

// CurrentRecord returns the record of a pool in sync, including what a lost write may add.
func (r Result) CurrentRecord() Record {
	rec := Record{Written: r.written, Down: r.down, Instances: r.instances}
	if r.HasPending {
		rec.Written, rec.Down = sortIPs(slices.Concat(r.written, r.writtenRecord.Written)), sortIPs(slices.Concat(r.down, r.writtenRecord.Down))
	}
	return rec
}

// updatePendingSince returns since when a lost write may land, given the earlier value. After PendingWriteTTL it gives
// up waiting if no members are wanted, or if Azure ignores etags. An attempt that proves nothing changes the value only
// if it sent a write that may itself be lost.
func (r *Result) updatePendingSince(since, now time.Time) time.Time {
	switch {
	case !r.StatesInSync() && r.Outcome != Stale && (!r.hasWritten || r.pendingEtag == ""):
		return since
	case !r.HasPending:
		return time.Time{}
	case since.IsZero():
		return now
	case (len(r.Addresses) == 0 || r.ignoresEtag) && now.Sub(since) >= PendingWriteTTL:
		r.HasPending, r.pendingEtag = false, ""
	}
	return since
}

// Memory is what is known of a pool's writes between attempts.
type Memory struct {
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

// RecordResult returns the addresses to report as newly Down and as no longer Down. The first result of a process counts
// recorded addresses as reported.
func (m *Memory) RecordResult(r Result, look bool) (downed, restored []netip.Addr) {
	m.conflictState = m.recordAttempt(r, m.reportedDown, look)
	if r.firstRecord != nil && !m.isDownKnown {
		m.reportedDown, m.isDownKnown = r.firstRecord.Down, true
	}
	if !r.StatesInSync() {
		return nil, nil
	}
	wanted := statesByIP(r.Addresses)
	downed, restored = slices.Clone(r.Change.MarkedDown), slices.Clone(r.Change.markedUp)
	for _, ip := range r.down {
		if !slices.Contains(m.reportedDown, ip) {
			downed = append(downed, ip)
		}
	}
	for _, ip := range m.reportedDown {
		if _, ok := wanted[ip]; ok && !slices.Contains(r.down, ip) {
			restored = append(restored, ip)
		}
	}
	m.reportedDown = r.down
	return sortIPs(downed), sortIPs(restored)
}

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

// recordAttempt ends a conflict only after a check: an attempt with a change may see the pool just after Weir repaired
// it.
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
		unusable := r.unusableIPs() // such a machine has never joined, or has left by itself
		c.managed = slices.DeleteFunc(slices.Clone(r.written), func(ip netip.Addr) bool { return unusable[ip] })
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

// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"net/netip"
	"sync"
	"time"

	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
)

// RetentionPolicy decides which members remain, and tracks the pools retained because of a stale cache. It is safe for
// concurrent use.
type RetentionPolicy struct {
	// Stale reports whether the cluster cache may be stale; nil means never.
	Stale func(now time.Time) bool
	// NodeAt returns the node with an address; false if unknown.
	NodeAt func(ip netip.Addr) (membership.Node, bool)

	mu         sync.Mutex
	heldCounts map[schedule.Ref]int
	// starts are the nodes without a ready endpoint. A restart forgets them, which costs each one join.
	starts map[schedule.Ref]map[netip.Addr]membership.StartRecord
	// deleted are the members of deleted nodes. A restart forgets them, which prolongs the time of a pool's last one.
	deleted waitRecords
	// draining are the members that drain. A restart forgets them, which prolongs the time of the last that is up.
	draining waitRecords
}

type waitRecords map[schedule.Ref]map[netip.Addr]membership.WaitRecord

func (w *waitRecords) set(ref schedule.Ref, next map[netip.Addr]membership.WaitRecord) {
	switch {
	case len(next) == 0:
		delete(*w, ref)
	case *w == nil:
		*w = waitRecords{ref: next}
	default:
		(*w)[ref] = next
	}
}

// RetainMembers returns set plus the retained members, and when the next of them expires; zero if none does. record
// returns the recorded members of the pool.
func (k *RetentionPolicy) RetainMembers(ref schedule.Ref, set membership.Set, record func() membership.MemberRecord, now time.Time) (kept membership.Set, recheckAt time.Time) {
	stale := k.Stale != nil && k.Stale(now)
	early, startsEnd := k.joinEarly(ref, set, record, now)
	if kept = early; stale || len(set.ServingExcluded) > 0 || set.DeletedMayServe || set.MayKeepLastUp() {
		recorded := record()
		leaving, excludedEnd := early.RetainLeaving(recorded, now)
		up, upEnd := k.keepLastUp(ref, leaving, recorded, now)
		deleted, deletedEnd := k.retainDeleted(ref, up, recorded, now)
		if kept, recheckAt = deleted, earlier(excludedEnd, earlier(upEnd, deletedEnd)); stale {
			kept = kept.RetainRemoved(recorded, k.NodeAt)
		}
	} else {
		k.forgetWaits(ref)
	}
	recheckAt = earlier(recheckAt, startsEnd)
	if stale {
		k.recordHeld(ref, kept.RetainedStale)
	}
	return kept, recheckAt
}

func (k *RetentionPolicy) joinEarly(ref schedule.Ref, set membership.Set, record func() membership.MemberRecord, now time.Time) (joined membership.Set, recheckAt time.Time) {
	var recorded membership.MemberRecord
	if set.EarlyJoin == membership.JoinUnknown && len(set.Starting) > 0 {
		recorded = record()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	joined, next, recheckAt := set.JoinEarly(k.starts[ref], recorded, now)
	switch {
	case len(next) == 0:
		delete(k.starts, ref)
	case k.starts == nil:
		k.starts = map[schedule.Ref]map[netip.Addr]membership.StartRecord{ref: next}
	default:
		k.starts[ref] = next
	}
	return joined, recheckAt
}

func (k *RetentionPolicy) retainDeleted(ref schedule.Ref, set membership.Set, record membership.MemberRecord, now time.Time) (kept membership.Set, recheckAt time.Time) {
	hasNode := func(ip netip.Addr) bool { _, known := k.NodeAt(ip); return known }
	k.mu.Lock()
	defer k.mu.Unlock()
	kept, next, recheckAt := set.RetainDeleted(k.deleted[ref], record, hasNode, now)
	k.deleted.set(ref, next)
	return kept, recheckAt
}

func (k *RetentionPolicy) keepLastUp(ref schedule.Ref, set membership.Set, record membership.MemberRecord, now time.Time) (kept membership.Set, recheckAt time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept, next, recheckAt := set.KeepLastUp(k.draining[ref], record, now)
	k.draining.set(ref, next)
	return kept, recheckAt
}

func (k *RetentionPolicy) forgetWaits(ref schedule.Ref) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.deleted, ref)
	delete(k.draining, ref)
}

// earlier returns the earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// HasStartTimedOut reports whether an address left the pool, or did not join it, because no endpoint there was ready for
// membership.StartTimeout.
func (k *RetentionPolicy) HasStartTimedOut(ref schedule.Ref, ip netip.Addr, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	record, known := k.starts[ref][ip]
	return known && !now.Before(record.Since.Add(membership.StartTimeout))
}

// Forget drops what is known of a deleted BackendPool.
func (k *RetentionPolicy) Forget(ref schedule.Ref) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.starts, ref)
	delete(k.deleted, ref)
	delete(k.heldCounts, ref)
	delete(k.draining, ref)
}

// recordHeld records how many members a pool keeps only because the cache is stale. The entry remains until ReleaseHeld,
// even with 0: a later caller may only read the members, and without the entry nothing would requeue the pool.
func (k *RetentionPolicy) recordHeld(ref schedule.Ref, count int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, isHeld := k.heldCounts[ref]; count == 0 && !isHeld {
		return
	}
	if k.heldCounts == nil {
		k.heldCounts = map[schedule.Ref]int{}
	}
	k.heldCounts[ref] = count
}

// CountHeld returns the number of members retained because of a stale cache.
func (k *RetentionPolicy) CountHeld() (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, count := range k.heldCounts {
		n += count
	}
	return n
}

// ReleaseHeld returns and clears the pools with held members. The caller must reconcile each: nothing else
// removes these members.
func (k *RetentionPolicy) ReleaseHeld() (refs []schedule.Ref) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for ref := range k.heldCounts {
		refs = append(refs, ref)
	}
	k.heldCounts = nil
	return refs
}

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
func (r *RetentionPolicy) RetainMembers(ref schedule.Ref, set membership.Set, record func() membership.MemberRecord, now time.Time) (kept membership.Set, recheckAt time.Time) {
	stale := r.Stale != nil && r.Stale(now)
	early, startsEnd := r.joinEarly(ref, set, record, now)
	if kept = early; stale || len(set.ServingExcluded) > 0 || set.DeletedMayServe || set.MayKeepLastUp() {
		recorded := record()
		leaving, excludedEnd := early.RetainLeaving(recorded, now)
		up, upEnd := r.keepLastUp(ref, leaving, recorded, now)
		deleted, deletedEnd := r.retainDeleted(ref, up, recorded, now)
		if kept, recheckAt = deleted, earlier(excludedEnd, earlier(upEnd, deletedEnd)); stale {
			kept = kept.RetainRemoved(recorded, r.NodeAt)
		}
	} else {
		r.forgetWaits(ref)
	}
	recheckAt = earlier(recheckAt, startsEnd)
	if stale {
		r.recordHeld(ref, kept.RetainedStale)
	}
	return kept, recheckAt
}

func (r *RetentionPolicy) joinEarly(ref schedule.Ref, set membership.Set, record func() membership.MemberRecord, now time.Time) (joined membership.Set, recheckAt time.Time) {
	var recorded membership.MemberRecord
	if set.EarlyJoin == membership.JoinUnknown && len(set.Starting) > 0 {
		recorded = record()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	joined, next, recheckAt := set.JoinEarly(r.starts[ref], recorded, now)
	switch {
	case len(next) == 0:
		delete(r.starts, ref)
	case r.starts == nil:
		r.starts = map[schedule.Ref]map[netip.Addr]membership.StartRecord{ref: next}
	default:
		r.starts[ref] = next
	}
	return joined, recheckAt
}

func (r *RetentionPolicy) retainDeleted(ref schedule.Ref, set membership.Set, record membership.MemberRecord, now time.Time) (kept membership.Set, recheckAt time.Time) {
	hasNode := func(ip netip.Addr) bool { _, known := r.NodeAt(ip); return known }
	r.mu.Lock()
	defer r.mu.Unlock()
	kept, next, recheckAt := set.RetainDeleted(r.deleted[ref], record, hasNode, now)
	r.deleted.set(ref, next)
	return kept, recheckAt
}

func (r *RetentionPolicy) keepLastUp(ref schedule.Ref, set membership.Set, record membership.MemberRecord, now time.Time) (kept membership.Set, recheckAt time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept, next, recheckAt := set.KeepLastUp(r.draining[ref], record, now)
	r.draining.set(ref, next)
	return kept, recheckAt
}

func (r *RetentionPolicy) forgetWaits(ref schedule.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.deleted, ref)
	delete(r.draining, ref)
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
func (r *RetentionPolicy) HasStartTimedOut(ref schedule.Ref, ip netip.Addr, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	record, known := r.starts[ref][ip]
	return known && !now.Before(record.Since.Add(membership.StartTimeout))
}

// Forget drops what is known of a deleted BackendPool.
func (r *RetentionPolicy) Forget(ref schedule.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.starts, ref)
	delete(r.deleted, ref)
	delete(r.heldCounts, ref)
	delete(r.draining, ref)
}

// recordHeld records how many members a pool keeps only because the cache is stale. The entry remains until ReleaseHeld,
// even with 0: a later caller may only read the members, and without the entry nothing would requeue the pool.
func (r *RetentionPolicy) recordHeld(ref schedule.Ref, count int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, isHeld := r.heldCounts[ref]; count == 0 && !isHeld {
		return
	}
	if r.heldCounts == nil {
		r.heldCounts = map[schedule.Ref]int{}
	}
	r.heldCounts[ref] = count
}

// CountHeld returns the number of members retained because of a stale cache.
func (r *RetentionPolicy) CountHeld() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, count := range r.heldCounts {
		n += count
	}
	return n
}

// ReleaseHeld returns and clears the pools with held members. The caller must reconcile each: nothing else
// removes these members.
func (r *RetentionPolicy) ReleaseHeld() (refs []schedule.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for ref := range r.heldCounts {
		refs = append(refs, ref)
	}
	r.heldCounts = nil
	return refs
}

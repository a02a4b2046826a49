// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

// pendingWrites is what is known of lost writes.
type pendingWrites struct {
	// pendingEtag is the etag that guards a write with unknown result, or empty.
	pendingEtag string
	// hasWritten is true once the attempt has written.
	hasWritten bool
	// previousEtag is the same before the last write.
	previousEtag string
	// unchangedEtag is an etag that a rewrite did not change, or empty.
	unchangedEtag string
	// writtenRecord is the record during the write.
	writtenRecord Record
	// HasPending is true if a lost write may land in a pool that is in sync: a rewrite did not change the
	// etag that guards it, or Azure ignores etags.
	HasPending bool
	// mayHavePending is true if a lost write may land during this one.
	mayHavePending bool
	// mayRevert is true if Azure may still roll back an overtaken write.
	mayRevert bool
	// ignoresEtag is true if Azure ignores If-Match on pools, or shows no etag.
	ignoresEtag bool
}

// PendingWriteTTL is how long the record of a lost write delays the deletion of its pool. No request
// outlives its attempt.
const PendingWriteTTL = AttemptDeadline

// setRecord stores the record. Only the first read of an attempt shows what was reported.
func (r *Result) setRecord(recorded Record) {
	if r.firstRecord == nil {
		r.firstRecord = &recorded
	}
	r.writtenRecord = recorded
}

// needsRewrite decides whether to rewrite a pool that is in sync: its last write failed or may be rolled back, or a
// lost write may land. A rewrite makes the pool effective, and a new etag invalidates the lost write. It is
// not repeated if the etag did not change before. unseen means that the record has more than the
// pool.
func (r *Result) needsRewrite(observed lb.Pool, unseen bool) (write bool, err error) {
	r.ignoresEtag = r.ignoresEtag || observed.Etag == lb.NoEtag
	sameEtag := r.pendingEtag != "" && r.pendingEtag == observed.Etag
	open := sameEtag || unseen && (r.pendingEtag == "" || r.ignoresEtag)
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

// updatePendingSince returns since when a lost write may land, zero if none. It expires if nothing is wanted,
// or no etag can prove the end. An inconclusive attempt only counts if its own write may land.
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

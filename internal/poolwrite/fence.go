// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"fmt"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

// fate is what is known of lost writes.
type fate struct {
	// lost is the etag that guards a write with unknown result, or empty.
	lost string
	// wrote is true once the attempt has written.
	wrote bool
	// earlier is the same before the last write.
	earlier string
	// kept is an etag that a rewrite did not change, or empty.
	kept string
	// held is the record during the write.
	held Recorded
	// Open is true if a lost write may land in a pool that is in sync: a rewrite did not change the
	// etag that guards it, or Azure ignores etags.
	Open bool
	// suspects is true if a lost write may land during this one.
	suspects bool
	// unguarded is true if Azure ignores If-Match on pools, or shows no etag.
	unguarded bool
}

// RecordOutlives is how long the record of a lost write delays the deletion of its pool. No request
// outlives its attempt.
const RecordOutlives = AttemptDeadline

// reads stores the record. Only the first read of an attempt shows what was reported.
func (r *Result) reads(recorded Recorded) {
	if r.ledger == nil {
		r.ledger = &recorded
	}
	r.held = recorded
}

// fence decides whether to rewrite a pool that is in sync: its last write failed, or a lost write
// may land. A rewrite makes the pool effective, and a new etag invalidates the lost write. It is
// not repeated if the etag did not change before. unseen means that the record has more than the
// pool.
func (r *Result) fence(observed lb.Pool, unseen bool) (write bool, err error) {
	r.unguarded = r.unguarded || observed.Etag == lb.NoEtag
	sameEtag := r.lost != "" && r.lost == observed.Etag
	open := sameEtag || unseen && (r.lost == "" || r.unguarded)
	switch {
	case observed.Provisioning == lb.Updating:
		return false, fmt.Errorf("%w: pool %s shows what it has to, but a write to it is still under way", ErrNotReady, observed.ID.Name)
	case observed.Provisioning == lb.Failed:
	case !open:
		return false, nil
	case r.kept != "" && r.kept == observed.Etag:
		r.Open = true
		return false, nil
	}
	r.suspects = open
	return true, nil
}

// Fenced learns from the etag after a write whether lost writes can still land.
func (r *Result) Fenced(etag string) {
	switch {
	case etag == "":
	case r.unguarded && r.suspects:
		r.kept, r.Open = etag, true
	case etag == r.Todo.Next.Etag:
		r.kept, r.Open = etag, r.suspects || !r.Todo.none()
	}
}

// Ours returns the record of a pool in sync, including what a lost write may add.
func (r Result) Ours() Recorded {
	rec := Recorded{Written: r.written, Down: r.down, Instances: r.instances}
	if r.Open {
		rec.Written, rec.Down = sorted(slices.Concat(r.written, r.held.Written)), sorted(slices.Concat(r.down, r.held.Down))
	}
	return rec
}

// opened returns since when a lost write may land, zero if none. It expires if nothing is wanted,
// or no etag can prove the end. An inconclusive attempt only counts if its own write may land.
func (r *Result) opened(since, now time.Time) time.Time {
	switch {
	case !r.Directed() && r.Outcome != Stale && (!r.wrote || r.lost == ""):
		return since
	case !r.Open:
		return time.Time{}
	case since.IsZero():
		return now
	case (len(r.Wanted) == 0 || r.unguarded) && now.Sub(since) >= RecordOutlives:
		r.Open, r.lost = false, ""
	}
	return since
}

// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"fmt"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

// fate is what an attempt knows of writes without a response.
type fate struct {
	// lost is the etag that guards a write with unknown result, or empty. wrote is true once this
	// attempt has sent a write.
	lost  string
	wrote bool
	// earlier is the value of lost before the last write.
	earlier string
	// kept is an etag that did not change when the pool was rewritten as it was, or empty.
	kept string
	// held is the record while the attempt writes.
	held Recorded
	// Open is true if the pool is in sync but a lost write may still land: the pool has the etag
	// that guards the write and rewriting did not change it, or writes are not guarded.
	Open bool
	// suspects is true if a lost write may land while the attempt writes.
	suspects bool
	// unguarded is true if Azure ignores If-Match on pools or shows no etag.
	unguarded bool
}

// RecordOutlives is how long the record of a lost write delays deletion of a pool that should be
// empty. No request outlives its attempt.
const RecordOutlives = AttemptDeadline

// reads stores the record. The first read in an attempt determines what the user knows, because the
// second includes what the attempt recorded.
func (r *Result) reads(recorded Recorded) {
	if r.ledger == nil {
		r.ledger = &recorded
	}
	r.held = recorded
}

// fence decides whether a pool that is in sync has to be rewritten. unseen means that the record
// has something the pool lacks. Reasons are a failed last write, or a lost write that may still
// land: the pool has the etag that guards it, or lacks what it would add. Rewriting makes the pool
// effective, and a new etag invalidates the lost write. A pool whose etag did not change before is
// not rewritten again.
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

// Fenced processes the pool's etag after a write: whether lost writes can still land. If Azure
// ignores etags, they can.
func (r *Result) Fenced(etag string) {
	switch {
	case etag == "":
	case r.unguarded && r.suspects:
		r.kept, r.Open = etag, true
	case etag == r.Todo.Next.Etag:
		r.kept, r.Open = etag, r.suspects || !r.Todo.none()
	}
}

// Ours returns the record for a pool in sync. While a lost write may land it includes what that
// would add.
func (r Result) Ours() Recorded {
	rec := Recorded{Written: r.written, Down: r.down, Instances: r.instances}
	if r.Open {
		rec.Written, rec.Down = sorted(slices.Concat(r.written, r.held.Written)), sorted(slices.Concat(r.down, r.held.Down))
	}
	return rec
}

// opened returns since when a lost write may land; zero if none. It expires once nothing is wanted
// or no etag can prove the end. An inconclusive attempt changes nothing unless its own write may
// land.
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

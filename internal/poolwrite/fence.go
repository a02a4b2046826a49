// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"fmt"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

// fate is what an attempt knows of writes whose answer was lost.
type fate struct {
	// lost is the etag that a write was guarded by whose fate is unknown; empty if there
	// is none. wrote is true once the attempt has sent a write itself.
	lost  string
	wrote bool
	// earlier is lost as it was before the last write: after the attempt before, or the first write of this one.
	earlier string
	// kept is an etag that stayed when the pool was written as it was; empty if none did.
	kept string
	// held is what the ledger holds while the attempt writes.
	held Recorded
	// Open is true of a pool that shows what it has to while a lost write may land yet: it
	// has the etag that the write is guarded by, and writing it once more has not changed that, or
	// no write is guarded at all.
	Open bool
	// suspects is true if a lost write may land while the attempt writes.
	suspects bool
	// unguarded is true of an Azure that heeds no If-Match in writes of pools, or shows no etag.
	unguarded bool
}

// RecordOutlives is how long the record of a lost write is kept at most once nothing is wanted in
// its pool any more, and whoever deletes it waits. No request is older than an attempt.
const RecordOutlives = AttemptDeadline

// reads takes in what the ledger holds. Of two reads in an attempt the first counts for what
// people know: the second has what the attempt itself recorded.
func (r *Result) reads(recorded Recorded) {
	if r.ledger == nil {
		r.ledger = &recorded
	}
	r.held = recorded
}

// fence decides what to do with a pool that shows what it has to; unseen says that the ledger
// holds what the pool does not. Either the last write failed, or one of ours whose fate is
// unknown may still land: it would add what the ledger holds and the pool does not, or the pool
// still has the etag that it is guarded by. Writing the same once more puts the pool in force,
// and takes from the lost write the etag that it needs, if Azure gives the pool another one. One
// that kept its etag before is not written again: nothing has changed since.
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

// Fenced learns from the etag that the pool has after a write whether lost ones can still land. Where
// Azure heeds no etag no write keeps another out.
func (r *Result) Fenced(etag string) {
	switch {
	case etag == "":
	case r.unguarded && r.suspects:
		r.kept, r.Open = etag, true
	case etag == r.Todo.Next.Etag:
		r.kept, r.Open = etag, r.suspects || !r.Todo.none()
	}
}

// Ours is what the ledger is to hold once the pool is level: what is ours, and as long as a
// lost write may land also what that may bring.
func (r Result) Ours() Recorded {
	rec := Recorded{Written: r.written, Down: r.down, Instances: r.instances}
	if r.Open {
		rec.Written, rec.Down = sorted(slices.Concat(r.written, r.held.Written)), sorted(slices.Concat(r.down, r.held.Down))
	}
	return rec
}

// opened returns since when a lost write may land, zero if none may, and ends that where nothing
// is wanted any more, or no etag would ever end it. An attempt that came to nothing changes
// nothing, unless a write of its own may land.
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

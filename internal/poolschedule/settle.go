// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"slices"
	"time"

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/poolwrite"
)

// Word is what a Service is told.
type Word string

// What a Service is told.
const (
	wordNone     Word = ""
	WordUpdated  Word = "Updated"
	WordRetrying Word = "Retrying"
	WordFailed   Word = "Failed"
)

// disposition says what becomes of one operation after an outcome.
type disposition struct {
	keep  bool // back into the queue
	spend bool // one retry is consumed
	yield bool // until its own back-off is over
	tell  Word
}

// row is what an outcome means for an operation that has a retry left, for one that has
// none, for one without a change behind it in a pool whose last change was given up, for an
// admin operation, and for one that the attempt only takes along.
type row struct{ left, spent, givenUp, admin, carried disposition }

// settlement is the table. Nothing else decides what becomes of an operation. A look
// for drift at any other pool is settled like a fresh change.
var settlement = map[poolwrite.Outcome]row{
	poolwrite.Written: {
		left: disposition{tell: WordUpdated}, spent: disposition{tell: WordUpdated}, givenUp: disposition{tell: WordUpdated},
		carried: disposition{tell: WordUpdated},
	},
	poolwrite.Unchanged: {},
	poolwrite.Stale:     {},
	poolwrite.Retriable: {
		left: disposition{keep: true, spend: true, tell: WordRetrying}, spent: disposition{tell: WordFailed}, givenUp: disposition{tell: WordFailed},
		admin: disposition{keep: true, yield: true}, carried: disposition{keep: true},
	},
	poolwrite.Terminal: {
		left: disposition{tell: WordFailed}, spent: disposition{tell: WordFailed}, givenUp: disposition{tell: WordFailed},
		admin: disposition{keep: true, yield: true}, carried: disposition{keep: true},
	},
	poolwrite.Refused: {},
	poolwrite.Postponed: {
		left: disposition{keep: true}, spent: disposition{keep: true}, givenUp: disposition{keep: true},
		admin: disposition{keep: true}, carried: disposition{keep: true},
	},
	poolwrite.Shutdown: {},
}

// Past is what a lane remembers of a pool when an attempt is settled.
type Past struct {
	// Told is the last word that each Service got.
	Told map[ServiceName]Word
	// GaveUp is true if the last change was given up; again, if it is for the same
	// error as now.
	GaveUp, Again bool
	States        bool          // what was written are admin states alone
	Now           time.Time     // when the attempt ended
	Longest       time.Duration // the longest back-off
}

// Verdict is what settle decides for a group.
type Verdict struct {
	Requeue []Operation
	Told    map[Word][]ServiceName
	// RetriesUsed is the highest count among the operations, after this attempt.
	RetriesUsed int
	// AdminFailed and adminDone are the words about a change of admin states, which
	// was seen at adminSince.
	AdminFailed, AdminDone bool
	AdminSince             time.Time
}

// Settle applies the table to every operation of a group, but for some words. Only after Retrying
// or Failed do these speak: an unchanged pool (a write had landed whose answer was lost), an admin
// operation, the first look of a process that had only admin states to write. An error that a
// change was given up for is not told again by a look for drift.
//
// ofMembers is what became of the membership where the outcome speaks of admin states alone: that of a
// pool of network interfaces is another matter. It is empty everywhere else.
func Settle(outcome, ofMembers poolwrite.Outcome, retryAt time.Time, ops []Operation, maxRetries int, past Past) Verdict {
	v := Verdict{Told: map[Word][]ServiceName{}}
	var gaveUp []ServiceName // on behalf of looks
	for _, op := range ops {
		outcome := outcome
		if ofMembers != "" && !op.Admin && outcome != poolwrite.Postponed {
			outcome = ofMembers
		}
		d, looks := past.decide(outcome, op, maxRetries), op.Looks() && !op.Admin
		if op.Admin {
			v.admin(outcome, d, &op, past)
		}
		if d.spend {
			op.Drift = false
			op.RetryCount++
			op.NextEligibleAt = retryAt
		}
		v.RetriesUsed = max(v.RetriesUsed, op.RetryCount)
		if d.keep {
			op.Carried = false
			v.Requeue = append(v.Requeue, op)
		}
		if looks && d.tell == WordFailed {
			gaveUp = append(gaveUp, op.Service)
			continue
		}
		v.tell(d.tell, op.Service)
	}
	for _, s := range gaveUp {
		if !slices.ContainsFunc(v.Requeue, Operation.Member) { // beside a change that is tried again a look gives up nothing
			v.tell(WordFailed, s)
		}
	}
	v.retryOverFail()
	return v
}

// retryOverFail tells a Service Retrying alone if one of its changes is given up and another one is tried again.
func (v *Verdict) retryOverFail() {
	for _, op := range v.Requeue {
		if at := slices.Index(v.Told[WordFailed], op.Service); at >= 0 && op.Member() {
			v.Told[WordFailed] = slices.Delete(v.Told[WordFailed], at, at+1)
			v.tell(WordRetrying, op.Service)
		}
	}
}

// decide looks an operation up in the table.
func (p Past) decide(outcome poolwrite.Outcome, op Operation, maxRetries int) disposition {
	row := settlement[outcome]
	d := row.left
	switch {
	case op.Carried:
		d = row.carried
	case op.Admin:
		d = row.admin
	case op.Looks() && p.GaveUp:
		d = row.givenUp
		if p.Again && d.tell == WordFailed {
			d.tell = wordNone
		}
	case op.RetryCount >= maxRetries:
		d = row.spent
	}
	if op.Admin || op.Looks() && !op.Drift && p.States && outcome == poolwrite.Written {
		d.tell = wordNone
	}
	last := p.Told[op.Service]
	if bad := last == WordRetrying || last == WordFailed; bad && (outcome == poolwrite.Unchanged || outcome == poolwrite.Written) {
		d.tell = WordUpdated
	}
	return d
}

// admin says what became of a change of admin states: once that it has failed, and once that
// it is done.
func (v *Verdict) admin(outcome poolwrite.Outcome, d disposition, op *Operation, past Past) {
	v.AdminSince = op.ChangedAt
	v.AdminDone = outcome == poolwrite.Written || outcome == poolwrite.Unchanged
	if d.yield {
		op.Tries++
		op.againAt = past.Now.Add(backoff.Doubling{First: time.Second, Max: past.Longest}.After(op.Tries))
		v.AdminFailed = op.Tries == 1
	}
}

// tell says a word to a Service, once.
func (v *Verdict) tell(w Word, to ServiceName) {
	if w != wordNone && to != (ServiceName{}) && !slices.Contains(v.Told[w], to) {
		v.Told[w] = append(v.Told[w], to)
	}
}

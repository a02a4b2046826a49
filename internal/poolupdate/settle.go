// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"slices"
	"time"

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/poolwrite"
)

// word is what a Service is told.
type word string

const (
	wordNone     word = ""
	wordUpdated  word = "Updated"
	wordRetrying word = "Retrying"
	wordFailed   word = "Failed"
)

// disposition says what becomes of one operation after an outcome.
type disposition struct {
	keep  bool // back into the queue
	spend bool // one retry is consumed
	yield bool // until its own back-off is over
	tell  word
}

// row is what an outcome means for an operation that has a retry left, for one that has
// none, for one without a change behind it in a pool whose last change was given up, for an
// admin operation, and for one that the attempt only takes along.
type row struct{ left, spent, givenUp, admin, carried disposition }

// settlement is the table. Nothing else decides what becomes of an operation. A look
// for drift at any other pool is settled like a fresh change.
var settlement = map[poolwrite.Outcome]row{
	poolwrite.Written: {
		left: disposition{tell: wordUpdated}, spent: disposition{tell: wordUpdated}, givenUp: disposition{tell: wordUpdated},
		carried: disposition{tell: wordUpdated},
	},
	poolwrite.Unchanged: {},
	poolwrite.Stale:     {},
	poolwrite.Retriable: {
		left: disposition{keep: true, spend: true, tell: wordRetrying}, spent: disposition{tell: wordFailed}, givenUp: disposition{tell: wordFailed},
		admin: disposition{keep: true, yield: true}, carried: disposition{keep: true},
	},
	poolwrite.Terminal: {
		left: disposition{tell: wordFailed}, spent: disposition{tell: wordFailed}, givenUp: disposition{tell: wordFailed},
		admin: disposition{keep: true, yield: true}, carried: disposition{keep: true},
	},
	poolwrite.Refused: {},
	poolwrite.Postponed: {
		left: disposition{keep: true}, spent: disposition{keep: true}, givenUp: disposition{keep: true},
		admin: disposition{keep: true}, carried: disposition{keep: true},
	},
	poolwrite.Shutdown: {},
}

// past is what a lane remembers of a pool when an attempt is settled.
type past struct {
	// told is the last word that each Service got.
	told map[ServiceName]word
	// gaveUp is true if the last change was given up; again, if it is for the same
	// error as now.
	gaveUp, again bool
	states        bool          // what was written are admin states alone
	now           time.Time     // when the attempt ended
	longest       time.Duration // the longest back-off
}

// verdict is what settle decides for a group.
type verdict struct {
	requeue []Operation
	told    map[word][]ServiceName
	// retriesUsed is the highest count among the operations, after this attempt.
	retriesUsed int
	// adminFailed and adminDone are the words about a change of admin states, which
	// was seen at adminSince.
	adminFailed, adminDone bool
	adminSince             time.Time
}

// settle applies the table to every operation of a group, but for some words. Only after Retrying
// or Failed do these speak: an unchanged pool (a write had landed whose answer was lost), an admin
// operation, the first look of a process that had only admin states to write. An error that a
// change was given up for is not told again by a look for drift.
//
// The membership of a pool of network interfaces is refused, whatever became of its admin states.
func settle(outcome poolwrite.Outcome, interfaces bool, retryAt time.Time, ops []Operation, maxRetries int, past past) verdict {
	v := verdict{told: map[word][]ServiceName{}}
	var gaveUp []ServiceName // on behalf of looks
	for _, op := range ops {
		outcome := outcome
		if interfaces && !op.Admin && outcome != poolwrite.Postponed {
			outcome = poolwrite.Refused
		}
		d, looks := past.decide(outcome, op, maxRetries), op.looks() && !op.Admin
		if op.Admin {
			v.admin(outcome, d, &op, past)
		}
		if d.spend {
			op.drift = false
			op.retryCount++
			op.nextEligibleAt = retryAt
		}
		v.retriesUsed = max(v.retriesUsed, op.retryCount)
		if d.keep {
			op.carried = false
			v.requeue = append(v.requeue, op)
		}
		if looks && d.tell == wordFailed {
			gaveUp = append(gaveUp, op.Service)
			continue
		}
		v.tell(d.tell, op.Service)
	}
	for _, s := range gaveUp {
		if !slices.ContainsFunc(v.requeue, Operation.member) { // beside a change that is tried again a look gives up nothing
			v.tell(wordFailed, s)
		}
	}
	return v
}

// decide looks an operation up in the table.
func (p past) decide(outcome poolwrite.Outcome, op Operation, maxRetries int) disposition {
	row := settlement[outcome]
	d := row.left
	switch {
	case op.carried:
		d = row.carried
	case op.Admin:
		d = row.admin
	case op.looks() && p.gaveUp:
		d = row.givenUp
		if p.again && d.tell == wordFailed {
			d.tell = wordNone
		}
	case op.retryCount >= maxRetries:
		d = row.spent
	}
	if op.Admin || op.looks() && !op.drift && p.states && outcome == poolwrite.Written {
		d.tell = wordNone
	}
	last := p.told[op.Service]
	if bad := last == wordRetrying || last == wordFailed; bad && (outcome == poolwrite.Unchanged || outcome == poolwrite.Written) {
		d.tell = wordUpdated
	}
	return d
}

// admin says what became of a change of admin states: once that it has failed, and once that
// it is done.
func (v *verdict) admin(outcome poolwrite.Outcome, d disposition, op *Operation, past past) {
	v.adminSince = op.ChangedAt
	v.adminDone = outcome == poolwrite.Written || outcome == poolwrite.Unchanged
	if d.yield {
		op.tries++
		op.againAt = past.now.Add(backoff.Doubling{First: time.Second, Max: past.longest}.After(op.tries))
		v.adminFailed = op.tries == 1
	}
}

// tell says a word to a Service, once.
func (v *verdict) tell(w word, to ServiceName) {
	if w != wordNone && to != (ServiceName{}) && !slices.Contains(v.told[w], to) {
		v.told[w] = append(v.told[w], to)
	}
}

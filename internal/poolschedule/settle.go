// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"slices"
	"time"

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/poolwrite"
)

// Word is a notification of a Service.
type Word string

// The notifications.
const (
	wordNone     Word = ""
	WordUpdated  Word = "Updated"
	WordRetrying Word = "Retrying"
	WordFailed   Word = "Failed"
)

type disposition struct {
	keep  bool // requeue
	spend bool // consume a retry
	yield bool // delay by the operation's own backoff
	tell  Word
}

// row has the dispositions of operations with retries left, with none left, without a change after
// giving up, for admin states, and carried ones.
type row struct{ left, spent, givenUp, admin, carried disposition }

// settlement alone decides what happens to operations.
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

// Past is the state of a pool before an attempt is settled.
type Past struct {
	// Told are the last notifications.
	Told map[ServiceName]Word
	// Whether the last change was given up, and whether for the same error.
	GaveUp, Again bool
	States        bool          // only admin states were written
	Now           time.Time     // end of the attempt
	Longest       time.Duration // maximum backoff
}

// Verdict is the result for a pool's operations.
type Verdict struct {
	Requeue []Operation
	Told    map[Word][]ServiceName
	// RetriesUsed is the maximum, including this attempt.
	RetriesUsed int
	// AdminFailed and AdminDone are set once per admin state change, which was seen at AdminSince.
	AdminFailed, AdminDone bool
	AdminSince             time.Time
}

// Settle applies the table to a pool's operations and decides the notifications. Only after
// Retrying or Failed do these notify: an unchanged pool (a lost write had landed), an admin
// operation, and a process's first check if only admin states were written. A resync does not
// repeat the error for which a change was given up.
//
// ofMembers is the membership's outcome if outcome is about admin states only, otherwise empty.
func Settle(outcome, ofMembers poolwrite.Outcome, retryAt time.Time, ops []Operation, maxRetries int, past Past) Verdict {
	v := Verdict{Told: map[Word][]ServiceName{}}
	var gaveUp []ServiceName // by checks
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
		if !slices.ContainsFunc(v.Requeue, Operation.Member) { // a check gives up nothing while a change is retried
			v.tell(WordFailed, s)
		}
	}
	v.retryOverFail()
	return v
}

// retryOverFail notifies Retrying instead of Failed if another change of the Service is retried.
func (v *Verdict) retryOverFail() {
	for _, op := range v.Requeue {
		if at := slices.Index(v.Told[WordFailed], op.Service); at >= 0 && op.Member() {
			v.Told[WordFailed] = slices.Delete(v.Told[WordFailed], at, at+1)
			v.tell(WordRetrying, op.Service)
		}
	}
}

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
	if hasFailed := last == WordRetrying || last == WordFailed; hasFailed && (outcome == poolwrite.Unchanged || outcome == poolwrite.Written) {
		d.tell = WordUpdated
	}
	return d
}

// admin reports the first failure, or the success, of admin states.
func (v *Verdict) admin(outcome poolwrite.Outcome, d disposition, op *Operation, past Past) {
	v.AdminSince = op.ChangedAt
	v.AdminDone = outcome == poolwrite.Written || outcome == poolwrite.Unchanged
	if d.yield {
		op.Tries++
		op.againAt = past.Now.Add(backoff.Doubling{First: time.Second, Max: past.Longest}.After(op.Tries))
		v.AdminFailed = op.Tries == 1
	}
}

func (v *Verdict) tell(w Word, to ServiceName) {
	if w != wordNone && to != (ServiceName{}) && !slices.Contains(v.Told[w], to) {
		v.Told[w] = append(v.Told[w], to)
	}
}

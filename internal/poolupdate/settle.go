// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"slices"
	"time"

	"weir.dev/weir/internal/fault"
)

// Outcome is how an attempt ended.
type Outcome string

// The outcomes. Stale, Retriable, Terminal and Shutdown are the classes of a Fault.
const (
	Written   Outcome = "Written"   // Azure shows what was written
	Unchanged Outcome = "Unchanged" // the pool was level already
	Stale     Outcome = "Stale"     // the pool or its load balancer is gone
	Retriable Outcome = "Retriable" // this layer tries again while the budget lasts
	Terminal  Outcome = "Terminal"  // trying again cannot help
	Refused   Outcome = "Refused"   // a pool that Weir does not write
	Postponed Outcome = "Postponed" // no attempt was made; something of our own was not ready
	Shutdown  Outcome = "Shutdown"  // the lane is stopping
)

// outcomeOf returns the outcome that a fault's class stands for.
func outcomeOf(f *fault.Fault) Outcome {
	switch f.Class {
	case fault.Stale:
		return Stale
	case fault.Retriable:
		return Retriable
	case fault.Shutdown:
		return Shutdown
	}
	return Terminal
}

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
	tell  word
}

// row is what an outcome means for an operation that has a retry left, for one that has
// none, and for one without a change behind it in a pool whose last change was given up.
type row struct{ left, spent, givenUp disposition }

// settlement is the table. Nothing else decides what becomes of an operation. A look
// for drift at any other pool is settled like a fresh change.
var settlement = map[Outcome]row{
	Written:   {disposition{tell: wordUpdated}, disposition{tell: wordUpdated}, disposition{tell: wordUpdated}},
	Unchanged: {},
	Stale:     {},
	Retriable: {disposition{keep: true, spend: true, tell: wordRetrying}, disposition{tell: wordFailed}, disposition{tell: wordFailed}},
	Terminal:  {disposition{tell: wordFailed}, disposition{tell: wordFailed}, disposition{tell: wordFailed}},
	Refused:   {},
	Postponed: {disposition{keep: true}, disposition{keep: true}, disposition{keep: true}},
	Shutdown:  {},
}

// past is what a lane remembers of a pool when an attempt is settled.
type past struct {
	// told is the last word that each Service got.
	told map[ServiceName]word
	// gaveUp is true if the last change was given up; again, if it is for the same
	// error as now.
	gaveUp, again bool
}

// verdict is what settle decides for a group.
type verdict struct {
	requeue []Operation
	told    map[word][]ServiceName
	// retriesUsed is the highest count among the operations, after this attempt.
	retriesUsed int
}

// settle applies the table to every operation of a group. Two words are left out of it
// or put into it: an unchanged pool is silent unless its Service was last told Retrying
// or Failed (a write had landed whose answer was lost), and an error that a change was
// given up for is not told again by a look for drift.
func settle(outcome Outcome, retryAt time.Time, ops []Operation, maxRetries int, past past) verdict {
	v := verdict{told: map[word][]ServiceName{}}
	var gaveUp []ServiceName // on behalf of looks
	for _, op := range ops {
		d, looks := settlement[outcome].left, op.looks()
		switch {
		case looks && past.gaveUp:
			d = settlement[outcome].givenUp
			if past.again && d.tell == wordFailed {
				d.tell = wordNone
			}
		case op.retryCount >= maxRetries:
			d = settlement[outcome].spent
		}
		if last := past.told[op.Service]; outcome == Unchanged && (last == wordRetrying || last == wordFailed) {
			d.tell = wordUpdated
		}
		if d.spend {
			op.drift = false
			op.retryCount++
			op.nextEligibleAt = retryAt
		}
		v.retriesUsed = max(v.retriesUsed, op.retryCount)
		if d.keep {
			v.requeue = append(v.requeue, op)
		}
		if looks && d.tell == wordFailed {
			gaveUp = append(gaveUp, op.Service)
			continue
		}
		v.tell(d.tell, op.Service)
	}
	for _, s := range gaveUp {
		if len(v.requeue) == 0 { // beside a change that is tried again a look gives up nothing
			v.tell(wordFailed, s)
		}
	}
	return v
}

// tell says a word to a Service, once.
func (v *verdict) tell(w word, to ServiceName) {
	if w != wordNone && to != (ServiceName{}) && !slices.Contains(v.told[w], to) {
		v.told[w] = append(v.told[w], to)
	}
}

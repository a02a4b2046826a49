// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
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

// settlement is the table: the outcome, and what it means for an operation that
// has a retry left and for one that has none. Nothing else decides it.
var settlement = map[Outcome]struct{ left, spent disposition }{
	Written:   {disposition{tell: wordUpdated}, disposition{tell: wordUpdated}},
	Unchanged: {disposition{}, disposition{}},
	Stale:     {disposition{}, disposition{}},
	Retriable: {disposition{keep: true, spend: true, tell: wordRetrying}, disposition{tell: wordFailed}},
	Terminal:  {disposition{tell: wordFailed}, disposition{tell: wordFailed}},
	Refused:   {disposition{}, disposition{}},
	Postponed: {disposition{keep: true}, disposition{keep: true}},
	Shutdown:  {disposition{}, disposition{}},
}

// verdict is what settle decides for a group.
type verdict struct {
	requeue []Operation
	told    map[word][]ServiceName
	// retriesUsed is the highest count among the operations, after this attempt.
	retriesUsed int
}

// settle applies the table to every operation of a group. last is what each
// Service was told about this pool before: an unchanged pool is silent, unless
// that was Retrying or Failed (a write had landed whose answer was lost).
func settle(outcome Outcome, retryAt time.Time, ops []Operation, maxRetries int, last map[ServiceName]word) verdict {
	v := verdict{told: map[word][]ServiceName{}}
	said := map[ServiceName]map[word]bool{}
	for _, op := range ops {
		row := settlement[outcome]
		d := row.left
		if op.retryCount >= maxRetries {
			d = row.spent
		}
		if outcome == Unchanged && (last[op.Service] == wordRetrying || last[op.Service] == wordFailed) {
			d.tell = wordUpdated
		}
		if d.spend {
			op.retryCount++
			op.nextEligibleAt = retryAt
		}
		v.retriesUsed = max(v.retriesUsed, op.retryCount)
		if d.keep {
			v.requeue = append(v.requeue, op)
		}
		if d.tell == wordNone || op.Service == (ServiceName{}) || said[op.Service][d.tell] {
			continue
		}
		if said[op.Service] == nil {
			said[op.Service] = map[word]bool{}
		}
		said[op.Service][d.tell] = true
		v.told[d.tell] = append(v.told[d.tell], op.Service)
	}
	return v
}

// SPDX-License-Identifier: Apache-2.0

package armemu

import "weir.dev/weir/internal/behaviour"

// Where what was overtaken is taken back late, its operation goes on for three times as long as it
// would have taken, and a poll more: until then it is in progress, and the pool shows what it has put.

// discardsLate reports whether an operation that is overtaken now does so.
func (e *Emulator) discardsLate(op *operation) bool {
	return e.opts.Behaviour.Overlap == behaviour.SupersedeDiscardLate && op.target.child == poolKind && !op.remove
}

// own notes that a resource is written: what an overtaken write has put there is another's now.
func (e *Emulator) own(id resourceID) {
	for _, op := range e.running {
		if op.by != nil && op.target.rootKey() == id.rootKey() && (id.child == nil || op.target.key() == id.key()) {
			op.owned = true
		}
	}
}

// discard ends an overtaken operation, and takes back what it has put.
func (e *Emulator) discard(op *operation) {
	op.status = opCanceled
	agg := e.aggregates[op.target.rootKey()]
	if agg == nil || op.owned || !agg.has(op.target) {
		return
	}
	was, before := findChild(op.before, op.target), agg.body
	if was == nil { // it was made by the write
		return
	}
	agg.body = withChildBody(agg.body, op.target, was)
	e.retag(agg)
	e.changed(op.target, before, agg.body)
	e.programmed(op.target, op.deadline)
}

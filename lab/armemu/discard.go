// SPDX-License-Identifier: Apache-2.0

package armemu

import "weir.dev/weir/internal/behaviour"

// With SupersedeDiscardLate, the operation of a superseded write runs three times as long as it
// would have, plus one poll. Until then it is in progress and the pool shows what it wrote.

// discardsLate reports whether a superseded operation is discarded late.
func (e *Emulator) discardsLate(op *operation) bool {
	return e.opts.Behaviour.Overlap == behaviour.SupersedeDiscardLate && op.target.child == poolKind && !op.remove
}

// own records a write of a resource: superseded writes no longer revert it.
func (e *Emulator) own(id resourceID) {
	for _, op := range e.running {
		if op.by != nil && op.target.rootKey() == id.rootKey() && (id.child == nil || op.target.key() == id.key()) {
			op.owned = true
		}
	}
}

// discard ends a superseded operation and reverts its write.
func (e *Emulator) discard(op *operation) {
	op.status = opCanceled
	agg := e.aggregates[op.target.rootKey()]
	if agg == nil || op.owned || !agg.has(op.target) {
		return
	}
	was, before := findChild(op.before, op.target), agg.body
	if was == nil { // created by the write
		return
	}
	agg.body = withChildBody(agg.body, op.target, was)
	e.retag(agg)
	e.changed(op.target, before, agg.body)
	e.programmed(op.target, op.deadline)
}

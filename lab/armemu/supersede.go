// SPDX-License-Identifier: Apache-2.0

package armemu

import "weir.dev/weir/internal/behaviour"

// With SupersedeDiscardLate, the operation of a superseded write runs three times as long as it
// would have, plus one poll. Until then it is in progress and the pool shows what it wrote.

// isDiscardedLate reports whether a superseded operation is discarded late.
func (e *Emulator) isDiscardedLate(op *operation) bool {
	return e.opts.Behavior.Overlap == behaviour.SupersedeDiscardLate && op.target.child == poolKind && !op.remove
}

// markOverwritten records a write of a resource: superseded writes no longer revert it.
func (e *Emulator) markOverwritten(id resourceID) {
	for _, op := range e.running {
		if op.supersededBy != nil && op.target.rootKey() == id.rootKey() && (id.child == nil || op.target.key() == id.key()) {
			op.overwritten = true
		}
	}
}

// discardWrite ends a superseded operation and reverts its write.
func (e *Emulator) discardWrite(op *operation) {
	op.status = opCanceled
	agg := e.aggregates[op.target.rootKey()]
	if agg == nil || op.overwritten || !agg.hasResource(op.target) {
		return
	}
	was, before := findChild(op.before, op.target), agg.body
	if was == nil { // created by the write
		return
	}
	agg.body = withChildBody(agg.body, op.target, was)
	e.renewEtag(agg)
	e.updateReferences(op.target, before, agg.body)
	e.updateDataPlane(op.target, op.deadline)
}

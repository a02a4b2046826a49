// SPDX-License-Identifier: Apache-2.0

package armemu

import "weir.dev/weir/internal/lb/behavior"

// A late discard runs three times as long as the write would have, plus one poll. Until then the
// pool shows what it wrote.

func (e *Emulator) isDiscardedLate(op *operation) bool {
	return e.opts.Behavior.Overlap == behavior.SupersedeDiscardLate && op.target.child == poolKind && !op.remove
}

// markOverwritten prevents superseded writes from reverting this one.
func (e *Emulator) markOverwritten(id resourceID) {
	for _, op := range e.running {
		if op.supersededBy != nil && op.target.rootKey() == id.rootKey() && (id.child == nil || op.target.key() == id.key()) {
			op.overwritten = true
		}
	}
}

func (e *Emulator) discardWrite(op *operation) {
	op.status = opCanceled
	agg := e.aggregates[op.target.rootKey()]
	if agg == nil || op.overwritten || !agg.hasResource(op.target) {
		return
	}
	old, before := findChild(op.before, op.target), agg.body
	if old == nil { // created by the write
		return
	}
	agg.body = withChildBody(agg.body, op.target, old)
	e.renewEtag(agg)
	e.updateReferences(op.target, before, agg.body)
	e.updateDataPlane(op.target, op.deadline)
}

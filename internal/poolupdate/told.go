// SPDX-License-Identifier: Apache-2.0

package poolupdate

import "weir.dev/weir/internal/poolschedule"

// recalls has a pool that the lane does not know yet begin where an earlier process has
// ended: what was said by that one is not said again.
func (w *waiting) recalls(op poolschedule.Operation, isNew bool) {
	if isNew {
		w.history.GaveUp = op.Told.GivenUpFor
	}
	if _, spoken := w.told[op.Service]; spoken || !op.Told.Failure {
		return
	}
	w.told[op.Service] = poolschedule.WordRetrying
	if op.Told.GivenUpFor != "" {
		w.told[op.Service] = poolschedule.WordFailed
	}
}

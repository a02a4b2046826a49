// SPDX-License-Identifier: Apache-2.0

package poolupdate

// Told is what people have heard of a pool, as far as it decides what they hear next. Its
// zero value is nothing, or that all is well.
type Told struct {
	// Failure is true if the last word was Retrying or Failed: once the pool is level,
	// somebody waits to hear so.
	Failure bool
	// GivenUpFor is what the last change was given up for; empty if it was not. See Report.
	GivenUpFor string
}

// recalls has a pool that the lane does not know yet begin where an earlier process has
// ended: what was said by that one is not said again.
func (w *waiting) recalls(op Operation, isNew bool) {
	if isNew {
		w.history.gaveUp = op.Told.GivenUpFor
	}
	if _, spoken := w.told[op.Service]; spoken || !op.Told.Failure {
		return
	}
	w.told[op.Service] = wordRetrying
	if op.Told.GivenUpFor != "" {
		w.told[op.Service] = wordFailed
	}
}

// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
)

// ChangedKinds reports what changes. Adding a Down address changes both.
func (c Change) ChangedKinds() (addresses, states bool) {
	return c.addCount+c.removeCount > 0, c.updateCount > 0 || len(c.MarkedDown) > 0
}

// CountKept counts the changes that a later read shows, and those that it does not: overtaken writes that
// Azure kept, and discarded ones.
func CountKept(changes []Change, readBack []lb.Pool) (kept, lost int) {
	for i, c := range changes {
		switch addresses, states := c.ChangedKinds(); {
		case !addresses && !states:
		case c.IsAppliedIn(readBack[i]):
			kept++
		default:
			lost++
		}
	}
	return kept, lost
}

// ClassifyRejection classifies a rejection because another write is running; empty for others.
func ClassifyRejection(f *armerror.Fault) behavior.Result {
	switch {
	case f == nil || f.OperationFailed:
	case f.Code == "RetryableErrorDueToAnotherOperation":
		return behavior.Lock
	case f.Code == "AnotherOperationInProgress":
		return behavior.Conflict
	}
	return ""
}

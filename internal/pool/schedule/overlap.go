// SPDX-License-Identifier: Apache-2.0

package schedule

import "weir.dev/weir/internal/lb/behavior"

// Overlap adapts how many writes of a load balancer's pools are sent before the first has to complete. It starts
// without a limit, because a discarded write costs only one more. A rejected or discarded write lowers it to one;
// writes that succeed raise it by one at a time. The zero value has no limit.
type Overlap struct {
	limit      int
	serial     bool
	failures   int
	writes     int
	keptGroups int
}

const (
	// maxOverlap bounds a group, so that no change waits long behind others.
	maxOverlap = 100
	// minRecovery is the number of writes before two overlap again; it doubles with each failure.
	minRecovery    = 8
	maxRecoveryLog = 7
	// minKeptGroups is how many groups of overtaken writes must persist before Weir stops waiting for each write to end
	// (design 0083).
	minKeptGroups = 3
)

// NewOverlap returns the state at start. hint is what an earlier process or weirlab probe-azure has seen.
func NewOverlap(serial bool, hint behavior.Result) Overlap {
	switch {
	case serial:
		return Overlap{limit: 1, serial: true}
	case hint == "", hint == behavior.Supersede, hint == behavior.Mixed:
		return Overlap{}
	}
	return Overlap{}.AfterFailure()
}

// Limit returns how many writes may be in progress.
func (o Overlap) Limit() int {
	if o.limit == 0 {
		return maxOverlap
	}
	return o.limit
}

// AwaitsEach reports whether the ends of overtaken writes are awaited: they might roll back.
func (o Overlap) AwaitsEach() bool { return o.keptGroups < minKeptGroups }

// AfterSuccess returns the state after writes that succeeded; overtaken counts those that still ran when Azure accepted
// the next one.
func (o Overlap) AfterSuccess(writes, overtaken int) Overlap {
	if overtaken > 0 {
		o.keptGroups, o.failures = min(o.keptGroups+1, minKeptGroups), 0
	}
	switch {
	case o.serial, o.limit == 0:
	case o.limit > 1 && overtaken > 0:
		o.limit = min(o.limit+1, maxOverlap)
	case o.limit == 1:
		if o.writes += writes; o.writes >= minRecovery<<min(max(o.failures-1, 0), maxRecoveryLog) {
			o.limit, o.writes = 2, 0
		}
	}
	return o
}

// AfterFailure returns the state after a write was rejected because of another, or discarded by the next.
func (o Overlap) AfterFailure() Overlap {
	return Overlap{limit: 1, serial: o.serial, failures: o.failures + 1}
}

// IsLimited reports whether writes do not overlap now.
func (o Overlap) IsLimited() bool { return o.limit == 1 }

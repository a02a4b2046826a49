// SPDX-License-Identifier: Apache-2.0

package ratelimit

import "time"

// MaxTime returns the later of two times.
func MaxTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// MinTime returns the earlier of two times; a zero time is ignored.
func MinTime(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

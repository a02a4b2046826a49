// SPDX-License-Identifier: Apache-2.0

package ratelimit

import "time"

// Exponential is a delay that doubles from a first value up to Max.
type Exponential struct {
	Initial time.Duration
	Max     time.Duration
}

// DelayAfter returns the delay after the n-th consecutive failure, n from 1; zero for n below 1.
func (e Exponential) DelayAfter(n int) time.Duration {
	if n < 1 {
		return 0
	}
	delay := e.Initial
	for i := 1; i < n && delay < e.Max; i++ {
		delay *= 2
	}
	return min(delay, e.Max)
}

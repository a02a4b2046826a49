// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Over any period at most the burst plus the refill is taken, and a caller that returns at the
// given time is served.
func TestLawAllowance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a readLimit
		var times []time.Time
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for range rapid.IntRange(1, 120).Draw(t, "reads") {
			now = now.Add(time.Duration(rapid.IntRange(0, 900).Draw(t, "pause")) * time.Millisecond)
			remaining, until := a.takeRead(now)
			if !until.IsZero() {
				now = until.Add(time.Microsecond)
				if remaining, until = a.takeRead(now); !until.IsZero() {
					t.Fatalf("told to come again at %s", until)
				}
			}
			a, times = remaining, append(times, now)
		}
		for i := range times {
			for j := i; j < len(times); j++ {
				if limit := readBurst + 1e-6 + readsPerSecond*times[j].Sub(times[i]).Seconds(); float64(j-i+1) > limit {
					t.Fatalf("%d within %s", j-i+1, times[j].Sub(times[i]))
				}
			}
		}
	})
}

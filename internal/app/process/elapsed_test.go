// SPDX-License-Identifier: Apache-2.0

package process

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whichever clock stops, and however the wall clock is set, elapsed time is never lost and never decreases.
func TestElapsedTimeUsesTheLargerClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var boot time.Duration
		wall := time.Unix(1e9, 0)
		clock := newElapsedClock(func() time.Duration { return boot }, func() time.Time { return wall })
		last := clock()
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if now := clock(); now != last {
					t.Fatalf("%s passed in no time", now-last)
				}
			},
			"step": func(t *rapid.T) {
				b := time.Duration(rapid.IntRange(0, 100).Draw(t, "since start")) * time.Second
				w := time.Duration(rapid.IntRange(-100, 100).Draw(t, "wall")) * time.Second
				boot, wall = boot+b, wall.Add(w)
				now := clock()
				if now-last != max(b, w) {
					t.Fatalf("%s passed, by the clocks %s and %s", now-last, b, w)
				}
				last = now
			},
		})
	})
}

// The clock of this machine advances.
func TestTheClockOfThisMachine(t *testing.T) {
	if a := sinceStart(); a <= 0 || sinceStart() < a {
		t.Error("it stands, or goes back")
	}
}

// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"testing"
	"time"
)

// mostInTime returns how many changes have at most a lag, by the number of writes: of one pool each, placed with
// knowledge of the future, and none delays another.
func mostInTime(changes []massChange, writes int, effect, lag time.Duration) []int {
	byPool := map[int][]time.Duration{}
	for _, c := range changes {
		byPool[c.pools[0]] = append(byPool[c.pools[0]], c.at)
	}
	total := make([]int, writes+1)
	for _, at := range byPool {
		ofPool := mostOfPool(at, writes, lag-effect)
		next := make([]int, writes+1)
		for n := range next {
			for of := range n + 1 {
				next[n] = max(next[n], total[n-of]+ofPool[of])
			}
		}
		total = next
	}
	return total
}

// mostOfPool is mostInTime for the changes of one pool. A write serves those up to window before it.
func mostOfPool(at []time.Duration, writes int, window time.Duration) []int {
	best := make([][]int, len(at)+1)
	best[len(at)] = make([]int, writes+1)
	for i := len(at) - 1; i >= 0; i-- {
		best[i] = make([]int, writes+1)
		last := i
		for last < len(at) && at[last] <= at[i]+window {
			last++
		}
		for n := range writes + 1 {
			if best[i][n] = best[i+1][n]; n > 0 {
				best[i][n] = max(best[i][n], last-i+best[last][n-1])
			}
		}
	}
	return best[0]
}

// The figures of design record 0083: each write serves one change within 3.5 s, whether it takes 2 s or no time.
func TestFewestWritesOfRollingChanges(t *testing.T) {
	for _, explanation := range massStories() {
		if explanation.name != "later ones" {
			continue
		}
		half := len(explanation.changes)/2 + 1
		for effect, want := range map[time.Duration]time.Duration{0: 5 * time.Second, 2 * time.Second: 7 * time.Second} {
			limit := mostInTime(explanation.changes, half, effect, 3500*time.Millisecond)
			if limit[half] != half || limit[half-1] != half-1 {
				t.Errorf("%s: %v changes in time", effect, limit[half-1:])
			}
			median := effect
			for mostInTime(explanation.changes, 40, effect, median)[40] < half {
				median += 500 * time.Millisecond
			}
			if median != want {
				t.Errorf("%s: a median of %s with 40 writes, want %s", effect, median, want)
			}
		}
		return
	}
	t.Fatal("no such story")
}

// SPDX-License-Identifier: Apache-2.0

package lag

import "time"

// Found is what was found for who knows the future.
type Found struct {
	// Best is one schedule, that of the least mean lag.
	Best Figures
	// Median and P99 are the least of any schedule, whatever its other figures are: some have the one
	// by starving whoever makes the other.
	Median, P99 time.Duration
	// Unforeseen is the one of the least mean lag among those that do not know the future. Their constants
	// are fitted to the trace, which nobody can do before it is over.
	Unforeseen Figures
}

// played is what all plans come to.
type played []outcome

// outcome is what a plan comes to.
type outcome struct {
	Figures
	foresees bool
}

// plays plays all plans.
func (t Trace) plays(cost Cost) played {
	var all played
	for _, p := range clairvoyants() {
		all = append(all, outcome{t.Measure(p.play(t, cost)), p.foresees()})
	}
	return all
}

// Clairvoyant is the best that was found for a trace by who knows the future, and is bound to what Weir
// is: no more than so many writes in any five minutes, unless each pool has one an interval at most.
func (all played) Clairvoyant(budget int) Found {
	var found Found
	for _, f := range all {
		if f.Most > budget && f.Early > 0 {
			continue
		}
		if found.Best.Writes == 0 {
			found = Found{Best: f.Figures, Median: f.Median, P99: f.P99}
		}
		if f.Mean < found.Best.Mean {
			found.Best = f.Figures
		}
		if !f.foresees && (found.Unforeseen.Writes == 0 || f.Mean < found.Unforeseen.Mean) {
			found.Unforeseen = f.Figures
		}
		found.Median, found.P99 = min(found.Median, f.Median), min(found.P99, f.P99)
	}
	return found
}

// clairvoyants are the plans that are tried.
func clairvoyants() []plan {
	var all []plan
	for _, spacing := range []int{0, 10, 15, 20, 25, 30, 40, 60, 120} {
		for _, ahead := range []int{0, 1000, 4000, 8000, 15000} {
			for _, alone := range []int{0, 5, 10, 15, 20, 30} {
				if alone > 10 && ahead > 0 {
					continue // who knows the second change need not wait for it so long
				}
				for first := range rules {
					all = append(all, plan{
						spacing: time.Duration(spacing) * time.Second, ahead: time.Duration(ahead) * time.Millisecond,
						alone: time.Duration(alone) * time.Second, first: first, most: mostTogether,
					})
				}
			}
		}
	}
	return all
}

// mostTogether is how many pools Weir writes together.
const mostTogether = 100

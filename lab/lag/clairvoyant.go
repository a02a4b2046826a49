// SPDX-License-Identifier: Apache-2.0

package lag

import "time"

// Found is the best result with knowledge of the future.
type Found struct {
	// Best is the schedule with the least mean lag.
	Best Figures
	// Median and P99 are the least of any schedule. A schedule may reach one at the cost of the
	// other.
	Median, P99 time.Duration
	// Unforeseen is the schedule with the least mean lag among those without knowledge of the
	// future. Its constants are fitted to the trace.
	Unforeseen Figures
}

// played are the results of all plans.
type played []outcome

// outcome is the result of a plan.
type outcome struct {
	Figures
	foresees bool
}

// plays runs all plans.
func (t Trace) plays(cost Cost) played {
	var all played
	for _, p := range clairvoyants() {
		all = append(all, outcome{t.Measure(p.play(t, cost)), p.foresees()})
	}
	return all
}

// Clairvoyant returns the best result under Weir's constraint: at most budget writes in any five
// minutes, unless each pool has at most one per interval.
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

// clairvoyants returns the candidate plans.
func clairvoyants() []plan {
	var all []plan
	for _, spacing := range []int{0, 10, 15, 20, 25, 30, 40, 60, 120} {
		for _, ahead := range []int{0, 1000, 4000, 8000, 15000} {
			for _, alone := range []int{0, 5, 10, 15, 20, 30} {
				if alone > 10 && ahead > 0 {
					continue // with foresight a longer wait is pointless
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

// mostTogether is the maximum number of pools in one of Weir's writes.
const mostTogether = 100

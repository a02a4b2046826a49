// SPDX-License-Identifier: Apache-2.0

package lag

import "time"

// BestResult is the result with the least mean lag.
type BestResult struct{ Best Stats }

type planResults []Stats

func (t Trace) runPlans(cost Cost) planResults {
	var results planResults
	for _, p := range candidatePlans() {
		results = append(results, t.ComputeStats(p.runTrace(t, cost)))
	}
	return results
}

// FindBest allows at most budget writes in any five minutes, unless each pool has at most one
// per interval.
func (p planResults) FindBest(budget int) BestResult {
	var found BestResult
	for _, f := range p {
		if f.MaxPerWindow > budget && f.Early > 0 {
			continue
		}
		if found.Best.Writes == 0 || f.Average < found.Best.Average {
			found.Best = f
		}
	}
	return found
}

func candidatePlans() []writePlan {
	var plans []writePlan
	for _, spacing := range []int{0, 10, 15, 20, 25, 30, 40, 60, 120} {
		for _, ahead := range []int{0, 1000, 4000, 8000, 15000} {
			for _, alone := range []int{0, 5, 10, 15, 20, 30} {
				if alone > 10 && ahead > 0 {
					continue // with foresight a longer wait is pointless
				}
				for first := range poolOrderCount {
					plans = append(plans, writePlan{
						minInterval: time.Duration(spacing) * time.Second, lookahead: time.Duration(ahead) * time.Millisecond,
						singleWait: time.Duration(alone) * time.Second, order: first, maxPools: maxBatch,
					})
				}
			}
		}
	}
	return plans
}

// maxBatch is Weir's limit.
const maxBatch = 100

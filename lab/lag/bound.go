// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"slices"
	"time"
)

// LowerBound returns a lower bound of the mean lag of a strategy. By Little's law the mean lag is the
// number of waiting changes, integrated over time. All changes wait that are too recent for a write
// to have taken effect; of earlier ones, only as many pools can be in sync as writes fit in. A
// change that is later reverted counts only until then.
func (t Trace) LowerBound(cost Cost, budget int) time.Duration {
	const step = 2 * time.Second
	back := t.revertTimes()
	effect := cost.Accept + cost.Effect
	fit := func(d time.Duration) int { return int(d/(cost.Accept+cost.Busy)) + 1 }
	if cost.Strategy == Overlapping {
		fit = func(d time.Duration) int { return int(d/cost.Accept) + 1 }
	}
	waiting := 0.0 // changes × seconds
	for i, c := range t.Changes {
		waiting += min(effect, back[i]-c.At).Seconds()
	}
	for at := time.Duration(0); at < t.Duration; at += step {
		// Pessimistic over the step: exclude changes in it, include all possible writes.
		now, per := at+step, map[int][]Change{}
		for i, c := range t.Changes {
			if c.At <= at-effect && back[i] > now {
				per[t.LoadBalancers[c.Pool]] = append(per[t.LoadBalancers[c.Pool]], c)
			}
		}
		sum := 0
		for _, changes := range per {
			sum += countWaiting(changes, now-effect, len(t.Initial), fit)
		}
		var items []Change
		for _, changes := range per {
			items = append(items, changes...)
		}
		slices.SortFunc(items, func(a, b Change) int { return int(a.At - b.At) })
		sum = max(sum, countWaiting(items, now-effect, len(t.Initial), func(d time.Duration) int { return budget * (int(d/quotaWindow) + 1) }))
		waiting += float64(sum) * step.Seconds()
	}
	return time.Duration(waiting / float64(len(t.Changes)) * float64(time.Second))
}

// revertTimes: when the pool first wants an earlier content again, or the maximum time.
func (t Trace) revertTimes() []time.Duration {
	durations, next := make([]time.Duration, len(t.Changes)), map[int]time.Duration{}
	before := make([][]nodeSet, len(t.Changes))
	old := map[int][]nodeSet{}
	for i, c := range t.Changes {
		if old[c.Pool] == nil {
			old[c.Pool] = []nodeSet{t.Initial[c.Pool]}
		}
		before[i] = old[c.Pool]
		old[c.Pool] = append(slices.Clip(old[c.Pool]), c.Want)
	}
	for i, c := range slices.Backward(t.Changes) {
		if slices.Contains(before[i], c.Want) {
			next[c.Pool] = c.At
		}
		durations[i] = 1 << 62
		if at, ok := next[c.Pool]; ok {
			durations[i] = at
		}
	}
	return durations
}

// countWaiting expects changes sorted by time; fit returns how many writes fit in.
func countWaiting(changes []Change, now time.Duration, limit int, fit func(time.Duration) int) int {
	pools, waits := map[int]int{}, 0
	for i, c := range slices.Backward(changes) {
		if fit(now-c.At) >= limit {
			break
		}
		pools[c.Pool]++
		if i > 0 && changes[i-1].At == c.At {
			continue
		}
		if over := len(pools) - fit(now-c.At); over > 0 {
			counts := make([]int, 0, len(pools))
			for _, n := range pools {
				counts = append(counts, n)
			}
			slices.Sort(counts)
			sum := 0
			for _, n := range counts[:over] {
				sum += n
			}
			waits = max(waits, sum)
		}
	}
	return waits
}

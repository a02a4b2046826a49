// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"math"
	"slices"
	"time"
)

// Clairvoyant is the best that was found for a trace by who knows the future, with no more than
// so many writes in any five minutes. Each figure is the best of its own, whatever the others
// of that schedule are.
func (t Trace) Clairvoyant(cost Cost, budget int) Figures {
	best := Figures{Mean: t.Lasts, Median: t.Lasts, P99: t.Lasts, Missing: math.Inf(1)}
	for _, p := range clairvoyants() {
		f := t.Measure(p.play(t, cost))
		if f.Most > budget {
			continue
		}
		if f.Mean < best.Mean {
			best.Mean, best.Writes, best.Most, best.Lags = f.Mean, f.Writes, f.Most, f.Lags
		}
		best.Median, best.P99 = min(best.Median, f.Median), min(best.P99, f.P99)
		if f.Missing+f.Wrong < best.Missing+best.Wrong {
			best.Missing, best.Wrong = f.Missing, f.Wrong
		}
	}
	return best
}

// clairvoyants are the plans that are tried.
func clairvoyants() []plan {
	var all []plan
	for _, spacing := range []int{0, 5, 10, 15, 20, 25, 30, 35, 40, 50, 60, 80, 100, 120, 180, 300} {
		for _, ahead := range []int{0, 500, 1000, 2000, 4000, 8000, 15000} {
			for first := range rules {
				all = append(all, plan{spacing: time.Duration(spacing) * time.Second, ahead: time.Duration(ahead) * time.Millisecond, first: first})
			}
		}
	}
	return all
}

// Exact is the least mean lag that any schedule of serial writes has, for a trace so small that
// all of them can be tried: about a dozen changes.
func (t Trace) Exact(cost Cost) time.Duration {
	total := time.Duration(0)
	for lb := range slices.Max(t.Balancers) + 1 {
		s := search{cost: cost, best: 1 << 62}
		for _, c := range t.Changes {
			if t.Balancers[c.Pool] == lb {
				s.changes = append(s.changes, c)
			}
		}
		s.try(0, 0, make([]time.Duration, len(t.First)))
		total += s.best
	}
	return total / time.Duration(len(t.Changes))
}

// search tries all schedules of one load balancer.
type search struct {
	cost    Cost
	changes []Change
	best    time.Duration // the least sum
}

// try goes on from when the load balancer is free, with so much lag so far and each pool brought
// up to a time. A write that is best begins when a change comes or when the load balancer is
// free: else it might as well begin earlier.
func (s *search) try(free, sum time.Duration, brought []time.Duration) {
	if sum >= s.best {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(s.changes), func(c Change) bool { return c.At < brought[c.Pool] })
	if len(rest) == 0 {
		s.best = sum
		return
	}
	starts := []time.Duration{}
	for _, c := range rest {
		starts = append(starts, max(free, c.At))
	}
	slices.Sort(starts)
	for _, start := range slices.Compact(starts) {
		for pool := range brought {
			lag, n := time.Duration(0), 0
			for _, c := range rest {
				if c.Pool == pool && c.At <= start {
					lag, n = lag+start+s.cost.Effect-c.At, n+1
				}
			}
			if n > 0 {
				next := slices.Clone(brought)
				next[pool] = start + 1
				s.try(start+s.cost.Busy, sum+lag, next)
			}
		}
	}
}

// AtLeast is a mean lag that no schedule of serial writes goes below, whatever it knows. By
// Little's law the mean lag is how many changes wait at each moment, over time. At a moment all
// changes wait that came so lately that no write can have taken effect. Of the time before, take
// any stretch: of the pools that changed in it only as many can be level as writes fit in.
func (t Trace) AtLeast(cost Cost, budget int) time.Duration {
	const step = 2 * time.Second
	waiting := cost.Effect.Seconds() * float64(len(t.Changes)) // changes × seconds
	for at := time.Duration(0); at < t.Lasts; at += step {
		// Through the whole step no change counts that comes in it, and every write that may.
		now, per := at+step, map[int][]Change{}
		for _, c := range t.Changes {
			if c.At <= at-cost.Effect {
				per[t.Balancers[c.Pool]] = append(per[t.Balancers[c.Pool]], c)
			}
		}
		sum := 0
		for _, changes := range per {
			sum += unserved(changes, now-cost.Effect, len(t.First), func(d time.Duration) int { return int(d/cost.Busy) + 1 })
		}
		var all []Change
		for _, changes := range per {
			all = append(all, changes...)
		}
		slices.SortFunc(all, func(a, b Change) int { return int(a.At - b.At) })
		sum = max(sum, unserved(all, now-cost.Effect, len(t.First), func(d time.Duration) int { return budget * (int(d/windowLasts) + 1) }))
		waiting += float64(sum) * step.Seconds()
	}
	return time.Duration(waiting / float64(len(t.Changes)) * float64(time.Second))
}

// unserved is how many of some changes, in order of time, wait at least, if so many writes fit
// into a time, and there are so many pools at most.
func unserved(changes []Change, now time.Duration, most int, fit func(time.Duration) int) int {
	pools, waits := map[int]int{}, 0
	for i, c := range slices.Backward(changes) {
		if fit(now-c.At) >= most {
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

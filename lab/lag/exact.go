// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"slices"
	"time"

	"weir.dev/weir/internal/wholewrite"
)

// Exact returns the least mean lag of any schedule of a strategy, by exhaustive search: for half a
// dozen changes.
func (t Trace) Exact(cost Cost) time.Duration {
	total := time.Duration(0)
	for lb := range slices.Max(t.Balancers) + 1 {
		s := search{trace: t, cost: cost, changes: make([][]Change, len(t.First)), best: 1 << 62}
		for _, c := range t.Changes {
			if t.Balancers[c.Pool] == lb {
				s.changes[c.Pool] = append(s.changes[c.Pool], c)
			}
		}
		s.try(nil, 0, 0)
		total += s.best
	}
	return total / time.Duration(len(t.Changes))
}

// search tries all schedules of one load balancer.
type search struct {
	trace   Trace
	cost    Cost
	changes [][]Change    // by pool
	best    time.Duration // least total lag
}

// try extends a sequence of writes; row is the first write of the current pipelined row, free the
// time when the load balancer is free. An optimal write starts when a change arrives, when the load
// balancer is free, or so that a later write of its row does.
func (s *search) try(writes []Write, row int, free time.Duration) {
	sum, least := s.sum(writes)
	s.best = min(s.best, sum)
	if least >= s.best {
		return
	}
	var starts []time.Duration
	for pool, changes := range s.changes {
		for _, c := range changes {
			if c.At <= lastOf(writes, pool) {
				continue
			}
			starts = append(starts, max(free, c.At))
			for before := 1; s.cost.Strategy == wholewrite.Pipelined && before < len(s.changes); before++ {
				starts = append(starts, max(free, c.At-time.Duration(before)*s.cost.Accept))
			}
		}
	}
	slices.Sort(starts)
	for _, start := range slices.Compact(starts) {
		for _, pools := range s.choices(writes, nil, start) {
			next := slices.Clone(writes)
			for i, pool := range pools {
				next = append(next, Write{Pool: pool, From: start, Part: i > 0})
			}
			s.follow(next, len(writes), start, len(pools))
		}
	}
	if s.cost.Strategy == wholewrite.Pipelined && len(writes) > 0 {
		start := writes[len(writes)-1].From + s.cost.Accept
		for _, pools := range s.choices(writes, writes[row:], start) {
			s.follow(append(slices.Clone(writes), Write{Pool: pools[0], From: start}), row, start, 1)
		}
	}
}

// follow continues after writes that take effect together; start is the start of the last one.
func (s *search) follow(writes []Write, row int, start time.Duration, together int) {
	effect := s.cost.Effect
	if together > 1 {
		effect = s.cost.Whole
	}
	accepted := start + s.cost.Accept
	for i := row; i < len(writes); i++ {
		writes[i].Effect = accepted + effect
	}
	s.try(writes, row, accepted+s.cost.Busy)
}

// choices returns the sets of pools that can be written at a time.
func (s *search) choices(writes, but []Write, start time.Duration) [][]int {
	all := [][]int{nil}
	for pool, changes := range s.changes {
		waits := slices.ContainsFunc(changes, func(c Change) bool { return c.At > lastOf(writes, pool) && c.At <= start })
		if !waits || slices.ContainsFunc(but, func(w Write) bool { return w.Pool == pool }) {
			continue
		}
		for _, others := range all {
			if len(others) == 0 || s.cost.Strategy == wholewrite.Whole {
				all = append(all, append(slices.Clone(others), pool))
			}
		}
	}
	return all[1:]
}

// sum returns the total lag if nothing else is written, and the part that further writes cannot
// change.
func (s *search) sum(writes []Write) (sum, least time.Duration) {
	for pool, changes := range s.changes {
		its := slices.DeleteFunc(slices.Clone(writes), func(w Write) bool { return w.Pool != pool })
		for i, lag := range lags(s.trace.First[pool], changes, its, s.trace.Lasts) {
			if sum += lag; changes[i].At <= lastOf(writes, pool) {
				least += lag
			}
		}
	}
	return sum, least
}

// lastOf returns the start of a pool's last write; -1 if there is none.
func lastOf(writes []Write, pool int) time.Duration {
	for _, w := range slices.Backward(writes) {
		if w.Pool == pool {
			return w.From
		}
	}
	return -1
}

// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"slices"
	"time"
)

// Exact returns the least mean lag by exhaustive search, for half a dozen changes.
func (t Trace) Exact(cost Cost) time.Duration {
	total := time.Duration(0)
	for lb := range slices.Max(t.LoadBalancers) + 1 {
		s := scheduleSearch{trace: t, cost: cost, changes: make([][]Change, len(t.Initial)), best: 1 << 62}
		for _, c := range t.Changes {
			if t.LoadBalancers[c.Pool] == lb {
				s.changes[c.Pool] = append(s.changes[c.Pool], c)
			}
		}
		s.trySchedule(nil, 0, 0)
		total += s.best
	}
	return total / time.Duration(len(t.Changes))
}

type scheduleSearch struct {
	trace   Trace
	cost    Cost
	changes [][]Change    // by pool
	best    time.Duration // least total lag
}

// trySchedule extends the writes; row is the first of the current pipelined row. An optimal write starts
// when a change arrives, when the load balancer is free, or so that a later write of its row does.
func (s *scheduleSearch) trySchedule(writes []Write, row int, free time.Duration) {
	sum, least := s.sumLatencies(writes)
	s.best = min(s.best, sum)
	if least >= s.best {
		return
	}
	var starts []time.Duration
	for pool, changes := range s.changes {
		for _, c := range changes {
			if c.At <= lastWrite(writes, pool) {
				continue
			}
			starts = append(starts, max(free, c.At))
			for before := 1; s.cost.Strategy == Overlapping && before < len(s.changes); before++ {
				starts = append(starts, max(free, c.At-time.Duration(before)*s.cost.Accept))
			}
		}
	}
	slices.Sort(starts)
	for _, start := range slices.Compact(starts) {
		for _, pool := range s.waitingPools(writes, nil, start) {
			s.tryEffect(append(slices.Clone(writes), Write{Pool: pool, From: start}), len(writes), start)
		}
	}
	if s.cost.Strategy == Overlapping && len(writes) > 0 {
		start := writes[len(writes)-1].From + s.cost.Accept
		for _, pool := range s.waitingPools(writes, writes[row:], start) {
			s.tryEffect(append(slices.Clone(writes), Write{Pool: pool, From: start}), row, start)
		}
	}
}

// tryEffect continues after a write that started at start.
func (s *scheduleSearch) tryEffect(writes []Write, row int, start time.Duration) {
	accepted := start + s.cost.Accept
	for i := row; i < len(writes); i++ {
		writes[i].Effect = accepted + s.cost.Effect
	}
	s.trySchedule(writes, row, accepted+s.cost.Busy)
}

func (s *scheduleSearch) waitingPools(writes, but []Write, start time.Duration) (pools []int) {
	for pool, changes := range s.changes {
		waits := slices.ContainsFunc(changes, func(c Change) bool { return c.At > lastWrite(writes, pool) && c.At <= start })
		if !waits || slices.ContainsFunc(but, func(w Write) bool { return w.Pool == pool }) {
			continue
		}
		pools = append(pools, pool)
	}
	return pools
}

// sumLatencies also returns the part that further writes cannot change.
func (s *scheduleSearch) sumLatencies(writes []Write) (sum, least time.Duration) {
	for pool, changes := range s.changes {
		poolWrites := slices.DeleteFunc(slices.Clone(writes), func(w Write) bool { return w.Pool != pool })
		for i, lag := range changeLatencies(s.trace.Initial[pool], changes, poolWrites, s.trace.Duration) {
			if sum += lag; changes[i].At <= lastWrite(writes, pool) {
				least += lag
			}
		}
	}
	return sum, least
}

func lastWrite(writes []Write, pool int) time.Duration {
	for _, w := range slices.Backward(writes) {
		if w.Pool == pool {
			return w.From
		}
	}
	return -1
}

// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"slices"
	"time"
)

// Strategy is whether writes of a load balancer's pools overlap.
type Strategy string

// The strategies.
const (
	Serial      Strategy = "serial"      // each after the previous one has completed
	Overlapping Strategy = "overlapping" // each once the previous one was accepted
)

// Cost is the duration of an isolated write.
type Cost struct {
	Strategy Strategy
	// Accept is until Azure accepts a write; then the next pipelined one may start.
	Accept time.Duration
	// Effect is from then until Azure applies it, and Busy until the next write or pipelined row
	// may start. A row takes effect with its last write.
	Effect, Busy time.Duration
}

type writePlan struct {
	// debounce is how long a change waits for others of its pool; ahead, the longest gap before the
	// next change worth waiting for.
	debounce, lookahead time.Duration
	// minimum time between writes of a pool
	minInterval time.Duration
	order       poolOrder
	// how long a single change waits for a second one
	singleWait time.Duration
	// maxPools limits the pools written together, or in a row.
	maxPools int
	// interval is the interval at which one goroutine writes all pools.
	interval time.Duration
}

type poolOrder int

const (
	oldestChange poolOrder = iota // longest waiting change
	mostChanges                   // most waiting changes
	latestChange                  // latest next change
	oldestWrite                   // oldest last write
	poolOrderCount
)

// planRun is one load balancer in a run.
type planRun struct {
	writePlan
	cost    Cost
	changes [][]Change // by pool
	states  []poolState
	writes  []Write
}

type poolState struct {
	seen           int // changes so far
	writtenChanges int // changes delivered by a write
	members        nodeSet
	lastWrite      time.Duration // start
	hasWrite       bool
}

func (p writePlan) runTrace(t Trace, cost Cost) []Write {
	of := map[int][]int{}
	for pool, lb := range t.LoadBalancers {
		if p.interval > 0 {
			lb = 0
		}
		of[lb] = append(of[lb], pool)
	}
	var writes []Write
	for _, pools := range of {
		l := planRun{writePlan: p, cost: cost, changes: make([][]Change, len(pools)), states: make([]poolState, len(pools))}
		at := map[int]int{}
		for i, pool := range pools {
			at[pool], l.states[i].members = i, t.Initial[pool]
		}
		for _, c := range t.Changes {
			if i, poolChanges := at[c.Pool]; poolChanges {
				l.changes[i] = append(l.changes[i], c)
			}
		}
		if p.interval > 0 {
			l.runIntervals(t.Duration)
		} else {
			l.runUntilDone()
		}
		for _, w := range l.writes {
			w.Pool = pools[w.Pool]
			writes = append(writes, w)
		}
	}
	return writes
}

// runIntervals skips a tick while the previous round is running.
func (r *planRun) runIntervals(lasts time.Duration) {
	free := time.Duration(0)
	for now := r.interval; now < lasts; now += r.interval {
		if free > now {
			continue
		}
		free = now
		for i := range r.states {
			r.observeChanges(i, now)
			if p := &r.states[i]; p.seen > p.writtenChanges {
				r.writes = append(r.writes, Write{Pool: i, From: now, Effect: free + r.cost.Effect})
				r.applyMembers(i)
				free += r.cost.Busy
			}
		}
	}
}

func (r *planRun) runUntilDone() {
	now := time.Duration(0)
	for {
		best, next := r.nextPool(now, nil)
		switch {
		case best >= 0:
			now = r.writePool(best, now)
		case next >= 0:
			now = next
		default:
			return
		}
	}
}

// nextPool returns -1 and the time to try again if no pool is due.
func (r *planRun) nextPool(now time.Duration, but []int) (best int, next time.Duration) {
	best, next = -1, -1
	for i := range r.states {
		r.observeChanges(i, now)
		at, waits := r.dueAt(i)
		switch {
		case !waits, slices.Contains(but, i):
		case at > now:
			if next < 0 || at < next {
				next = at
			}
		case best < 0 || r.isBefore(i, best):
			best = i
		}
	}
	return best, next
}

// writePool returns when the load balancer is free.
func (r *planRun) writePool(pool int, now time.Duration) (free time.Duration) {
	first, written := len(r.writes), []int(nil)
	for pool >= 0 && len(written) < max(r.maxPools, 1) {
		written = append(written, pool)
		r.writes = append(r.writes, Write{Pool: pool, From: now})
		r.states[pool].lastWrite, r.states[pool].hasWrite = now, true
		r.applyMembers(pool)
		if now += r.cost.Accept; r.cost.Strategy == Serial {
			break
		}
		pool, _ = r.nextPool(now, written)
	}
	for i := first; i < len(r.writes); i++ {
		r.writes[i].Effect = now + r.cost.Effect
	}
	return now + r.cost.Busy
}

// observeChanges drops changes reverted before a write.
func (r *planRun) observeChanges(i int, now time.Duration) {
	p := &r.states[i]
	for p.seen < len(r.changes[i]) && r.changes[i][p.seen].At <= now {
		p.seen++
	}
	if p.seen > p.writtenChanges && r.changes[i][p.seen-1].Want == p.members {
		p.writtenChanges = p.seen
	}
}

func (r *planRun) applyMembers(i int) {
	p := &r.states[i]
	p.writtenChanges, p.members = p.seen, r.changes[i][p.seen-1].Want
}

func (r *planRun) dueAt(i int) (at time.Duration, waits bool) {
	p, changes := &r.states[i], r.changes[i]
	if p.writtenChanges == len(changes) {
		return 0, false
	}
	at = changes[p.writtenChanges].At + r.debounce
	for n := p.writtenChanges + 1; n < len(changes) && changes[n].At-changes[n-1].At <= r.lookahead; n++ {
		if changes[n].At-changes[p.writtenChanges].At > 3*r.lookahead {
			break
		}
		at = max(at, changes[n].At)
	}
	if p.writtenChanges+1 == p.seen {
		alone := changes[p.writtenChanges].At + r.singleWait
		if p.seen < len(changes) {
			alone = min(alone, changes[p.seen].At)
		}
		at = max(at, alone)
	}
	if p.hasWrite {
		at = max(at, p.lastWrite+r.minInterval)
	}
	return at, true
}

func (r *planRun) isBefore(a, b int) bool {
	pa, pb := &r.states[a], &r.states[b]
	switch r.order {
	case mostChanges:
		if na, nb := pa.seen-pa.writtenChanges, pb.seen-pb.writtenChanges; na != nb {
			return na > nb
		}
	case latestChange:
		if na, nb := r.nextChange(a), r.nextChange(b); na != nb {
			return na > nb
		}
	case oldestWrite:
		if pa.lastWrite != pb.lastWrite {
			return pa.lastWrite < pb.lastWrite
		}
	}
	return r.changes[a][pa.writtenChanges].At < r.changes[b][pb.writtenChanges].At
}

func (r *planRun) nextChange(i int) time.Duration {
	if n := r.states[i].seen; n < len(r.changes[i]) {
		return r.changes[i][n].At
	}
	return 1 << 62
}

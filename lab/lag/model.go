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
	var all []Write
	for _, pools := range of {
		l := planRun{writePlan: p, cost: cost, changes: make([][]Change, len(pools)), states: make([]poolState, len(pools))}
		at := map[int]int{}
		for i, pool := range pools {
			at[pool], l.states[i].members = i, t.Initial[pool]
		}
		for _, c := range t.Changes {
			if i, its := at[c.Pool]; its {
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
			all = append(all, w)
		}
	}
	return all
}

// runIntervals skips a tick while the previous round is running.
func (l *planRun) runIntervals(lasts time.Duration) {
	free := time.Duration(0)
	for now := l.interval; now < lasts; now += l.interval {
		if free > now {
			continue
		}
		free = now
		for i := range l.states {
			l.observeChanges(i, now)
			if p := &l.states[i]; p.seen > p.writtenChanges {
				l.writes = append(l.writes, Write{Pool: i, From: now, Effect: free + l.cost.Effect})
				l.applyMembers(i)
				free += l.cost.Busy
			}
		}
	}
}

func (l *planRun) runUntilDone() {
	now := time.Duration(0)
	for {
		best, next := l.nextPool(now, nil)
		switch {
		case best >= 0:
			now = l.writePool(best, now)
		case next >= 0:
			now = next
		default:
			return
		}
	}
}

// nextPool returns -1 and the time to try again if no pool is due.
func (l *planRun) nextPool(now time.Duration, but []int) (best int, next time.Duration) {
	best, next = -1, -1
	for i := range l.states {
		l.observeChanges(i, now)
		at, waits := l.dueAt(i)
		switch {
		case !waits, slices.Contains(but, i):
		case at > now:
			if next < 0 || at < next {
				next = at
			}
		case best < 0 || l.isBefore(i, best):
			best = i
		}
	}
	return best, next
}

// writePool returns when the load balancer is free.
func (l *planRun) writePool(pool int, now time.Duration) (free time.Duration) {
	first, written := len(l.writes), []int(nil)
	for pool >= 0 && len(written) < max(l.maxPools, 1) {
		written = append(written, pool)
		l.writes = append(l.writes, Write{Pool: pool, From: now})
		l.states[pool].lastWrite, l.states[pool].hasWrite = now, true
		l.applyMembers(pool)
		if now += l.cost.Accept; l.cost.Strategy == Serial {
			break
		}
		pool, _ = l.nextPool(now, written)
	}
	for i := first; i < len(l.writes); i++ {
		l.writes[i].Effect = now + l.cost.Effect
	}
	return now + l.cost.Busy
}

// observeChanges drops changes reverted before a write.
func (l *planRun) observeChanges(i int, now time.Duration) {
	p := &l.states[i]
	for p.seen < len(l.changes[i]) && l.changes[i][p.seen].At <= now {
		p.seen++
	}
	if p.seen > p.writtenChanges && l.changes[i][p.seen-1].Want == p.members {
		p.writtenChanges = p.seen
	}
}

func (l *planRun) applyMembers(i int) {
	p := &l.states[i]
	p.writtenChanges, p.members = p.seen, l.changes[i][p.seen-1].Want
}

func (l *planRun) dueAt(i int) (at time.Duration, waits bool) {
	p, changes := &l.states[i], l.changes[i]
	if p.writtenChanges == len(changes) {
		return 0, false
	}
	at = changes[p.writtenChanges].At + l.debounce
	for n := p.writtenChanges + 1; n < len(changes) && changes[n].At-changes[n-1].At <= l.lookahead; n++ {
		if changes[n].At-changes[p.writtenChanges].At > 3*l.lookahead {
			break
		}
		at = max(at, changes[n].At)
	}
	if p.writtenChanges+1 == p.seen {
		alone := changes[p.writtenChanges].At + l.singleWait
		if p.seen < len(changes) {
			alone = min(alone, changes[p.seen].At)
		}
		at = max(at, alone)
	}
	if p.hasWrite {
		at = max(at, p.lastWrite+l.minInterval)
	}
	return at, true
}

func (l *planRun) isBefore(a, b int) bool {
	pa, pb := &l.states[a], &l.states[b]
	switch l.order {
	case mostChanges:
		if na, nb := pa.seen-pa.writtenChanges, pb.seen-pb.writtenChanges; na != nb {
			return na > nb
		}
	case latestChange:
		if na, nb := l.nextChange(a), l.nextChange(b); na != nb {
			return na > nb
		}
	case oldestWrite:
		if pa.lastWrite != pb.lastWrite {
			return pa.lastWrite < pb.lastWrite
		}
	}
	return l.changes[a][pa.writtenChanges].At < l.changes[b][pb.writtenChanges].At
}

func (l *planRun) nextChange(i int) time.Duration {
	if n := l.states[i].seen; n < len(l.changes[i]) {
		return l.changes[i][n].At
	}
	return 1 << 62
}

// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"slices"
	"time"

	"weir.dev/weir/internal/wholewrite"
)

// Cost is the duration of an isolated write, and of sequences of writes to a load balancer.
type Cost struct {
	Strategy wholewrite.Strategy
	// Accept is the time until Azure accepts a write; then the next pipelined one may start.
	Accept time.Duration
	// Effect is the time from then until Azure applies it, and Busy until the next write or
	// pipelined row of the load balancer may start: the end is only visible by polling at Azure's
	// interval. A row takes effect with its last write.
	Effect, Busy time.Duration
	// Whole is the Effect of a write with several pools.
	Whole time.Duration
}

// plan is a scheduling policy.
type plan struct {
	// company is how long a change waits for others of its pool, and ahead the longest gap before
	// the next change worth waiting for, which needs knowledge of the future.
	company, ahead time.Duration
	// spacing is the minimum time between writes of a pool.
	spacing time.Duration
	first   rule
	// alone is how long a single change waits for a second one.
	alone time.Duration
	// most limits the pools written together, or in a row.
	most int
	// tick makes changes wait for multiples of this time; one goroutine then writes all pools, with
	// the members desired at the tick.
	tick time.Duration
}

// foresees reports whether the plan needs knowledge of the future.
func (p plan) foresees() bool { return p.ahead > 0 || p.first == calmest }

// rule selects the next pool.
type rule int

const (
	oldest   rule = iota // longest waiting change
	heaviest             // most waiting changes
	calmest              // latest next change
	stalest              // oldest last write
	rules
)

// lane is one load balancer during a run of a plan.
type lane struct {
	plan
	cost    Cost
	changes [][]Change // by pool
	pools   []lanePool
	writes  []Write
}

type lanePool struct {
	seen    int // changes so far
	brought int // changes delivered by a write
	held    members
	last    time.Duration // start of the last write
	written bool
}

// play returns a plan's writes for a trace.
func (p plan) play(t Trace, cost Cost) []Write {
	of := map[int][]int{}
	for pool, lb := range t.Balancers {
		if p.tick > 0 {
			lb = 0
		}
		of[lb] = append(of[lb], pool)
	}
	var all []Write
	for _, pools := range of {
		l := lane{plan: p, cost: cost, changes: make([][]Change, len(pools)), pools: make([]lanePool, len(pools))}
		at := map[int]int{}
		for i, pool := range pools {
			at[pool], l.pools[i].held = i, t.First[pool]
		}
		for _, c := range t.Changes {
			if i, its := at[c.Pool]; its {
				l.changes[i] = append(l.changes[i], c)
			}
		}
		if p.tick > 0 {
			l.ticks(t.Lasts)
		} else {
			l.run()
		}
		for _, w := range l.writes {
			w.Pool = pools[w.Pool]
			all = append(all, w)
		}
	}
	return all
}

// ticks writes all waiting pools sequentially at each tick, unless the previous round is still
// running.
func (l *lane) ticks(lasts time.Duration) {
	free := time.Duration(0)
	for now := l.tick; now < lasts; now += l.tick {
		if free > now {
			continue
		}
		free = now
		for i := range l.pools {
			l.see(i, now)
			if p := &l.pools[i]; p.seen > p.brought {
				l.writes = append(l.writes, Write{Pool: i, From: now, Effect: free + l.cost.Effect})
				l.brings(i)
				free += l.cost.Busy
			}
		}
	}
}

// run writes due pools whenever the load balancer is free.
func (l *lane) run() {
	now := time.Duration(0)
	for {
		best, next := l.best(now, nil)
		switch {
		case best >= 0:
			now = l.write(best, now)
		case next >= 0:
			now = next
		default:
			return
		}
	}
}

// best returns the first pool to write now, or -1 and the time to try again.
func (l *lane) best(now time.Duration, but []int) (best int, next time.Duration) {
	best, next = -1, -1
	for i := range l.pools {
		l.see(i, now)
		at, waits := l.due(i)
		switch {
		case !waits, slices.Contains(but, i):
		case at > now:
			if next < 0 || at < next {
				next = at
			}
		case best < 0 || l.before(i, best):
			best = i
		}
	}
	return best, next
}

// write writes a pool and, depending on the strategy, more pools with it. It returns when the load
// balancer is free.
func (l *lane) write(pool int, now time.Duration) (free time.Duration) {
	first, effect, written := len(l.writes), l.cost.Effect, []int(nil)
	for pool >= 0 && len(written) < max(l.most, 1) {
		written = append(written, pool)
		l.writes = append(l.writes, Write{Pool: pool, From: now, Part: l.cost.Strategy == wholewrite.Whole && len(written) > 1})
		l.pools[pool].last, l.pools[pool].written = now, true
		l.brings(pool)
		switch l.cost.Strategy {
		case wholewrite.Whole:
		case wholewrite.Pipelined:
			now += l.cost.Accept
		default:
			now += l.cost.Accept
			l.writes[first].Effect = now + effect
			return now + l.cost.Busy
		}
		pool, _ = l.best(now, written)
	}
	if l.cost.Strategy == wholewrite.Whole {
		if now += l.cost.Accept; len(written) > 1 {
			effect = l.cost.Whole
		}
	}
	for i := first; i < len(l.writes); i++ {
		l.writes[i].Effect = now + effect
	}
	return now + l.cost.Busy
}

// see counts a pool's changes up to now. Changes reverted before a write need none.
func (l *lane) see(i int, now time.Duration) {
	p := &l.pools[i]
	for p.seen < len(l.changes[i]) && l.changes[i][p.seen].At <= now {
		p.seen++
	}
	if p.seen > p.brought && l.changes[i][p.seen-1].Want == p.held {
		p.brought = p.seen
	}
}

// brings applies the desired members to a pool.
func (l *lane) brings(i int) {
	p := &l.pools[i]
	p.brought, p.held = p.seen, l.changes[i][p.seen-1].Want
}

// due returns when a pool may be written, for a waiting or for the next change.
func (l *lane) due(i int) (at time.Duration, waits bool) {
	p, changes := &l.pools[i], l.changes[i]
	if p.brought == len(changes) {
		return 0, false
	}
	at = changes[p.brought].At + l.company
	for n := p.brought + 1; n < len(changes) && changes[n].At-changes[n-1].At <= l.ahead; n++ {
		if changes[n].At-changes[p.brought].At > 3*l.ahead {
			break
		}
		at = max(at, changes[n].At)
	}
	if p.brought+1 == p.seen {
		alone := changes[p.brought].At + l.alone
		if p.seen < len(changes) {
			alone = min(alone, changes[p.seen].At)
		}
		at = max(at, alone)
	}
	if p.written {
		at = max(at, p.last+l.spacing)
	}
	return at, true
}

// before reports whether pool a is written before b.
func (l *lane) before(a, b int) bool {
	pa, pb := &l.pools[a], &l.pools[b]
	switch l.first {
	case heaviest:
		if na, nb := pa.seen-pa.brought, pb.seen-pb.brought; na != nb {
			return na > nb
		}
	case calmest:
		if na, nb := l.nextChange(a), l.nextChange(b); na != nb {
			return na > nb
		}
	case stalest:
		if pa.last != pb.last {
			return pa.last < pb.last
		}
	}
	return l.changes[a][pa.brought].At < l.changes[b][pb.brought].At
}

// nextChange returns the time of a pool's next change.
func (l *lane) nextChange(i int) time.Duration {
	if n := l.pools[i].seen; n < len(l.changes[i]) {
		return l.changes[i][n].At
	}
	return 1 << 62
}

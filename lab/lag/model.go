// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"slices"
	"time"

	"weir.dev/weir/internal/wholewrite"
)

// Cost is what a write takes while nothing else goes on, and how writes of one load balancer follow
// each other.
type Cost struct {
	Strategy wholewrite.Strategy
	// Accept is until Azure has accepted a write, which a pipelined one follows then.
	Accept time.Duration
	// Effect is from then until Azure acts on it, and Busy until the next write, or row of pipelined
	// ones, of the same load balancer may begin: Azure tells when it is done only to who asks, and says
	// when to ask. A row comes into effect as a whole, with its last.
	Effect, Busy time.Duration
	// Whole is the Effect of a write of the load balancer with several of its pools.
	Whole time.Duration
}

// A plan is a way to schedule writes.
type plan struct {
	// company is how long a change waits for others of its pool, and ahead how long a gap
	// before the next one may be that is waited for: nobody who does not know the future can.
	company, ahead time.Duration
	// spacing is how far apart the writes of one pool begin, at least.
	spacing time.Duration
	first   rule
	// alone is how long a change that is the only one of its pool waits for a second one.
	alone time.Duration
	// most bounds the pools that are written together, or in a row.
	most int
	// tick has changes wait for the next of these moments, and one goroutine write all pools,
	// with what was wanted when the tick came.
	tick time.Duration
}

// foresees reports whether only who knows the future can follow the plan.
func (p plan) foresees() bool { return p.ahead > 0 || p.first == calmest }

// A rule picks one of several pools.
type rule int

const (
	oldest   rule = iota // whose change waits for the longest
	heaviest             // with the most changes that wait
	calmest              // whose next change is furthest away
	stalest              // whose last write is longest ago
	rules
)

// lane is one load balancer in a play of a plan.
type lane struct {
	plan
	cost    Cost
	changes [][]Change // by pool
	pools   []lanePool
	writes  []Write
}

type lanePool struct {
	seen    int // changes up to now
	brought int // by a write
	held    members
	last    time.Duration // when that began
	written bool
}

// play returns the writes that a plan makes of a trace.
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

// ticks writes all that waits, one after the other, at each tick that finds the last one done.
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

// run writes what is due as soon as the load balancer is free.
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

// best returns the pool that goes first of those that may be written now, but for some; if there is
// none, when to look again.
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

// write writes a pool, and those that follow it by the strategy. It returns when the load balancer is
// free.
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

// see counts the changes of a pool up to now. What was taken back before anybody wrote it needs no
// write.
func (l *lane) see(i int, now time.Duration) {
	p := &l.pools[i]
	for p.seen < len(l.changes[i]) && l.changes[i][p.seen].At <= now {
		p.seen++
	}
	if p.seen > p.brought && l.changes[i][p.seen-1].Want == p.held {
		p.brought = p.seen
	}
}

// brings has a pool hold what is wanted.
func (l *lane) brings(i int) {
	p := &l.pools[i]
	p.brought, p.held = p.seen, l.changes[i][p.seen-1].Want
}

// due returns when a pool may be written, for a change that waits or for the next one.
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

// before compares two pools that may be written now.
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

// nextChange is when a pool changes next.
func (l *lane) nextChange(i int) time.Duration {
	if n := l.pools[i].seen; n < len(l.changes[i]) {
		return l.changes[i][n].At
	}
	return 1 << 62
}

// SPDX-License-Identifier: Apache-2.0

package lag

import "time"

// Cost is what a write takes while nothing else goes on.
type Cost struct {
	// Effect is from the beginning of a write until Azure acts on it, and Busy until the next
	// write of the same load balancer may begin: Azure tells when it is done only to who asks,
	// and says when to ask.
	Effect, Busy time.Duration
}

// A plan is a way to schedule writes of which one load balancer has one at a time.
type plan struct {
	// company is how long a change waits for others of its pool, and ahead how long a gap
	// before the next one may be that is waited for: nobody who does not know the future can.
	company, ahead time.Duration
	// spacing is how far apart the writes of one pool begin, at least.
	spacing time.Duration
	first   rule
	// tick has changes wait for the next of these moments, and one goroutine write all pools,
	// with what was wanted when the tick came.
	tick time.Duration
}

// A rule picks one of several pools.
type rule int

const (
	oldest   rule = iota // whose change waits for the longest
	heaviest             // with the most changes that wait
	calmest              // whose next change is furthest away
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
	seen    int           // changes up to now
	brought int           // by a write
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
			at[pool] = i
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
				p.brought = p.seen
				free += l.cost.Busy
			}
		}
	}
}

// run writes what is due as soon as the load balancer is free.
func (l *lane) run() {
	now := time.Duration(0)
	for {
		best, next := -1, time.Duration(-1)
		for i := range l.pools {
			l.see(i, now)
			at, waits := l.due(i)
			switch {
			case !waits:
			case at > now:
				if next < 0 || at < next {
					next = at
				}
			case best < 0 || l.before(i, best, now):
				best = i
			}
		}
		switch {
		case best >= 0:
			p := &l.pools[best]
			l.writes = append(l.writes, Write{Pool: best, From: now, Effect: now + l.cost.Effect})
			p.brought, p.last, p.written = p.seen, now, true
			now += l.cost.Busy
		case next >= 0:
			now = next
		default:
			return
		}
	}
}

// see counts the changes of a pool up to now.
func (l *lane) see(i int, now time.Duration) {
	p := &l.pools[i]
	for p.seen < len(l.changes[i]) && l.changes[i][p.seen].At <= now {
		p.seen++
	}
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
	if p.written {
		at = max(at, p.last+l.spacing)
	}
	return at, true
}

// before compares two pools that may be written now.
func (l *lane) before(a, b int, _ time.Duration) bool {
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

// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/turns"
)

const (
	// wholeFrom is how many pools have to be due for a write of the whole load balancer.
	wholeFrom = 3
	// wholeRest is how long there is none after one that was refused, unless one of its
	// pools turns out to be what Azure does not take.
	wholeRest = 10 * time.Minute
	// mostTogether bounds the pools of one write: each is recorded before, and nobody waits for
	// the records of a thousand.
	mostTogether = 100
	// sideBySide bounds the records that are written at once.
	sideBySide = 8
)

// together returns the pools to attempt by one write of the load balancer; none if they are
// too few, or if such writes are not to be made.
func (l *lane) together(now time.Time) []lb.PoolKey {
	if l.cfg.Whole == nil || l.ignoresPools || l.wholeAfter.After(now) {
		return nil
	}
	if due := l.queue.together(now, l.cfg.Interval); len(due) >= wholeFrom {
		return due
	}
	return nil
}

// together returns the pools with changes that are due, or that only wait for company: where
// they are too many for one write, some of each namespace.
func (q *queue) together(now time.Time, interval time.Duration) []lb.PoolKey {
	q.mu.Lock()
	defer q.mu.Unlock()
	var due []group
	for key, w := range q.busy {
		g := w.group(key)
		if !g.looks() && !w.history.apart && (!g.readyAt(now, interval).After(now) || g.gathers(now, interval)) {
			g.ready, g.turn = g.readyAt(now, interval), q.line.Turn(g.namespace)
			due = append(due, g)
		}
	}
	slices.SortFunc(due, func(a, b group) int {
		if a.before(b, now, interval) {
			return -1
		}
		return 1
	})
	dealt, _ := turns.Deal(due, func(g group) string { return g.namespace }, mostTogether)
	keys := make([]lb.PoolKey, len(dealt))
	for i, g := range dealt {
		keys[i] = g.pool
	}
	slices.Sort(keys)
	return keys
}

// gathers reports whether the group waits for company, and for nothing else.
func (g group) gathers(now time.Time, interval time.Duration) bool {
	return g.fresh && !g.retry && !later(g.earliest(), g.history.holdUntil).After(now) &&
		!g.memberAt(now, interval).After(now.Add(debounce))
}

// whole attempts pools together: one read of their load balancer, and one write if any of
// them is not level. Each is settled as by an attempt of its own. What the write is refused
// for, other than that somebody else is at work or that Azure is busy, is nobody's attempt:
// one of the pools may be at fault, so each goes by itself from then on until it is level.
// The caller holds the lane and the lease.
func (l *lane) whole(ctx context.Context, due []lb.PoolKey, valid func() bool) {
	parcels := l.takeAll(due)
	l.tell(obstacle{cause: CauseBehind}, time.Now()) // the others
	if len(parcels) == 0 {
		return
	}
	within, cancel := context.WithTimeout(ctx, attemptDeadline)
	defer cancel()
	b, err := l.cfg.Whole.GetLoadBalancer(within, l.id)
	if f := fault.From(err); f != nil && f.Code == fault.CodeResting { // the load balancer wants patience, its pools may not
		l.wholeAfter = f.RetryAt
		for _, p := range parcels {
			(&carried{lane: l}).back(p, false)
		}
		return
	}
	if err != nil {
		l.unmade(ctx, within, parcels, err)
		return
	}
	writes := l.readied(ctx, within, parcels, b)
	if len(writes) == 0 {
		return
	}
	if !valid() {
		l.unmade(ctx, within, writes, errLeaseEnds)
		return
	}
	index := l.index(b)
	for i := range writes {
		writes[i].r.lost = writes[i].todo.next.Etag
		b.Pools[index[writes[i].taken.pool]] = writes[i].todo.next
	}
	shown, err := l.cfg.Whole.PutLoadBalancer(within, b)
	if err != nil {
		if f := fault.From(err); f.Ended || f.Undecided || within.Err() != nil {
			l.queue.lookAtOthers(writes, time.Now())
		}
		l.unmade(ctx, within, writes, err)
		return
	}
	l.made(ctx, within, writes, shown)
}

// takeAll moves the operations of pools out of the queue.
func (l *lane) takeAll(due []lb.PoolKey) []parcel {
	var all []parcel
	for _, key := range due {
		start := time.Now()
		t := l.queue.take(key, start, l.cfg.Interval)
		ops := l.relevant(t.ops)
		if len(ops) == 0 {
			l.queue.done(t, nil, t.history, nil, nil)
			continue
		}
		all = append(all, parcel{taken: t, ops: ops, start: start, r: t.history.begin()})
	}
	return all
}

// index says where each pool is in its load balancer.
func (l *lane) index(b lb.LoadBalancer) map[lb.PoolKey]int {
	at := make(map[lb.PoolKey]int, len(b.Pools))
	for i, p := range b.Pools {
		at[l.key(p)] = i
	}
	return at
}

// readied computes what the pools have to become, records it side by side, and returns those
// that have to be written. The others are settled; one that Azure does not show goes by
// itself, which tells what is missing, and so does one of network interfaces.
func (l *lane) readied(ctx, within context.Context, parcels []parcel, b lb.LoadBalancer) []parcel {
	errs := make([]error, len(parcels))
	slots := make(chan struct{}, sideBySide)
	var recording sync.WaitGroup
	index := l.index(b)
	for i := range parcels {
		at, there := index[parcels[i].taken.pool]
		if !there || b.Pools[at].NIC && l.cfg.AdminState {
			continue
		}
		slots <- struct{}{}
		recording.Go(func() {
			p := &parcels[i]
			p.todo, p.write, errs[i] = l.cfg.prepare(within, p.ops[0].Ref, b.Pools[at], &p.r)
			p.read = true
			<-slots
		})
	}
	recording.Wait()
	var writes []parcel
	for i, p := range parcels {
		switch {
		case !p.read:
			l.alone(p, false)
		case errs[i] == nil && p.write:
			writes = append(writes, p)
		default:
			l.ends(ctx, within, p, errs[i])
		}
	}
	return writes
}

// ends settles a pool as an attempt of its own would be that ended with err.
func (l *lane) ends(ctx, within context.Context, p parcel, err error) {
	r := p.r.end(ctx, within, err, p.taken.history.lost)
	if r.outcome != Shutdown {
		l.conclude(ctx, p.taken, p.ops, r, p.start)
	}
}

// unmade is for a read or a write that failed.
func (l *lane) unmade(ctx, within context.Context, parcels []parcel, err error) {
	r := result{}.end(ctx, within, err, "")
	if r.outcome == Shutdown || r.outcome == Postponed || r.outcome == Retriable && r.fault.Code != fault.CodeOutcomeUnknown {
		for _, p := range parcels {
			l.ends(ctx, within, p, err)
		}
		return
	}
	l.wholeAfter = time.Now().Add(wholeRest)
	l.cfg.Log.WarnContext(ctx, "load balancer not written whole, each pool is written by itself",
		"loadBalancer", l.id.Name, "pools", len(parcels), "code", r.fault.Code, "err", r.fault.Error())
	for _, p := range parcels {
		l.alone(p, r.fault.Undecided || within.Err() != nil)
	}
}

// lookAtOthers has all pools looked at that a write of their load balancer was not made for.
// Azure took it, and if it failed in the end they are out of force as well, level or not.
func (q *queue) lookAtOthers(writes []parcel, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, w := range q.pools {
		if !w.driftDue && !slices.ContainsFunc(writes, func(p parcel) bool { return p.taken.pool == key }) {
			w.driftDue, w.driftSince = true, now
			q.hold(key, w, w.ops)
		}
	}
}

// made settles what Azure shows after a write. The first one is read back: that such a write
// changes the addresses of a pool that exists is recorded nowhere.
func (l *lane) made(ctx, within context.Context, writes []parcel, shown lb.LoadBalancer) {
	readBack := false
	if !l.takesPools {
		if again, err := l.cfg.Whole.GetLoadBalancer(within, l.id); err == nil {
			shown, readBack = again, true
		}
	}
	arrived, index := 0, l.index(shown)
	for _, p := range writes {
		at, there := index[p.taken.pool]
		if !there || !p.arrived(shown.Pools[at]) {
			l.alone(p, true)
			continue
		}
		arrived++
		p.r.observed = len(shown.Pools[at].Addresses)
		l.ends(ctx, within, p, nil)
	}
	switch {
	case !readBack:
	case arrived == len(writes):
		l.takesPools = true
	case arrived == 0:
		l.ignoresPools = true
		l.cfg.Log.WarnContext(ctx, "Azure took a write of the load balancer and none of its pools: from now on each is written by itself",
			"loadBalancer", l.id.Name, "pools", len(writes))
	}
}

// alone gives a pool back that is attempted by itself from now on, until it is level.
func (l *lane) alone(p parcel, mayLand bool) {
	l.queue.part(p.taken)
	(&carried{lane: l}).back(p, mayLand)
}

// part has a pool have no part in writes of the whole load balancer.
func (q *queue) part(t taken) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.of.history.apart = true
}

// errLeaseEnds is why a write is not made.
var errLeaseEnds = fmt.Errorf("%w: the resource lease is lost, or ends before a write would", errNotReady)

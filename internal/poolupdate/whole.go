// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/turns"
	"weir.dev/weir/internal/wholewrite"
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

// together returns the pools to attempt by one write of the load balancer, and for which
// changes that may be; none if they are too few, or if such writes are not to be made.
func (l *lane) together(now time.Time) ([]lb.PoolKey, leaves) {
	if l.cfg.Whole == nil || l.wholeAfter.After(now) {
		return nil, leaves{}
	}
	may := l.may(now)
	if may.none() {
		return nil, may
	}
	due := l.queue.together(now, l.cfg.Interval, may)
	if len(due) < wholeFrom {
		return nil, may
	}
	return due, may
}

// may asks for which changes pools may be written together.
func (l *lane) may(now time.Time) leaves {
	return l.verdicts.may(l.id.SubscriptionID, now, func(c wholewrite.Change) string { return l.queue.unrest(now, c) })
}

// together returns the pools with changes that are due, or that only wait for company: where
// they are too many for one write, some of each namespace.
func (q *queue) together(now time.Time, interval time.Duration, may leaves) []lb.PoolKey {
	q.mu.Lock()
	defer q.mu.Unlock()
	var due []group
	for key, w := range q.busy {
		g := w.group(key)
		if !g.looks() && !w.history.apart && may.lets(g) && (!g.readyAt(now, interval).After(now) || g.gathers(now, interval)) {
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
// for, other than that somebody else is at work or that Azure gives no answer, is nobody's
// attempt: one of the pools may be at fault, so each goes by itself from then on until it is
// level. The caller holds the lane and the lease.
func (l *lane) whole(ctx context.Context, due []lb.PoolKey, may leaves, valid func() bool) {
	parcels := l.takeAll(due)
	l.tell(obstacle{cause: CauseBehind}, time.Now()) // the others
	within, cancel := context.WithTimeout(ctx, attemptDeadline)
	defer cancel()
	j := joint{lane: l, ctx: ctx, within: within, may: may, valid: valid}
	// Somebody who writes in between is everyday: the first time it costs one more read and
	// write, and nobody hears of it.
	if parcels = j.attempt(parcels); len(parcels) > 0 {
		j.last = true
		j.attempt(parcels)
	}
	if len(j.trial) > 0 {
		l.verdicts.end(l.id.SubscriptionID)
	}
}

// joint is an attempt of several pools by one write of their load balancer.
type joint struct {
	lane        *lane
	ctx, within context.Context //nolint:containedctx // it lives as long as the attempt
	may         leaves
	valid       func() bool
	// trial are the changes that are tried; last is true where a write that another was faster
	// than is not made again.
	trial []wholewrite.Change
	last  bool
}

// attempt returns the pools of a write that somebody else was faster than; all others are
// settled, or given back.
func (j *joint) attempt(parcels []parcel) []parcel {
	l := j.lane
	if len(parcels) == 0 {
		return nil
	}
	b, err := j.read()
	if f := fault.From(err); f != nil && f.Code == fault.CodeResting { // the load balancer wants patience, its pools may not
		l.wholeAfter = f.RetryAt
		for _, p := range parcels {
			(&carried{lane: l}).back(p, false)
		}
		return nil
	}
	if err != nil {
		l.unmade(j.ctx, j.within, parcels, err)
		return nil
	}
	writes := j.permitted(l.readied(j.ctx, j.within, parcels, b))
	if len(writes) == 0 || !j.begin(writes) {
		return nil
	}
	if !j.valid() {
		l.unmade(j.ctx, j.within, writes, errLeaseEnds)
		return nil
	}
	index := l.index(b)
	for i := range writes {
		writes[i].r.lost = writes[i].todo.next.Etag
		b.Pools[index[writes[i].taken.pool]] = writes[i].todo.next
	}
	shown, err := l.cfg.Whole.PutLoadBalancer(j.within, b)
	if err != nil {
		return j.failed(writes, err)
	}
	j.made(writes, shown)
	return nil
}

// read reads the load balancer. After a write that somebody else was faster than it waits, as
// long as an interval, until that one has ended: the end changes the etag once more.
func (j *joint) read() (lb.LoadBalancer, error) {
	l := j.lane
	end, rest := time.Now().Add(l.cfg.Interval), backoff.Doubling{First: time.Second, Max: 10 * time.Second}
	for n := 1; ; n++ {
		b, err := l.cfg.Whole.GetLoadBalancer(j.within, l.id)
		if wait := rest.After(n); err != nil || !j.last || !moves(b) || time.Now().Add(wait).After(end) || !pause(j.within, wait) {
			return b, err
		}
	}
}

// moves reports whether a write to a load balancer, or to one of its pools, is under way.
func moves(b lb.LoadBalancer) bool {
	return b.Provisioning == lb.Updating || slices.ContainsFunc(b.Pools, func(p lb.Pool) bool { return p.Provisioning == lb.Updating })
}

// permitted returns the pools whose changes may be written together. The others go by
// themselves; all do where so few are left that there is no need to try anything.
func (j *joint) permitted(writes []parcel) []parcel {
	var all, others []parcel
	for _, p := range writes {
		if j.may.allows(p.todo) {
			all = append(all, p)
		} else {
			others = append(others, p)
		}
	}
	if len(all) < wholeFrom && len(j.may.tries(all)) > 0 {
		all, others = nil, writes
	}
	for _, p := range others {
		j.lane.alone(p, false)
	}
	return all
}

// begin puts what is on trial on record. Where that does not work, or it is not calm any more, it
// returns false, and the pools go by themselves.
func (j *joint) begin(writes []parcel) bool {
	l := j.lane
	tries := j.may.tries(writes)
	if len(tries) == 0 || len(j.trial) > 0 {
		return true
	}
	err := error(nil)
	for _, c := range tries {
		if why := l.queue.unrest(time.Now(), c); why != "" {
			err = fmt.Errorf("not now: %s", why)
		}
	}
	if err == nil {
		err = l.verdicts.begin(j.within, l.id.SubscriptionID, tries)
	}
	if err != nil {
		l.cfg.Log.DebugContext(j.ctx, "load balancer not written whole to see whether Azure takes that", "loadBalancer", l.id.Name, "err", err)
		for _, p := range writes {
			l.alone(p, false)
		}
		return false
	}
	j.trial = tries
	return true
}

// failed is for a write that failed. It returns the pools if somebody else was faster, for the
// first time. A trial that fails is nobody's attempt, whatever it has met: each pool goes by
// itself, but for the time that Azure has asked for.
func (j *joint) failed(writes []parcel, err error) []parcel {
	l, f := j.lane, fault.From(err)
	if f.Overtaken() && !j.last {
		for i, p := range writes {
			writes[i] = p.again(f.Undecided)
		}
		return writes
	}
	if f.Ended || f.Undecided || j.within.Err() != nil {
		l.queue.lookAtOthers(writes, time.Now())
	}
	if len(j.trial) == 0 || j.ctx.Err() != nil {
		l.unmade(j.ctx, j.within, writes, err)
		return nil
	}
	l.cfg.Log.InfoContext(j.ctx, "load balancer not written whole to see whether Azure takes that: nothing was learned, each pool is written by itself",
		"loadBalancer", l.id.Name, "pools", len(writes), "code", f.Code, "err", f.Error())
	for _, p := range writes {
		l.queue.wait(p.taken, f.RetryAt)
		l.alone(p, f.Undecided || j.within.Err() != nil)
	}
	return nil
}

// again returns the parcel as it was taken, for another read. landed is true if the write that
// was refused may have been sent before, and have landed.
func (p parcel) again(landed bool) parcel {
	r := p.taken.history.begin()
	r.ledger, r.lost, r.overtaken = p.r.ledger, p.r.lost, true
	return parcel{taken: p.taken, ops: p.ops, start: p.start, landed: landed, r: r}
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
			p.before, p.read = b.Pools[at], true
			p.todo, p.write, errs[i] = l.cfg.prepare(within, p.ops[0].Ref, p.before, &p.r)
			if p.landed && p.r.outcome == Unchanged { // by the write that was taken for refused
				p.r.outcome = Written
			}
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

// unmade is for a read or a write that failed. Where Azure did not answer, or not about what was
// written, that is the failure of each pool: it would have met the same, and the SDK has tried
// again already.
func (l *lane) unmade(ctx, within context.Context, parcels []parcel, err error) {
	r := result{}.end(ctx, within, err, "")
	if r.outcome != Terminal && r.outcome != Stale || r.fault.Exhausted() {
		for _, p := range parcels {
			l.ends(ctx, within, p, err)
		}
		return
	}
	l.wholeAfter = time.Now().Add(wholeRest)
	l.cfg.Log.WarnContext(ctx, "load balancer not written whole, each pool is written by itself",
		"loadBalancer", l.id.Name, "pools", len(parcels), "code", r.fault.Code, "err", r.fault.Error())
	for _, p := range parcels {
		l.alone(p, r.fault.Undecided)
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

// made settles what Azure shows after a write. What this process has not seen Azure do is read
// back, for the answer may repeat what was sent.
func (j *joint) made(writes []parcel, b lb.LoadBalancer) {
	l := j.lane
	if !l.verdicts.proven(l.id.SubscriptionID, changesIn(writes)) {
		again, err := l.cfg.Whole.GetLoadBalancer(j.within, l.id)
		if err != nil { // nothing is believed that was not seen
			again = lb.LoadBalancer{}
		}
		b = again
	}
	shown := make(map[lb.PoolKey]lb.Pool, len(b.Pools))
	for _, p := range b.Pools {
		shown[l.key(p)] = p
	}
	l.verdicts.learn(j.ctx, l.id.SubscriptionID, showed(writes, shown))
	for _, p := range writes {
		s, there := shown[p.taken.pool]
		if !there || !p.arrived(s) {
			l.alone(p, true)
			continue
		}
		p.r.observed = len(s.Addresses)
		l.ends(j.ctx, j.within, p, nil)
	}
}

// alone gives a pool back that is attempted by itself from now on, until it is level.
func (l *lane) alone(p parcel, mayLand bool) {
	l.queue.part(p.taken, mayLand && p.r.outcome == Written)
	(&carried{lane: l}).back(p, mayLand)
}

// part has a pool have no part in writes of the whole load balancer. owed is true if the last
// one may have landed.
func (q *queue) part(t taken, owed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.of.history.apart, t.of.history.owed = true, t.of.history.owed || owed
}

// wait has a pool wait for a time that Azure has named.
func (q *queue) wait(t taken, until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.of.history.notBefore = later(t.of.history.notBefore, until)
}

// errLeaseEnds is why a write is not made.
var errLeaseEnds = fmt.Errorf("%w: the resource lease is lost, or ends before a write would", errNotReady)

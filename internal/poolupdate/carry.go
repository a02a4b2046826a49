// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"slices"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/wholewrite"
)

// carried is the part of a load balancer write that concerns its pools. Call settle or fail while
// holding the worker's lock; later calls do nothing.
type carried struct {
	// pools are the pools given to Carry, in order, as they have to be written.
	pools []lb.Pool

	lane    *lane
	parcels []parcel
	// made are the pools that the write creates empty.
	made []lb.PoolKey
}

// parcel is one pool whose operations were taken from the queue.
type parcel struct {
	taken taken
	ops   []poolschedule.Operation
	// r holds the write as its todo, guarded by the etag that was read.
	r poolwrite.Result
	// write is true if the pool is not known to be in sync.
	write bool
	// read is true once Azure has returned the pool; before is what it returned.
	read  bool
	start time.Time
	before lb.Pool
	// landed is true if an earlier write in the same attempt may have taken effect before that
	// read.
	landed bool
}

// Carry computes the newest addresses of a load balancer's pools for a caller that holds its
// worker's lock (see Lock) and is about to write the whole load balancer, guarded by its etag.
// pools are the desired pools as read under the same lock, identified by name; a pool to create has
// no etag.
//
// Unless such a write is known to update pools, existing pools are returned unchanged and new ones
// empty; the worker fills new pools one by one once Azure shows them.
//
// Otherwise a pool with a pending change or check gets what an attempt would write, recorded before
// Carry returns. The others are returned unchanged: nothing is pending, Retry-After has not passed,
// they hold network interfaces, a write is in progress, or the status store does not respond. The
// worker handles them later.
//
// next has the order of pools. Call written while the lock is held, with what Azure shows after the
// write (its response or a later read), or with nil if the write failed or was not sent; mayLand is
// then true if it may still take effect. Only the first call counts, so it can be deferred.
func (ls *Lanes) Carry(ctx context.Context, id lb.LoadBalancerID, pools []lb.Pool) (next []lb.Pool, written func(shown []lb.Pool, mayLand bool)) {
	c := ls.carry(ctx, id, pools)
	return c.pools, func(shown []lb.Pool, mayLand bool) {
		if shown == nil {
			c.fail(mayLand)
			return
		}
		c.settle(ctx, shown)
	}
}

func (ls *Lanes) carry(ctx context.Context, id lb.LoadBalancerID, pools []lb.Pool) *carried {
	ls.mu.Lock()
	l := ls.lane(id)
	ls.mu.Unlock()
	c := &carried{pools: slices.Clone(pools), lane: l}
	for i, p := range pools {
		isNew := p.Etag == ""
		switch {
		case p.Provisioning == lb.Updating: // an update may still be rolled back
		case !l.brings(p), isNew && l.byMachine(p):
			if isNew {
				c.pools[i] = empty(p)
				c.made = append(c.made, l.key(p))
			}
		default:
			if next, ok := l.pack(ctx, p); ok {
				c.pools[i] = next.r.Todo.Next
				c.parcels = append(c.parcels, next)
			} else if isNew {
				c.made = append(c.made, l.key(p))
			}
		}
	}
	c.unneeded(pools)
	return c
}

// unneeded drops pools that stopped being needed while the others were recorded, and returns them
// unchanged.
func (c *carried) unneeded(pools []lb.Pool) {
	c.parcels = slices.DeleteFunc(c.parcels, func(p parcel) bool {
		if len(c.lane.cfg.relevant(slices.Clone(p.ops))) > 0 {
			return false
		}
		i := slices.IndexFunc(pools, func(is lb.Pool) bool { return c.lane.key(is) == p.taken.pool })
		c.pools[i] = pools[i]
		c.lane.queue.done(p.taken, nil, p.taken.history, nil, nil)
		return true
	})
}

// pack takes a pool's operations and computes the write for them.
func (l *lane) pack(ctx context.Context, observed lb.Pool) (parcel, bool) {
	start := time.Now()
	t, ok := l.queue.takeAlong(l.key(observed), start)
	if !ok {
		return parcel{}, false
	}
	ops := l.cfg.relevant(t.ops)
	if len(ops) == 0 {
		l.queue.done(t, nil, t.history, nil, nil)
		return parcel{}, false
	}
	r := l.cfg.attempts().Begin(t.history)
	write, err := l.cfg.attempts().Prepare(ctx, ops[0].Ref, observed, false, &r)
	if err != nil || observed.Etag != "" && !l.bringsStates(r.Todo) {
		l.queue.back(t, ops)
		return parcel{}, false
	}
	return parcel{taken: t, ops: ops, r: r, write: write, start: start}, true
}

func (l *lane) key(p lb.Pool) lb.PoolKey { return lb.PoolID{LoadBalancer: l.id, Name: p.ID.Name}.Key() }

// settle handles what Azure shows after the write. Updated pools end as if the worker had attempted
// them; the others are requeued for the worker.
func (c *carried) settle(ctx context.Context, shown []lb.Pool) {
	of := make(map[lb.PoolKey]lb.Pool, len(shown))
	for _, s := range shown {
		of[c.lane.key(s)] = s
	}
	for _, p := range c.unpack() {
		s, ok := of[p.taken.pool]
		if !ok || !p.arrived(s) {
			c.back(p, true)
			continue
		}
		if p.write && p.r.Todo.Next.Etag != "" && !c.lane.seesTaken(p) {
			c.lane.alone(p, true) // not read back, and the response may echo the request
			continue
		}
		p.shows(s)
		c.lane.conclude(ctx, p.taken, p.ops, p.r.End(nil, false, false), p.start)
	}
	now := time.Now()
	for _, s := range shown {
		if len(s.Addresses) == 0 {
			c.lane.queue.fillFound(c.lane.key(s), now)
		}
	}
	c.lane.queue.fill(c.made, now)
	c.made = nil
	c.lane.queue.signal() // operations may have been added since
}

// fail requeues everything after a write that failed or was not sent. No notification is sent and
// no retry consumed, because no change caused this attempt. mayLand is true if the write may still
// take effect.
func (c *carried) fail(mayLand bool) {
	for _, p := range c.unpack() {
		c.back(p, mayLand)
	}
	if mayLand {
		c.lane.queue.fillUnknown(c.made, time.Now())
	}
	c.made = nil
}

// seesTaken reports whether this process has seen Azure apply all changes of a pool write, or the
// configuration asserts it.
func (l *lane) seesTaken(p parcel) bool {
	return !slices.ContainsFunc(changesIn([]parcel{p}), func(ch wholewrite.Change) bool {
		return wholewrite.Answer(l.cfg.Behaviour, ch) != behaviour.Taken && !l.verdicts.Proven(l.id.SubscriptionID, []wholewrite.Change{ch})
	})
}

func (c *carried) unpack() []parcel {
	all := c.parcels
	c.parcels = nil
	return all
}

// arrived reports whether what Azure shows proves that the pool is in sync. A written pool must
// also have a new etag, which is what invalidates an earlier lost write guarded by the old one.
// That every load balancer write changes the etags of its pools is assumed, and checked here.
func (p parcel) arrived(shown lb.Pool) bool {
	return p.r.Todo.ShownBy(shown) && shown.Provisioning != lb.Updating && shown.Provisioning != lb.Failed &&
		(!p.write || shown.Etag != p.r.Todo.Next.Etag)
}

// shows records what Azure shows of a pool that has arrived.
func (p *parcel) shows(shown lb.Pool) {
	if p.r.Observed = len(shown.Addresses); p.write {
		p.r.Fenced(shown.Etag)
	}
}

// back requeues what was not settled and is still needed.
//
// If the write may land, the pool may later get addresses that are no longer wanted, and reading
// the old addresses proves nothing. So its etag is kept like that of a lost write of the pool.
// While the pool has that etag the write has not landed, and the pool is written even if it seems
// in sync: that changes the load balancer's etag, which invalidates the lost write. A new etag
// means that the write landed or was invalidated. Pools without a change need none of this, nor do
// new pools: the status store lists what they may get.
func (c *carried) back(p parcel, mayLand bool) {
	ops := c.lane.cfg.relevant(p.ops)
	if mayLand && p.r.Outcome == poolwrite.Written {
		c.lane.queue.suspect(p.taken, p.r.Todo.Next.Etag)
	}
	c.lane.queue.back(p.taken, ops)
}

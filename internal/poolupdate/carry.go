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

// carried is a load balancer write's part for its pools. It is finished once, under the worker's
// lock; later calls do nothing.
type carried struct {
	// pools are to be written in this order.
	pools []lb.Pool

	lane    *lane
	parcels []parcel
	// made are created empty.
	made []lb.PoolKey
}

// parcel is one pool taken from the queue.
type parcel struct {
	taken taken
	ops   []poolschedule.Operation
	r     poolwrite.Result
	// write is true if the pool is not known to be in sync.
	write bool
	// read is true once Azure has returned the pool.
	read   bool
	start  time.Time
	before lb.Pool
	// landed is true if an earlier write of the attempt may have taken effect before the read.
	landed bool
}

// Carry computes the pools for a write of the whole load balancer. The caller holds its lock (see
// Lock) and guards the write by the load balancer's etag. pools are the desired pools as read under
// the lock, identified by name; a pool to create has no etag.
//
// Unless such writes are known to update pools, existing pools are returned unchanged and new ones
// empty; the worker fills them later. Otherwise each pool with pending work gets what an attempt
// would write, which is recorded first. Pools that are not eligible are returned unchanged and left
// to the worker.
//
// Call written under the same lock, with the pools as Azure shows them after the write, or with nil
// if the write failed or was not sent; mayLand is then true if it may still take effect. Only the
// first call counts, so it can be deferred.
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

// unneeded drops pools that are no longer needed: recording the others took time.
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

// settle ends the updates that Azure shows like attempts, and requeues the others.
func (c *carried) settle(ctx context.Context, shown []lb.Pool) {
	byKey := make(map[lb.PoolKey]lb.Pool, len(shown))
	for _, s := range shown {
		byKey[c.lane.key(s)] = s
	}
	for _, p := range c.unpack() {
		s, ok := byKey[p.taken.pool]
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

// fail requeues everything. No change caused the write, so it consumes no retry and notifies no
// Service.
func (c *carried) fail(mayLand bool) {
	for _, p := range c.unpack() {
		c.back(p, mayLand)
	}
	if mayLand {
		c.lane.queue.fillUnknown(c.made, time.Now())
	}
	c.made = nil
}

// seesTaken reports whether this process has seen Azure apply such changes, or the configuration
// asserts it.
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

// arrived reports whether shown proves that the pool is in sync. A write must also change the etag,
// which invalidates earlier lost writes.
func (p parcel) arrived(shown lb.Pool) bool {
	return p.r.Todo.ShownBy(shown) && shown.Provisioning != lb.Updating && shown.Provisioning != lb.Failed &&
		(!p.write || shown.Etag != p.r.Todo.Next.Etag)
}

func (p *parcel) shows(shown lb.Pool) {
	if p.r.Observed = len(shown.Addresses); p.write {
		p.r.Fenced(shown.Etag)
	}
}

// back requeues what is still needed.
//
// If the write may land, the pool may get addresses that are no longer wanted. Its etag is kept as
// that of a lost write: while the pool has it, the pool is written even if it seems in sync, which
// changes the load balancer's etag and so invalidates the lost write. Unchanged and new pools need
// no such write.
func (c *carried) back(p parcel, mayLand bool) {
	ops := c.lane.cfg.relevant(p.ops)
	if mayLand && p.r.Outcome == poolwrite.Written {
		c.lane.queue.suspect(p.taken, p.r.Todo.Next.Etag)
	}
	c.lane.queue.back(p.taken, ops)
}

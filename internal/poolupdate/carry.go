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

// carried is what a write of a whole load balancer carries along for its pools. settle or
// fail has to be called while the lane is still held; after the first of them either does
// nothing.
type carried struct {
	// pools are those that Carry was given, in their order, each as it has to be written.
	pools []lb.Pool

	lane    *lane
	parcels []parcel
	// made are the pools that the write makes and does not fill.
	made []lb.PoolKey
}

// parcel is one pool whose operations were taken out of the queue.
type parcel struct {
	taken taken
	ops   []poolschedule.Operation
	// r has what is written as its todo, guarded by the etag, which is that of the read.
	r poolwrite.Result
	// write is true if the pool was not level, or is not known to be.
	write bool
	// read is true once Azure has shown the pool.
	read  bool
	start time.Time
	// before is how it was then.
	before lb.Pool
	// landed is true if a write of it may have landed before that read, in the same attempt.
	landed bool
}

// Carry gives the pools of a load balancer the newest addresses, for somebody else who
// holds its lane (see Lock) and is about to write it whole, guarded by its etag. pools are
// those that the load balancer is to have, as they were read under the same lock; one that is
// to be made has no etag. They are told apart by name.
//
// Where such a write is not known to bring pools what it carries for them, it undoes nothing
// and does nothing: pools that are there are handed back as they are, and new ones without
// addresses. As soon as Azure shows these the lane fills them, each by a write of its own.
//
// Where it is known to, a pool with a change or a look that waits gets what an attempt would
// write, recorded before it is handed back. All others are handed back as they are: those for
// which nothing waits; those that Azure asked to leave alone; those that hold network
// interfaces, or to which a write is under way; and those whose ledger does not answer.
// The lane itself comes to them.
//
// The pools come back in their order, each as it has to be written. written has to be told
// what came of the write while the lane is still held: what Azure shows after it, which is
// what it answered or what was read later; or nil, if the write failed or was not made, and
// then mayLand is true if it may have landed, or may land later, all the same. Only the
// first call counts, so that one can be deferred.
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
		case p.Provisioning == lb.Updating: // what it shows may be taken back
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

// unneeded hands back as they are the pools that serve nobody any more: the records of the others
// have taken their time.
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

// pack takes a pool's operations, and computes what has to be written for them.
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

// settle tells what Azure shows after the write: what it answered, or what was read later.
// What was carried and is shown is settled as by an attempt of the lane. What is shown
// otherwise goes back as it was, and the lane looks into it.
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
			c.lane.alone(p, true) // nobody has read it back, and the answer may repeat what was sent
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
	c.lane.queue.signal() // for what was added meanwhile
}

// fail tells that the write failed, or was not made: whatever was carried goes back as it
// was. Nobody is told, and no retry is consumed, for no change caused this attempt. mayLand
// is true if the write may have landed, or may land later, all the same.
func (c *carried) fail(mayLand bool) {
	for _, p := range c.unpack() {
		c.back(p, mayLand)
	}
	if mayLand {
		c.lane.queue.fillUnknown(c.made, time.Now())
	}
	c.made = nil
}

// seesTaken reports whether this process has seen Azure take what a write brings a pool, or the
// operator says that it does.
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

// arrived reports whether what Azure shows proves that the pool is level. A pool that had
// to be written has to show another etag, too: only that takes from a lost write of the
// pool the etag that it is guarded by. That every write of the load balancer changes the
// etags of its pools is assumed, and looked at here.
func (p parcel) arrived(shown lb.Pool) bool {
	return p.r.Todo.ShownBy(shown) && shown.Provisioning != lb.Updating && shown.Provisioning != lb.Failed &&
		(!p.write || shown.Etag != p.r.Todo.Next.Etag)
}

// shows takes in what Azure shows of a pool that has arrived.
func (p *parcel) shows(shown lb.Pool) {
	if p.r.Observed = len(shown.Addresses); p.write {
		p.r.Fenced(shown.Etag)
	}
}

// back gives back what was not settled, but for what has nobody left to serve.
//
// If the write may land, the pool can come to hold what it was given here although nobody
// wants it any more, and a read that shows the old addresses proves nothing. So its etag is
// remembered like that of a lost write of the pool alone. While the pool has it, the write
// has not landed, and the pool is written once more even if it seems level: that changes
// the etag of the load balancer, by which the lost write is guarded. Once the pool has
// another one, the write has landed, or whatever changed the pool has fenced it off. A pool
// that was given nothing new needs none of this: the write would leave it as it is. Nor
// does one that did not exist: what it may come to hold is in the ledger.
func (c *carried) back(p parcel, mayLand bool) {
	ops := c.lane.cfg.relevant(p.ops)
	if mayLand && p.r.Outcome == poolwrite.Written {
		c.lane.queue.suspect(p.taken, p.r.Todo.Next.Etag)
	}
	c.lane.queue.back(p.taken, ops)
}

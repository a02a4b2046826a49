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

// stagedPools is a load balancer write's part for its pools. It is finished once, under the worker's
// lock; later calls do nothing.
type stagedPools struct {
	// pools are to be written in this order.
	pools []lb.Pool

	worker  *worker
	updates []poolUpdate
	// created are created empty.
	created []lb.PoolKey
}

// poolUpdate is one pool taken from the queue.
type poolUpdate struct {
	batch  poolBatch
	ops    []poolschedule.Operation
	result poolwrite.Result
	// needsWrite is true if the pool is not known to be in sync.
	needsWrite bool
	// hasRead is true once Azure has returned the pool.
	hasRead   bool
	startedAt time.Time
	observed  lb.Pool
	// mayHaveLanded is true if an earlier write of the attempt may have taken effect before the read.
	mayHaveLanded bool
}

// StagePools computes the pools for a write of the whole load balancer. The caller holds its lock (see
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
func (ls *Workers) StagePools(ctx context.Context, id lb.LoadBalancerID, pools []lb.Pool) (next []lb.Pool, written func(shown []lb.Pool, mayLand bool)) {
	c := ls.stagePools(ctx, id, pools)
	return c.pools, func(shown []lb.Pool, mayLand bool) {
		if shown == nil {
			c.requeueAll(mayLand)
			return
		}
		c.applyResult(ctx, shown)
	}
}

func (ls *Workers) stagePools(ctx context.Context, id lb.LoadBalancerID, pools []lb.Pool) *stagedPools {
	ls.mu.Lock()
	l := ls.getWorker(id)
	ls.mu.Unlock()
	c := &stagedPools{pools: slices.Clone(pools), worker: l}
	for i, p := range pools {
		isNew := p.Etag == ""
		switch {
		case p.Provisioning == lb.Updating: // an update may still be rolled back
		case !l.canBatch(p), isNew && l.hasMachineMembers(p):
			if isNew {
				c.pools[i] = withoutAddresses(p)
				c.created = append(c.created, l.poolKey(p))
			}
		default:
			if next, ok := l.preparePool(ctx, p); ok {
				c.pools[i] = next.result.Change.Next
				c.updates = append(c.updates, next)
			} else if isNew {
				c.created = append(c.created, l.poolKey(p))
			}
		}
	}
	c.dropUnneeded(pools)
	return c
}

// dropUnneeded drops pools that are no longer needed: recording the others took time.
func (c *stagedPools) dropUnneeded(pools []lb.Pool) {
	c.updates = slices.DeleteFunc(c.updates, func(p poolUpdate) bool {
		if len(c.worker.cfg.filterNeeded(slices.Clone(p.ops))) > 0 {
			return false
		}
		i := slices.IndexFunc(pools, func(is lb.Pool) bool { return c.worker.poolKey(is) == p.batch.pool })
		c.pools[i] = pools[i]
		c.worker.queue.finishBatch(p.batch, nil, p.batch.history, nil, nil)
		return true
	})
}

func (l *worker) preparePool(ctx context.Context, observed lb.Pool) (poolUpdate, bool) {
	start := time.Now()
	t, ok := l.queue.takeIfReady(l.poolKey(observed), start)
	if !ok {
		return poolUpdate{}, false
	}
	ops := l.cfg.filterNeeded(t.ops)
	if len(ops) == 0 {
		l.queue.finishBatch(t, nil, t.history, nil, nil)
		return poolUpdate{}, false
	}
	r := l.cfg.attemptConfig().NewResult(t.history)
	write, err := l.cfg.attemptConfig().PrepareWrite(ctx, ops[0].Ref, observed, false, &r)
	if err != nil || observed.Etag != "" && !l.canBatchStates(r.Change) {
		l.queue.requeueBatch(t, ops)
		return poolUpdate{}, false
	}
	return poolUpdate{batch: t, ops: ops, result: r, needsWrite: write, startedAt: start}, true
}

func (l *worker) poolKey(p lb.Pool) lb.PoolKey {
	return lb.PoolID{LoadBalancer: l.id, Name: p.ID.Name}.Key()
}

// applyResult ends the updates that Azure shows like attempts, and requeues the others.
func (c *stagedPools) applyResult(ctx context.Context, shown []lb.Pool) {
	byKey := make(map[lb.PoolKey]lb.Pool, len(shown))
	for _, s := range shown {
		byKey[c.worker.poolKey(s)] = s
	}
	for _, p := range c.takeUpdates() {
		s, ok := byKey[p.batch.pool]
		if !ok || !p.isAppliedIn(s) {
			c.requeueUpdate(p, true)
			continue
		}
		if p.needsWrite && p.result.Change.Next.Etag != "" && !c.worker.hasProvenChanges(p) {
			c.worker.updateSeparately(p, true) // not read back, and the response may echo the request
			continue
		}
		p.recordApplied(s)
		c.worker.finishAttempt(ctx, p.batch, p.ops, p.result.FinishAttempt(nil, false, false), p.startedAt)
	}
	now := time.Now()
	for _, s := range shown {
		if len(s.Addresses) == 0 {
			c.worker.queue.fillIfEmpty(c.worker.poolKey(s), now)
		}
	}
	c.worker.queue.fillCreated(c.created, now)
	c.created = nil
	c.worker.queue.wakeWorker() // operations may have been added since
}

// requeueAll requeues everything. No change caused the write, so it consumes no retry and notifies no
// Service.
func (c *stagedPools) requeueAll(mayLand bool) {
	for _, p := range c.takeUpdates() {
		c.requeueUpdate(p, mayLand)
	}
	if mayLand {
		c.worker.queue.fillUnknown(c.created, time.Now())
	}
	c.created = nil
}

// hasProvenChanges reports whether this process has seen Azure apply such changes, or the configuration
// asserts it.
func (l *worker) hasProvenChanges(p poolUpdate) bool {
	return !slices.ContainsFunc(listChanges([]poolUpdate{p}), func(ch wholewrite.Change) bool {
		return wholewrite.ResultIn(l.cfg.Behaviour, ch) != behaviour.Accepted && !l.capabilities.IsSupported(l.id.SubscriptionID, []wholewrite.Change{ch})
	})
}

func (c *stagedPools) takeUpdates() []poolUpdate {
	all := c.updates
	c.updates = nil
	return all
}

// isAppliedIn reports whether shown proves that the pool is in sync. A write must also change the etag,
// which invalidates earlier lost writes.
func (p poolUpdate) isAppliedIn(shown lb.Pool) bool {
	return p.result.Change.IsAppliedIn(shown) && shown.Provisioning != lb.Updating && shown.Provisioning != lb.Failed &&
		(!p.needsWrite || shown.Etag != p.result.Change.Next.Etag)
}

func (p *poolUpdate) recordApplied(shown lb.Pool) {
	if p.result.Observed = len(shown.Addresses); p.needsWrite {
		p.result.CheckEtag(shown.Etag)
	}
}

// requeueUpdate requeues what is still needed.
//
// If the write may land, the pool may get addresses that are no longer wanted. Its etag is kept as
// that of a lost write: while the pool has it, the pool is written even if it seems in sync, which
// changes the load balancer's etag and so invalidates the lost write. Unchanged and new pools need
// no such write.
func (c *stagedPools) requeueUpdate(p poolUpdate, mayLand bool) {
	ops := c.worker.cfg.filterNeeded(p.ops)
	if mayLand && p.result.Outcome == poolwrite.Written {
		c.worker.queue.setPendingWrite(p.batch, p.result.Change.Next.Etag)
	}
	c.worker.queue.requeueBatch(p.batch, ops)
}

// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
)

// poolUpdate is one pool taken from the queue.
type poolUpdate struct {
	batch  poolBatch
	ops    []schedule.Operation
	result diff.Result
	// needsWrite is true if the pool is not known to be in sync.
	needsWrite bool
	// hasRead is true once Azure has returned the pool.
	hasRead   bool
	startedAt time.Time
	observed  lb.Pool
	// mayHaveLanded is true if an earlier write of the attempt may have taken effect before the read.
	mayHaveLanded bool
}

// takeUpdates takes pools from the queue, except those that need no attempt.
func (l *worker) takeUpdates(due []lb.PoolKey) []poolUpdate {
	var all []poolUpdate
	for _, key := range due {
		start := time.Now()
		t := l.queue.takeBatch(key, start, l.cfg.Interval)
		ops := l.cfg.filterNeeded(t.ops)
		if len(ops) == 0 {
			l.queue.finishBatch(t, nil, t.history, nil, nil)
			continue
		}
		if schedule.HasOnlyExtra(ops) {
			l.queue.requeueBatch(t, ops)
			continue
		}
		all = append(all, poolUpdate{batch: t, ops: ops, startedAt: start, result: l.cfg.attemptConfig().NewResult(t.history)})
	}
	return all
}

// forRetry returns the pool for another read. landed is true if the rejected write may have been
// sent twice, and have landed.
func (p poolUpdate) forRetry(cfg *Config, landed bool) poolUpdate {
	return poolUpdate{batch: p.batch, ops: p.ops, startedAt: p.startedAt, mayHaveLanded: landed, result: p.result.ForRetry(cfg.attemptConfig().NewResult(p.batch.history), landed)}
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

// finishUpdate finishes a pool like an attempt of its own.
func (l *worker) finishUpdate(ctx, timeoutCtx context.Context, p poolUpdate, err error) {
	r := p.result.FinishAttempt(err, ctx.Err() != nil, timeoutCtx.Err() != nil)
	if r.Outcome != diff.Shutdown {
		l.finishAttempt(ctx, p.batch, p.ops, r, p.startedAt)
	}
}

// updateSeparately requeues a pool for separate updates until it is in sync.
func (l *worker) updateSeparately(p poolUpdate, mayLand bool) {
	l.queue.excludePool(p.batch, true, mayLand && p.result.Outcome == diff.Written)
	l.requeueUpdate(p, mayLand)
}

// requeueUpdate requeues what is still needed.
//
// If the write may land, the pool may get addresses that are no longer wanted. Its etag is kept as
// that of a lost write: while the pool has it, the pool is written even if it seems in sync, which
// changes the load balancer's etag and so invalidates the lost write. Unchanged and new pools need
// no such write.
func (l *worker) requeueUpdate(p poolUpdate, mayLand bool) {
	ops := l.cfg.filterNeeded(p.ops)
	if mayLand && p.result.Outcome == diff.Written {
		l.queue.setPendingWrite(p.batch, p.result.Change.Next.Etag)
	}
	l.queue.requeueBatch(p.batch, ops)
}

func (l *worker) poolKey(p lb.Pool) lb.PoolKey {
	return lb.PoolID{LoadBalancer: l.id, Name: p.ID.Name}.Key()
}

func (l *worker) indexPools(b lb.LoadBalancer) map[lb.PoolKey]int {
	at := make(map[lb.PoolKey]int, len(b.Pools))
	for i, p := range b.Pools {
		at[l.poolKey(p)] = i
	}
	return at
}

// isUpdating reports whether a write of the load balancer or a pool is in progress.
func isUpdating(b lb.LoadBalancer) bool {
	return b.Provisioning == lb.Updating || slices.ContainsFunc(b.Pools, func(p lb.Pool) bool { return p.Provisioning == lb.Updating })
}

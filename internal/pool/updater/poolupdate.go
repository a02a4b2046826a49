// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"slices"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
)

// poolUpdate is one pool taken from the queue.
type poolUpdate struct {
	batch      poolBatch
	ops        []schedule.Operation
	result     diff.Result
	needsWrite bool
	hasRead    bool
	startedAt  time.Time
	observed   lb.Pool
	// mayHaveLanded is true if an earlier write of the attempt may have taken effect before the read.
	mayHaveLanded bool
}

// takeUpdate takes a pool from the queue; false if it needs no attempt.
func (l *worker) takeUpdate(key lb.PoolKey) (poolUpdate, bool) {
	start := time.Now()
	t := l.queue.takeBatch(key, start)
	ops := l.cfg.filterNeeded(t.ops)
	switch {
	case len(ops) == 0:
		l.queue.finishBatch(t, nil, t.history, nil, nil)
	case schedule.CauseOf(ops, false) == (schedule.Cause{}): // only operations that are not due
		l.queue.requeueBatch(t, ops)
	default:
		return poolUpdate{batch: t, ops: ops, startedAt: start, result: l.cfg.newResult(t.history)}, true
	}
	return poolUpdate{}, false
}

func (p poolUpdate) target(cfg *Config, valid func() bool) target {
	return target{ref: p.ops[0].Ref, pool: p.ops[0].Pool, isValid: valid, isNeeded: func() bool { return slices.ContainsFunc(p.ops, cfg.Cluster.IsNeeded) }}
}

func (p poolUpdate) forRetry(cfg *Config, met *armerror.Fault) poolUpdate {
	return poolUpdate{batch: p.batch, ops: p.ops, startedAt: p.startedAt, mayHaveLanded: met.MayBeApplied, result: p.result.ForSecondTry(cfg.newResult(p.batch.history), met)}
}

// isAppliedIn also requires a new etag after a write, which invalidates earlier lost writes.
func (p poolUpdate) isAppliedIn(shown lb.Pool) bool {
	return p.result.Change.IsAppliedIn(shown) && shown.Provisioning != lb.Updating && shown.Provisioning != lb.Failed &&
		(!p.needsWrite || shown.Etag != p.result.Change.Next.Etag)
}

func (p *poolUpdate) recordApplied(shown lb.Pool) {
	if p.result.Observed = len(shown.Addresses); p.needsWrite {
		p.result.CheckEtag(shown.Etag)
	}
}

func (l *worker) finishUpdate(ctx, timeoutCtx context.Context, p poolUpdate, err error) {
	p.result = p.result.FinishAttempt(err, ctx.Err() != nil, timeoutCtx.Err() != nil)
	if p.result.Outcome != diff.Shutdown {
		l.finishAttempt(ctx, p)
	}
}

// requeueUpdate requeues what is still needed. If the write may land, its etag is kept as that of a lost write: while
// the pool has it, the pool is written even if in sync, which invalidates the lost write.
func (l *worker) requeueUpdate(p poolUpdate, mayLand bool, change func(h *schedule.History)) {
	ops := l.cfg.filterNeeded(p.ops)
	l.queue.mu.Lock()
	entry := p.batch.entry
	change(&entry.history)
	if mayLand && p.result.Outcome == diff.Written {
		entry.history.UncountedWrite = true
		entry.history.Writes.PendingEtag, entry.history.Writes.PendingSince, entry.syncedFingerprint = p.result.Change.Next.Etag, time.Time{}, nil
	}
	l.queue.mu.Unlock()
	l.queue.requeueBatch(p.batch, ops)
}

func (l *worker) updateSeparately(p poolUpdate, mayLand bool) {
	l.requeueUpdate(p, mayLand, func(h *schedule.History) { h.ExcludedFromBatch = true })
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

func isUpdating(b lb.LoadBalancer) bool {
	return b.Provisioning == lb.Updating || slices.ContainsFunc(b.Pools, func(p lb.Pool) bool { return p.Provisioning == lb.Updating })
}

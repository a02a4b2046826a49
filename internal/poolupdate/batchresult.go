// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolwrite"
)

// rejectedPause is the pause after a rejection that no single pool caused.
const rejectedPause = 10 * time.Minute

// handleWriteError handles a failed write. It returns the pools to retry after the first conflict without
// Retry-After. A failed trial counts as no attempt: each pool is updated separately.
func (j *batchUpdate) handleWriteError(writes []poolUpdate, err error) []poolUpdate {
	l, f := j.worker, fault.FromError(err)
	if f.IsPreconditionFailed() && f.RetryAt.IsZero() && !j.isRetry {
		for i, p := range writes {
			writes[i] = p.forRetry(l.cfg, f.MayBeApplied)
		}
		return writes
	}
	if f.OperationFailed || f.MayBeApplied || j.attemptCtx.Err() != nil {
		l.queue.checkOthers(updateKeys(writes), time.Now())
	}
	if len(j.trialChanges) == 0 || j.ctx.Err() != nil {
		l.handleFailure(j.ctx, j.attemptCtx, writes, err)
		return nil
	}
	l.cfg.Log.InfoContext(j.ctx, "load balancer not written whole to see whether Azure takes that: nothing was learned, each pool is written by itself",
		"loadBalancer", l.id.Name, "pools", len(writes), "code", f.Code, "err", f)
	for _, p := range writes {
		l.queue.delayPool(p.batch, f.RetryAt, time.Time{})
		l.updateSeparately(p, f.MayBeApplied || j.attemptCtx.Err() != nil)
	}
	return nil
}

// forRetry returns the pool for another read. landed is true if the rejected write may have been
// sent twice, and have landed.
func (p poolUpdate) forRetry(cfg *Config, landed bool) poolUpdate {
	return poolUpdate{batch: p.batch, ops: p.ops, startedAt: p.startedAt, mayHaveLanded: landed, result: p.result.ForRetry(cfg.attemptConfig().NewResult(p.batch.history), landed)}
}

// finishUpdate finishes a pool like an attempt of its own.
func (l *worker) finishUpdate(ctx, timeoutCtx context.Context, p poolUpdate, err error) {
	r := p.result.FinishAttempt(err, ctx.Err() != nil, timeoutCtx.Err() != nil)
	if r.Outcome != poolwrite.Shutdown {
		l.finishAttempt(ctx, p.batch, p.ops, r, p.startedAt)
	}
}

// handleFailure handles a failed read or write. Failures unrelated to the content, after the SDK's
// retries, are a failure of each pool.
func (l *worker) handleFailure(ctx, timeoutCtx context.Context, updates []poolUpdate, err error) {
	r := poolwrite.Result{}.FinishAttempt(err, ctx.Err() != nil, timeoutCtx.Err() != nil)
	if r.Outcome != poolwrite.Terminal && r.Outcome != poolwrite.Stale || r.Fault.HasExhaustedRetries() {
		for _, p := range updates {
			l.finishUpdate(ctx, timeoutCtx, p, err)
		}
		return
	}
	l.batchAfter = time.Now().Add(rejectedPause)
	l.cfg.Log.WarnContext(ctx, "load balancer not written whole, each pool is written by itself",
		"loadBalancer", l.id.Name, "pools", len(updates), "code", r.Fault.Code, "err", r.Fault.Error())
	for _, p := range updates {
		l.queue.delayPool(p.batch, r.Fault.RetryAt, time.Time{})
		l.updateSeparately(p, r.Fault.MayBeApplied)
	}
}

// handleWritten settles what Azure shows. Unproven behavior is read back, because the response may echo the
// request.
func (j *batchUpdate) handleWritten(writes []poolUpdate, b lb.LoadBalancer) {
	l := j.worker
	if !l.capabilities.IsSupported(l.id.SubscriptionID, listChanges(writes)) {
		again, err := l.readLoadBalancer(j.attemptCtx)
		if err != nil { // trust nothing that was not read
			again = lb.LoadBalancer{}
		}
		b = again
	}
	shown := make(map[lb.PoolKey]lb.Pool, len(b.Pools))
	for _, p := range b.Pools {
		shown[l.poolKey(p)] = p
	}
	var seen []poolwrite.WrittenPool
	for _, p := range writes {
		if s, found := shown[p.batch.pool]; found {
			seen = append(seen, poolwrite.WrittenPool{Before: p.observed, Change: p.result.Change, ReadBack: s})
		}
	}
	l.capabilities.RecordResults(j.ctx, l.id.SubscriptionID, poolwrite.ClassifyEffects(seen))
	for _, p := range writes {
		s, found := shown[p.batch.pool]
		if !found || !p.isAppliedIn(s) {
			l.updateSeparately(p, true)
			continue
		}
		p.recordApplied(s)
		l.finishUpdate(j.ctx, j.attemptCtx, p, nil)
	}
}

// updateSeparately requeues a pool for separate updates until it is in sync.
func (l *worker) updateSeparately(p poolUpdate, mayLand bool) {
	l.queue.excludePool(p.batch, true, mayLand && p.result.Outcome == poolwrite.Written)
	(&stagedPools{worker: l}).requeueUpdate(p, mayLand)
}

func updateKeys(updates []poolUpdate) []lb.PoolKey {
	all := make([]lb.PoolKey, len(updates))
	for i, p := range updates {
		all[i] = p.batch.pool
	}
	return all
}

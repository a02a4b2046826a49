// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/calls"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolattempt"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/sleep"
	"weir.dev/weir/internal/wholewrite"
)

// maxConcurrentRecords bounds concurrent status store writes.
const maxConcurrentRecords = 8

// updateBatch updates pools by one write of their load balancer. If Azure rejects it, other than for a
// conflict or an outage, any pool may be the cause: no attempt is counted, and each pool is written
// separately until it is in sync. The caller holds the worker's lock and the lease.
func (l *worker) updateBatch(ctx context.Context, due []lb.PoolKey, permissions wholewrite.Permissions, valid func() bool) {
	updates := l.takeBatches(due)
	l.reportWaits(blocker{cause: CauseBehind}, time.Now()) // those not in the batch
	timeoutCtx, cancel := context.WithTimeout(ctx, poolwrite.AttemptDeadline)
	defer cancel()
	j := batchUpdate{worker: l, ctx: ctx, attemptCtx: timeoutCtx, permissions: permissions, valid: valid}
	// A conflicting write is common: the first one costs a silent retry.
	if updates = j.attemptOnce(updates); len(updates) > 0 {
		j.isRetry = true
		j.attemptOnce(updates)
	}
	if len(j.trialChanges) > 0 {
		l.capabilities.FinishTrial(l.id.SubscriptionID, j.wasSent)
	}
}

// batchUpdate updates several pools by one load balancer write.
type batchUpdate struct {
	worker          *worker
	ctx, attemptCtx context.Context //nolint:containedctx // it lives as long as the attempt
	permissions     wholewrite.Permissions
	valid           func() bool
	// trialChanges are the changes on trial.
	trialChanges []wholewrite.Change
	// wasSent is true once a write was sent.
	wasSent bool
	// isRetry is true for the attempt after a conflict.
	isRetry bool
}

// attemptOnce returns the pools to retry after a conflict; all others are settled or requeued.
func (j *batchUpdate) attemptOnce(updates []poolUpdate) []poolUpdate {
	l := j.worker
	if len(updates) == 0 {
		return nil
	}
	b, err := j.readIdle()
	if f := fault.FromError(err); f != nil && f.Code == fault.CodeRetryAfter { // the load balancer is throttled, its pools may not be
		l.batchAfter = f.RetryAt
		for _, p := range updates {
			(&stagedPools{worker: l}).requeueUpdate(p, false)
		}
		return nil
	}
	if err != nil {
		l.handleFailure(j.ctx, j.attemptCtx, updates, err)
		return nil
	}
	writes := j.filterAllowed(l.preparePools(j.ctx, j.attemptCtx, updates, b))
	if len(writes) == 0 || !j.beginTrial(writes) {
		return nil
	}
	if writes = j.filterDue(writes); len(writes) == 0 {
		return nil
	}
	index := l.indexPools(b)
	causes := make([]calls.Cause, len(writes))
	for i := range writes {
		causes[i] = poolattempt.NewCause(writes[i].ops[0].Ref)
		writes[i].result.RecordWrite()
		b.Pools[index[writes[i].batch.pool]] = writes[i].result.Change.Next
	}
	shown, err := l.cfg.LoadBalancers.PutLoadBalancer(calls.WithCauses(j.attemptCtx, causes...), b)
	j.wasSent = j.wasSent || !fault.FromError(err).IsNotSent()
	if err != nil {
		return j.handleWriteError(writes, err)
	}
	j.handleWritten(writes, shown)
	return nil
}

// readIdle waits, after a conflict, up to an interval for the other write: its completion changes the
// etag again.
func (j *batchUpdate) readIdle() (lb.LoadBalancer, error) {
	l := j.worker
	end, delays := time.Now().Add(l.cfg.Interval), backoff.Exponential{Initial: time.Second, Max: 10 * time.Second}
	for n := 1; ; n++ {
		b, err := l.readLoadBalancer(j.attemptCtx)
		if wait := delays.DelayAfter(n); err != nil || !j.isRetry || !isUpdating(b) || time.Now().Add(wait).After(end) || sleep.For(j.attemptCtx, wait) != nil {
			return b, err
		}
	}
}

// isUpdating reports whether a write of the load balancer or a pool is in progress.
func isUpdating(b lb.LoadBalancer) bool {
	return b.Provisioning == lb.Updating || slices.ContainsFunc(b.Pools, func(p lb.Pool) bool { return p.Provisioning == lb.Updating })
}

// filterAllowed returns the pools that may be written together. The others are updated separately, or
// all if too few remain for a trial.
func (j *batchUpdate) filterAllowed(writes []poolUpdate) []poolUpdate {
	var all, others []poolUpdate
	for _, p := range writes {
		if isAllowed(j.permissions, p.result.Change) {
			all = append(all, p)
		} else {
			others = append(others, p)
		}
	}
	if len(all) < minTrialPools && len(j.permissions.TrialChanges(listChanges(all))) > 0 {
		all, others = nil, writes
	}
	for _, p := range others {
		j.worker.updateSeparately(p, false)
	}
	return all
}

// beginTrial records the trial once. If it fails, a trial is no longer possible, or a second write would
// try unrecorded changes, it returns false, and all pools are updated separately.
func (j *batchUpdate) beginTrial(writes []poolUpdate) bool {
	l := j.worker
	tries := slices.DeleteFunc(j.permissions.TrialChanges(listChanges(writes)), func(c wholewrite.Change) bool { return slices.Contains(j.trialChanges, c) })
	if len(tries) == 0 {
		return true
	}
	if err := j.recordTrial(tries); err != nil {
		l.cfg.Log.DebugContext(j.ctx, "load balancer not written whole to see whether Azure takes that", "loadBalancer", l.id.Name, "err", err)
		for _, p := range writes {
			l.updateSeparately(p, false)
		}
		return false
	}
	j.trialChanges = tries
	return true
}

func (j *batchUpdate) recordTrial(tries []wholewrite.Change) error {
	if len(j.trialChanges) > 0 {
		return fmt.Errorf("%s came along after what is on trial was put on record", tries[0])
	}
	for _, c := range tries {
		if reason := j.worker.queue.trialBlockedReason(time.Now(), c); reason != "" {
			return fmt.Errorf("not now: %s", reason)
		}
	}
	return j.worker.capabilities.StartTrial(j.attemptCtx, j.worker.id.SubscriptionID, tries)
}

// filterDue checks the lease and the operations again, because reads and records take time. It returns no
// pools if a change on trial is no longer among them.
func (j *batchUpdate) filterDue(writes []poolUpdate) []poolUpdate {
	l := j.worker
	if !j.valid() {
		l.handleFailure(j.ctx, j.attemptCtx, writes, poolattempt.ErrLeaseLost)
		return nil
	}
	var due []poolUpdate
	for _, p := range writes {
		if p.ops = l.cfg.filterNeeded(p.ops); len(p.ops) > 0 {
			due = append(due, p)
		} else {
			l.queue.finishBatch(p.batch, nil, p.batch.history, nil, nil)
		}
	}
	if len(due) < minTrialPools && len(j.trialChanges) > 0 || !slices.Equal(j.permissions.TrialChanges(listChanges(due)), j.permissions.TrialChanges(listChanges(writes))) {
		for _, p := range due {
			l.updateSeparately(p, false)
		}
		return nil
	}
	return due
}

func (l *worker) takeBatches(due []lb.PoolKey) []poolUpdate {
	var all []poolUpdate
	for _, key := range due {
		start := time.Now()
		t := l.queue.takeBatch(key, start, l.cfg.Interval)
		ops := l.cfg.filterNeeded(t.ops)
		if len(ops) == 0 {
			l.queue.finishBatch(t, nil, t.history, nil, nil)
			continue
		}
		if poolschedule.HasOnlyExtra(ops) {
			l.queue.requeueBatch(t, ops)
			continue
		}
		all = append(all, poolUpdate{batch: t, ops: ops, startedAt: start, result: l.cfg.attemptConfig().NewResult(t.history)})
	}
	return all
}

func (l *worker) indexPools(b lb.LoadBalancer) map[lb.PoolKey]int {
	at := make(map[lb.PoolKey]int, len(b.Pools))
	for i, p := range b.Pools {
		at[l.poolKey(p)] = i
	}
	return at
}

// preparePools computes and records the writes concurrently, settles pools without one, and leaves
// missing pools and those of network interfaces to separate updates.
func (l *worker) preparePools(ctx, timeoutCtx context.Context, updates []poolUpdate, b lb.LoadBalancer) []poolUpdate {
	errs := make([]error, len(updates))
	slots := make(chan struct{}, maxConcurrentRecords)
	var recording sync.WaitGroup
	index := l.indexPools(b)
	for i := range updates {
		at, found := index[updates[i].batch.pool]
		if !found || b.Pools[at].NIC && l.cfg.AdminState {
			continue
		}
		slots <- struct{}{}
		recording.Go(func() {
			p, members := &updates[i], updates[i].result.ChangesMembers
			p.observed, p.hasRead = b.Pools[at], true
			p.needsWrite, errs[i] = l.cfg.attemptConfig().PrepareWrite(timeoutCtx, p.ops[0].Ref, p.observed, false, &p.result)
			if p.mayHaveLanded && p.result.Outcome == poolwrite.Unchanged { // by the write that seemed rejected
				p.result.Outcome, p.result.ChangesMembers = poolwrite.Written, members
			}
			<-slots
		})
	}
	recording.Wait()
	var writes []poolUpdate
	for i, p := range updates {
		switch {
		case !p.hasRead, errors.Is(errs[i], poolattempt.ErrMachineMembers):
			l.updateSeparately(p, false)
		case errs[i] == nil && p.needsWrite:
			writes = append(writes, p)
		default:
			l.finishUpdate(ctx, timeoutCtx, p, errs[i])
		}
	}
	return writes
}

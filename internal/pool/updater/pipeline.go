// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/ratelimit"
)

// sendTimeout leaves time to await earlier writes if one is not answered.
const sendTimeout = diff.AttemptDeadline / 2

// updatePipelined sends each write once Azure has accepted the one before, awaits the end, and settles all by one read
// of the load balancer. The caller holds w.slot and the lease.
func (w *worker) updatePipelined(ctx context.Context, due []lb.PoolKey, valid func() bool) {
	runCtx, cancel := context.WithTimeout(ctx, diff.AttemptDeadline)
	timeoutCtx, sent := context.WithTimeout(runCtx, sendTimeout)
	defer sent()
	p := pipelinedUpdate{worker: w, ctx: ctx, attemptCtx: runCtx, sendCtx: timeoutCtx, valid: valid, awaitsEach: w.overlap.AwaitsEach()}
	defer func() { cancel(); p.pending.Wait() }()
	p.sendAll(due)
	w.reportWaits(blocker{cause: CauseBehind}, time.Now()) // those not in the batch
	p.sendCtx = runCtx
	p.waitAndResolve()
}

type pipelinedUpdate struct {
	worker                   *worker
	ctx, attemptCtx, sendCtx context.Context //nolint:containedctx // it lives as long as the attempt
	valid                    func() bool
	sentWrites               []sentWrite
	// awaitsEach is true until this process has seen overtaken writes persist. Before that, the end of one write might
	// roll back another.
	awaitsEach bool
	startedAt  time.Time
	pending    sync.WaitGroup
}

type sentWrite struct {
	poolUpdate
	accepted   AcceptedWrite
	waitForEnd func() (lb.Pool, error) // waits for completion
	// wasOvertaken is true if the write still ran when Azure accepted the next one, and the etag that it sent proves
	// that.
	wasOvertaken bool
}

// sendAll sends for up to an interval, which bounds the wait of urgent changes.
func (p *pipelinedUpdate) sendAll(due []lb.PoolKey) {
	w, attempted := p.worker, map[lb.PoolKey]bool{}
	p.startedAt = time.Now()
	end := p.startedAt.Add(w.cfg.Interval)
	for len(due) > 0 && len(p.sentWrites) < w.overlap.Limit() {
		if len(attempted) > 0 {
			if blocked := w.checkGate(); time.Now().After(end) || !p.valid() || !blocked.retryAt.IsZero() {
				return
			}
		}
		key := due[0]
		attempted[key] = true
		if update, ok := w.takeUpdate(key); ok && !p.sendOne(update) {
			return
		}
		due = p.nextDue(attempted)
	}
}

// nextDue returns the due pools not tried yet, in turn; while a node leaves, only affected ones.
func (p *pipelinedUpdate) nextDue(attempted map[lb.PoolKey]bool) []lb.PoolKey {
	now := time.Now()
	urgent := p.worker.queue.selectPools(schedule.SelectUrgent, now)
	return slices.DeleteFunc(p.worker.queue.selectPools(schedule.SelectWrites, now), func(key lb.PoolKey) bool {
		return attempted[key] || len(urgent) > 0 && !slices.Contains(urgent, key)
	})
}

// sendOne sends one write and reports whether the next may follow. After a 412 it reads and sends once more, because the
// end of the previous write changes the etag.
func (p *pipelinedUpdate) sendOne(update poolUpdate) (next bool) {
	err := p.sendWrite(&update)
	if f := armerror.FromError(err); f.IsPreconditionFailed() && f.RetryAt.IsZero() && update.needsWrite {
		wrote, members := update.result.Outcome == diff.Written, update.result.ChangesMembers
		update = update.forRetry(p.worker.cfg, f)
		switch err = p.sendWrite(&update); { // if it landed: by the write that seemed rejected
		case !update.mayHaveLanded:
		case err == nil && !update.needsWrite:
			update.result.Outcome, update.result.ChangesMembers = diff.Written, members
		case isNotReady(err): // that write may be the one running
			update.history.UncountedWrite = update.history.UncountedWrite || wrote
		}
	}
	if err == nil && update.needsWrite {
		return true
	}
	return p.handleUnsent(update, err)
}

func (p *pipelinedUpdate) sendWrite(update *poolUpdate) error {
	cfg := p.worker.cfg
	observed, err := cfg.Azure.GetPool(p.sendCtx, update.ops[0].Pool)
	if err != nil {
		return err
	}
	update.observed, update.hasRead = observed, true
	if observed.NIC {
		return nil
	}
	if update.needsWrite, err = cfg.prepareWrite(p.sendCtx, update.ops[0].Ref, observed, &update.result, false); err != nil || !update.needsWrite {
		return err
	}
	if err = update.target(cfg, p.valid).checkWrite(); err != nil {
		return err
	}
	update.result.RecordWrite()
	accepted, err := cfg.Pipeline.Begin(withCause(p.sendCtx, update.ops[0].Ref), update.result.Change.Next)
	if err != nil {
		return err
	}
	// A write without changes overtakes nothing, and ignored etags guard no order.
	if p.wasRunning(observed) && !accepted.Completed && cfg.Behaviour.PoolIfMatch != behavior.Ignored {
		p.sentWrites[len(p.sentWrites)-1].wasOvertaken = true
	}
	if n := len(p.sentWrites); n > 0 && p.awaitsEach {
		p.sentWrites[n-1].waitForEnd = p.newWaiter(p.sentWrites[n-1].accepted)
	}
	p.sentWrites = append(p.sentWrites, sentWrite{poolUpdate: *update, accepted: accepted, waitForEnd: sync.OnceValues(func() (lb.Pool, error) { return accepted.Wait(p.attemptCtx, true) })})
	return nil
}

func (p *pipelinedUpdate) wasRunning(observed lb.Pool) bool {
	if len(p.sentWrites) == 0 {
		return false
	}
	last := p.sentWrites[len(p.sentWrites)-1].accepted
	return !last.Completed && last.Etag != "" && last.Etag == observed.Etag
}

// newWaiter awaits an overtaken write from now on; only its own operation proves its end.
func (p *pipelinedUpdate) newWaiter(accepted AcceptedWrite) func() (lb.Pool, error) {
	var shown lb.Pool
	var err error
	over := make(chan struct{})
	p.pending.Go(func() { shown, err = accepted.Wait(p.attemptCtx, false); close(over) })
	return func() (lb.Pool, error) { <-over; return shown, err }
}

// handleUnsent handles a write that was not accepted, and reports whether the next may be sent. A rejection because of
// Weir's own previous write does not count as an attempt. Failures that a retry may fix are left to a separate write.
func (p *pipelinedUpdate) handleUnsent(update poolUpdate, err error) (next bool) {
	w, f := p.worker, armerror.FromError(err)
	switch {
	case errors.Is(err, errMachineMembers), update.hasRead && update.observed.NIC && err == nil:
		w.updateSeparately(update, false)
		return true
	case diff.IsOverlapRejection(f) && update.needsWrite && p.wasRunning(update.observed): // a rejected read proves nothing
		w.setOverlap(p.ctx, w.overlap.AfterFailure())
		w.requeueUpdate(update, f.MayBeApplied, func(h *schedule.History) { h.NotBefore = ratelimit.MaxTime(h.NotBefore, f.RetryAt) })
		return false
	case f != nil && (f.Code == armerror.CodeParentFailed || f.Code == codeInterfaceMember) && f.RetryAt.IsZero():
		w.updateSeparately(update, f.MayBeApplied)
		return false
	}
	w.finishUpdate(p.ctx, p.ctx, update, err)
	return err == nil || f.Class == armerror.Stale || update.result.Outcome == diff.Rejected || isNotReady(err)
}

// waitAndResolve waits for the last write, or for all if one may be rolled back. Only the read that follows decides: a
// superseded write has not failed, and an earlier success proves nothing.
func (p *pipelinedUpdate) waitAndResolve() {
	w := p.worker
	if len(p.sentWrites) == 0 {
		return
	}
	n := len(p.sentWrites) - 1
	last := p.sentWrites[n]
	shown, err := last.waitForEnd()
	if n == 0 { // it was a single attempt
		if err == nil {
			err = last.result.VerifyWrite(shown)
		}
		if err == nil {
			w.setOverlap(p.ctx, w.overlap.AfterSuccess(1, 0))
		}
		w.finishUpdate(p.ctx, p.ctx, last.poolUpdate, err)
		return
	}
	f := armerror.FromError(err)
	if f != nil && !f.OperationFailed { // its result is unknown
		w.finishUpdate(p.ctx, p.ctx, last.poolUpdate, err)
		p.sentWrites = p.sentWrites[:n]
	}
	trusted, isCutShort := false, false
	if f == nil || f.IsSuperseded() {
		trusted, isCutShort = p.waitForEnds()
	}
	switch {
	case p.ctx.Err() != nil: // stop silently; the next process reads the records
	case isCutShort:
		p.requeueAll()
	default:
		p.resolveAll(trusted)
	}
}

const endPollInterval = 250 * time.Millisecond

// waitForEnds waits, and reports whether each write succeeded or was superseded. It returns early when admin states
// become due.
func (p *pipelinedUpdate) waitForEnds() (trusted, isCutShort bool) {
	if !p.awaitsEach {
		return true, false
	}
	all := make(chan struct{})
	go func() { p.pending.Wait(); close(all) }()
	for {
		select {
		case <-all:
			return !slices.ContainsFunc(p.sentWrites, func(write sentWrite) bool {
				_, err := write.waitForEnd()
				return err != nil && !armerror.FromError(err).IsSuperseded()
			}), false
		case <-time.After(endPollInterval):
			if len(p.worker.queue.selectPools(schedule.SelectAdminSince(p.startedAt), time.Now())) > 0 {
				return false, true
			}
		}
	}
}

// requeueAll requeues each pool unless it has newer operations: Azure may still roll back even one that is in sync.
func (p *pipelinedUpdate) requeueAll() {
	for _, write := range p.sentWrites {
		p.worker.requeueUpdate(write.poolUpdate, false, func(h *schedule.History) {
			h.Writes.MayRevert, h.UncountedWrite = true, h.UncountedWrite || write.result.Outcome == diff.Written
			if len(write.entry.ops) == 0 {
				h.MustBeAlone, h.LastAdmin = true, time.Now()
			}
		})
	}
}

func (p *pipelinedUpdate) hasUrgent() bool {
	return len(p.worker.queue.selectPools(schedule.SelectUrgent, time.Now())) > 0
}

// resolveAll ends the attempts of all pools by one read. trusted is false after a failure without detail or an unknown
// result.
func (p *pipelinedUpdate) resolveAll(trusted bool) {
	w := p.worker
	b, err := p.readIdle()
	if p.ctx.Err() != nil {
		return
	}
	trusted = trusted && b.Provisioning != lb.Failed
	atRest, index := err == nil && !isUpdating(b), w.indexPools(b)
	if !trusted || atRest && p.recordObserved(b, index) {
		w.queue.checkOthers(func(key lb.PoolKey) bool {
			return slices.ContainsFunc(p.sentWrites, func(write sentWrite) bool { return write.pool == key })
		}, time.Now())
	}
	isForeign := err == nil && !atRest && !p.hasUrgent() // another client's write does not end
	for _, write := range p.sentWrites {
		at, found := index[write.pool]
		if trusted && atRest && found && write.isAppliedIn(b.Pools[at]) {
			write.recordApplied(b.Pools[at])
			w.finishUpdate(p.ctx, p.ctx, write.poolUpdate, nil)
			continue
		}
		w.requeueUpdate(write.poolUpdate, false, func(h *schedule.History) {
			h.UncountedWrite = h.UncountedWrite || write.result.Outcome == diff.Written
			if isForeign {
				h.WaitUntil = ratelimit.MaxTime(h.WaitUntil, time.Now().Add(w.cfg.Interval))
			}
			if f := armerror.FromError(err); f != nil && !f.RetryAt.IsZero() {
				h.NotBefore = ratelimit.MaxTime(h.NotBefore, f.RetryAt)
			} else { // its etag proves nothing
				h.MustBeAlone = true
			}
		})
	}
}

// readIdle waits for another client's write, for up to an interval or until something is urgent.
func (p *pipelinedUpdate) readIdle() (lb.LoadBalancer, error) {
	end, delays := time.Now().Add(p.worker.cfg.Interval), ratelimit.Exponential{Initial: time.Second, Max: 10 * time.Second}
	for n := 1; ; n++ {
		b, err := p.worker.readLoadBalancer(p.sendCtx)
		if wait := delays.DelayAfter(n); err != nil || !isUpdating(b) || time.Now().Add(wait).After(end) || !p.sleepUnlessUrgent(wait) {
			return b, err
		}
	}
}

func (p *pipelinedUpdate) sleepUnlessUrgent(d time.Duration) bool {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if p.hasUrgent() || ratelimit.Sleep(p.sendCtx, time.Second) != nil {
			return false
		}
	}
	return true
}

// recordObserved learns from what became of overtaken writes, and reports whether Azure has discarded any.
func (p *pipelinedUpdate) recordObserved(b lb.LoadBalancer, index map[lb.PoolKey]int) bool {
	w := p.worker
	kept, lost := 0, 0
	for _, write := range p.sentWrites {
		at, found := index[write.pool]
		if !found || !write.wasOvertaken {
			continue
		}
		switch c := write.result.Change; {
		case c.IsEmpty():
		case !c.IsAppliedIn(b.Pools[at]):
			lost++
		case p.hasProof(write):
			kept++
		}
	}
	if lost > 0 {
		w.setOverlap(p.ctx, w.overlap.AfterFailure())
	} else if kept > 0 {
		w.setOverlap(p.ctx, w.overlap.AfterSuccess(len(p.sentWrites), kept))
	}
	return lost > 0
}

// hasProof reports whether a write certainly ran when Azure accepted the next: it was superseded, or Azure heeds etags.
func (p *pipelinedUpdate) hasProof(write sentWrite) bool {
	if !p.awaitsEach || p.worker.cfg.Behaviour.PoolIfMatch == behavior.Enforced {
		return true
	}
	_, err := write.waitForEnd()
	return armerror.FromError(err).IsSuperseded()
}

func isNotReady(err error) bool { return errors.Is(err, diff.ErrNotReady) }

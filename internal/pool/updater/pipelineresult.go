// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"errors"
	"slices"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/ratelimit"
)

// waitAndResolve awaits the last write, or all if any may be rolled back. Only the read that follows counts: superseded
// writes are no failure, and earlier successes prove nothing.
func (p *pipelinedUpdate) waitAndResolve() {
	l := p.worker
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
			l.setOverlap(p.ctx, l.overlap.AfterSuccess(1, 0))
		}
		l.finishUpdate(p.ctx, p.ctx, last.poolUpdate, err)
		return
	}
	f := armerror.FromError(err)
	if f != nil && !f.OperationFailed { // its result is unknown
		l.finishUpdate(p.ctx, p.ctx, last.poolUpdate, err)
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

// waitForEnds reports whether each write succeeded or was superseded. Admin states that have become due cut it short.
func (p *pipelinedUpdate) waitForEnds() (trusted, isCutShort bool) {
	if !p.awaitsEach {
		return true, false
	}
	all := make(chan struct{})
	go func() { p.pending.Wait(); close(all) }()
	for {
		select {
		case <-all:
			return !slices.ContainsFunc(p.sentWrites, func(w sentWrite) bool {
				_, err := w.waitForEnd()
				return err != nil && !armerror.FromError(err).IsSuperseded()
			}), false
		case <-time.After(endPollInterval):
			if len(p.worker.queue.selectPools(schedule.SelectAdminSince(p.startedAt), time.Now())) > 0 {
				return false, true
			}
		}
	}
}

// requeueAll writes each pool again even if in sync: Azure may still roll back. Newer operations cover that; pools
// without them are written separately, after the others.
func (p *pipelinedUpdate) requeueAll() {
	for _, w := range p.sentWrites {
		p.worker.requeueUpdate(w.poolUpdate, false, func(h *schedule.History) {
			h.Writes.MayRevert, h.UncountedWrite = true, h.UncountedWrite || w.result.Outcome == diff.Written
			if len(w.batch.entry.ops) == 0 {
				h.ExcludedFromBatch, h.LastAdmin = true, time.Now()
			}
		})
	}
}

func (p *pipelinedUpdate) hasUrgent() bool {
	return len(p.worker.queue.selectPools(schedule.SelectUrgent, time.Now())) > 0
}

// resolveAll settles pools by one read. Without trust (a failure without detail, or an unknown result) no write counts,
// and all pools are checked.
func (p *pipelinedUpdate) resolveAll(trusted bool) {
	l := p.worker
	b, err := p.readIdle()
	if p.ctx.Err() != nil {
		return
	}
	trusted = trusted && b.Provisioning != lb.Failed
	atRest, index := err == nil && !isUpdating(b), l.indexPools(b)
	if !trusted || atRest && p.recordObserved(b, index) {
		l.queue.checkOthers(func(key lb.PoolKey) bool {
			return slices.ContainsFunc(p.sentWrites, func(w sentWrite) bool { return w.batch.pool == key })
		}, time.Now())
	}
	for _, w := range p.sentWrites {
		at, found := index[w.batch.pool]
		if trusted && atRest && found && w.isAppliedIn(b.Pools[at]) {
			w.recordApplied(b.Pools[at])
			l.finishUpdate(p.ctx, p.ctx, w.poolUpdate, nil)
			continue
		}
		p.requeueWrite(w, armerror.FromError(err), err == nil && !atRest && !p.hasUrgent())
	}
}

// requeueWrite leaves a pool to a separate write unless the read was throttled. Its etag proves nothing. isForeign is
// true if another client's write does not end.
func (p *pipelinedUpdate) requeueWrite(w sentWrite, readFault *armerror.Fault, isForeign bool) {
	p.worker.requeueUpdate(w.poolUpdate, false, func(h *schedule.History) {
		h.UncountedWrite = h.UncountedWrite || w.result.Outcome == diff.Written
		if isForeign {
			h.WaitUntil = ratelimit.MaxTime(h.WaitUntil, time.Now().Add(p.worker.cfg.Interval))
		}
		if readFault != nil && !readFault.RetryAt.IsZero() {
			h.NotBefore = ratelimit.MaxTime(h.NotBefore, readFault.RetryAt)
		} else {
			h.ExcludedFromBatch = true
		}
	})
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
	l := p.worker
	kept, lost := 0, 0
	for _, w := range p.sentWrites {
		at, found := index[w.batch.pool]
		if !found || !w.wasOvertaken {
			continue
		}
		switch c := w.result.Change; {
		case c.IsEmpty():
		case !c.IsAppliedIn(b.Pools[at]):
			lost++
		case p.hasProof(w):
			kept++
		}
	}
	if lost > 0 {
		l.setOverlap(p.ctx, l.overlap.AfterFailure())
	} else if kept > 0 {
		l.setOverlap(p.ctx, l.overlap.AfterSuccess(len(p.sentWrites), kept))
	}
	return lost > 0
}

// hasProof reports whether a write was certainly running when the next was accepted: it ended as superseded, or Azure
// heeds etags. Otherwise it may have ended while the next was on its way.
func (p *pipelinedUpdate) hasProof(w sentWrite) bool {
	if !p.awaitsEach || p.worker.cfg.Behaviour.PoolIfMatch == behavior.Enforced {
		return true
	}
	_, err := w.waitForEnd()
	return armerror.FromError(err).IsSuperseded()
}

func isNotReady(err error) bool { return errors.Is(err, diff.ErrNotReady) }

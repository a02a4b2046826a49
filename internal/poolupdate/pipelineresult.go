// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"errors"
	"time"

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/sleep"
	"weir.dev/weir/internal/wholewrite"
)

// waitAndResolve waits for the last write, and for all if overtaken writes may be rolled back. Only the
// read that follows counts: superseded writes are no failure, and earlier successes prove nothing.
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
		l.finishUpdate(p.ctx, p.ctx, last.poolUpdate, err)
		return
	}
	f := fault.FromError(err)
	if f != nil && !f.OperationFailed { // its result is unknown
		l.finishUpdate(p.ctx, p.ctx, last.poolUpdate, err)
		p.sentWrites = p.sentWrites[:n]
	}
	trusted := (f == nil || f.IsSuperseded()) && p.waitForEnds()
	if p.ctx.Err() != nil {
		return // stop silently; the next process reads the records
	}
	p.resolveAll(trusted)
}

// waitForEnds waits for all completions unless something is urgent, and reports whether each succeeded or
// was superseded.
func (p *pipelinedUpdate) waitForEnds() bool {
	if !p.awaitsEach {
		return true
	}
	all := make(chan struct{})
	go func() { p.pending.Wait(); close(all) }()
	for {
		select {
		case <-all:
			for _, w := range p.sentWrites {
				if _, err := w.waitForEnd(); err != nil && !fault.FromError(err).IsSuperseded() {
					return false
				}
			}
			return true
		case <-time.After(time.Second):
			if p.hasUrgent() {
				return false
			}
		}
	}
}

func (p *pipelinedUpdate) hasUrgent() bool {
	return len(p.worker.selectPools(poolschedule.SelectUrgent, time.Now())) > 0
}

// resolveAll settles each pool by one read. trusted is false if a write failed without detail or its
// result is unknown: then no write counts, and all pools of the load balancer are checked.
func (p *pipelinedUpdate) resolveAll(trusted bool) {
	l := p.worker
	b, err := p.readIdle()
	if p.ctx.Err() != nil {
		return
	}
	trusted = trusted && b.Provisioning != lb.Failed
	atRest, index, answer := err == nil && !isUpdating(b), l.indexPools(b), behaviour.Result("")
	if trusted && atRest {
		answer = p.recordObserved(b, index)
	}
	if !trusted || answer == behaviour.SupersedeDiscard {
		l.queue.checkOthers(p.poolKeys(), time.Now())
	}
	for _, w := range p.sentWrites {
		at, found := index[w.batch.pool]
		if trusted && atRest && found && w.isAppliedIn(b.Pools[at]) {
			w.recordApplied(b.Pools[at])
			l.finishUpdate(p.ctx, p.ctx, w.poolUpdate, nil)
			continue
		}
		if err == nil && !atRest && !p.hasUrgent() {
			l.queue.delayPool(w.batch, time.Time{}, time.Now().Add(l.cfg.Interval))
		}
		p.requeueWrite(w, fault.FromError(err))
	}
}

// requeueWrite requeues a pool not shown as done, for a separate write unless the read was throttled. Its
// etag proves nothing, so a pool that shows less than the record is rewritten.
func (p *pipelinedUpdate) requeueWrite(w sentWrite, readFault *fault.Fault) {
	l := p.worker
	named := readFault != nil && !readFault.RetryAt.IsZero()
	if named {
		l.queue.delayPool(w.batch, readFault.RetryAt, time.Time{})
	}
	l.queue.excludePool(w.batch, !named, w.result.Outcome == poolwrite.Written)
	(&stagedPools{worker: l}).requeueUpdate(w.poolUpdate, false)
}

func (p *pipelinedUpdate) poolKeys() []lb.PoolKey {
	all := make([]lb.PoolKey, len(p.sentWrites))
	for i, w := range p.sentWrites {
		all[i] = w.batch.pool
	}
	return all
}

// readIdle repeats the read while another client's write is in progress, for up to an interval or until
// something is urgent.
func (p *pipelinedUpdate) readIdle() (lb.LoadBalancer, error) {
	end, delays := time.Now().Add(p.worker.cfg.Interval), backoff.Exponential{Initial: time.Second, Max: 10 * time.Second}
	for n := 1; ; n++ {
		b, err := p.worker.readLoadBalancer(p.sendCtx)
		if wait := delays.DelayAfter(n); err != nil || !isUpdating(b) || time.Now().Add(wait).After(end) || !p.sleepUnlessUrgent(wait) {
			return b, err
		}
	}
}

// sleepUnlessUrgent waits, and reports whether nothing became urgent.
func (p *pipelinedUpdate) sleepUnlessUrgent(d time.Duration) bool {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if p.hasUrgent() || sleep.For(p.sendCtx, time.Second) != nil {
			return false
		}
	}
	return true
}

func (p *pipelinedUpdate) recordObserved(b lb.LoadBalancer, index map[lb.PoolKey]int) behaviour.Result {
	var seen []poolwrite.WrittenPool
	for _, w := range p.sentWrites {
		if at, found := index[w.batch.pool]; found && w.wasOvertaken {
			seen = append(seen, poolwrite.WrittenPool{Before: w.observed, Change: w.result.Change, ReadBack: b.Pools[at]})
		}
	}
	a := poolwrite.ClassifyOverlap(seen)
	p.worker.capabilities.RecordResults(p.ctx, p.worker.id.SubscriptionID, map[wholewrite.Change]behaviour.Result{wholewrite.Overlap: a})
	return a
}

func isNotReady(err error) bool { return errors.Is(err, poolwrite.ErrNotReady) }

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

// sideBySide bounds concurrent status store writes.
const sideBySide = 8

// whole updates pools by one write of their load balancer. If Azure rejects it, other than for a
// conflict or an outage, any pool may be the cause: no attempt is counted, and each pool is written
// separately until it is in sync. The caller holds the worker's lock and the lease.
func (l *lane) whole(ctx context.Context, due []lb.PoolKey, permissions wholewrite.Leaves, valid func() bool) {
	updates := l.takeAll(due)
	l.tell(obstacle{cause: CauseBehind}, time.Now()) // those not in the batch
	timeoutCtx, cancel := context.WithTimeout(ctx, poolwrite.AttemptDeadline)
	defer cancel()
	j := joint{lane: l, ctx: ctx, within: timeoutCtx, may: permissions, valid: valid}
	// A conflicting write is common: the first one costs a silent retry.
	if updates = j.attempt(updates); len(updates) > 0 {
		j.last = true
		j.attempt(updates)
	}
	if len(j.trial) > 0 {
		l.verdicts.End(l.id.SubscriptionID, j.sent)
	}
}

// joint updates several pools by one load balancer write.
type joint struct {
	lane        *lane
	ctx, within context.Context //nolint:containedctx // it lives as long as the attempt
	may         wholewrite.Leaves
	valid       func() bool
	// trial are the changes on trial.
	trial []wholewrite.Change
	// sent is true once a write was sent.
	sent bool
	// last is true for the attempt after a conflict.
	last bool
}

// attempt returns the pools to retry after a conflict; all others are settled or requeued.
func (j *joint) attempt(updates []parcel) []parcel {
	l := j.lane
	if len(updates) == 0 {
		return nil
	}
	b, err := j.read()
	if f := fault.From(err); f != nil && f.Code == fault.CodeResting { // the load balancer is throttled, its pools may not be
		l.wholeAfter = f.RetryAt
		for _, p := range updates {
			(&carried{lane: l}).back(p, false)
		}
		return nil
	}
	if err != nil {
		l.unmade(j.ctx, j.within, updates, err)
		return nil
	}
	writes := j.permitted(l.readied(j.ctx, j.within, updates, b))
	if len(writes) == 0 || !j.begin(writes) {
		return nil
	}
	if writes = j.due(writes); len(writes) == 0 {
		return nil
	}
	index := l.index(b)
	causes := make([]calls.Cause, len(writes))
	for i := range writes {
		causes[i] = poolattempt.CauseOf(writes[i].ops[0].Ref)
		writes[i].r.Sends()
		b.Pools[index[writes[i].taken.pool]] = writes[i].r.Todo.Next
	}
	shown, err := l.cfg.Whole.PutLoadBalancer(calls.For(j.within, causes...), b)
	j.sent = j.sent || !fault.From(err).Unsent()
	if err != nil {
		return j.failed(writes, err)
	}
	j.made(writes, shown)
	return nil
}

// read waits, after a conflict, up to an interval for the other write: its completion changes the
// etag again.
func (j *joint) read() (lb.LoadBalancer, error) {
	l := j.lane
	end, delays := time.Now().Add(l.cfg.Interval), backoff.Doubling{First: time.Second, Max: 10 * time.Second}
	for n := 1; ; n++ {
		b, err := l.readAll(j.within)
		if wait := delays.After(n); err != nil || !j.last || !moves(b) || time.Now().Add(wait).After(end) || sleep.For(j.within, wait) != nil {
			return b, err
		}
	}
}

// moves reports whether a write of the load balancer or a pool is in progress.
func moves(b lb.LoadBalancer) bool {
	return b.Provisioning == lb.Updating || slices.ContainsFunc(b.Pools, func(p lb.Pool) bool { return p.Provisioning == lb.Updating })
}

// permitted returns the pools that may be written together. The others are updated separately, or
// all if too few remain for a trial.
func (j *joint) permitted(writes []parcel) []parcel {
	var all, others []parcel
	for _, p := range writes {
		if allowed(j.may, p.r.Todo) {
			all = append(all, p)
		} else {
			others = append(others, p)
		}
	}
	if len(all) < wholeFrom && len(j.may.Tries(changesIn(all))) > 0 {
		all, others = nil, writes
	}
	for _, p := range others {
		j.lane.alone(p, false)
	}
	return all
}

// begin records the trial once. If it fails, a trial is no longer possible, or a second write would
// try unrecorded changes, it returns false, and all pools are updated separately.
func (j *joint) begin(writes []parcel) bool {
	l := j.lane
	tries := slices.DeleteFunc(j.may.Tries(changesIn(writes)), func(c wholewrite.Change) bool { return slices.Contains(j.trial, c) })
	if len(tries) == 0 {
		return true
	}
	if err := j.record(tries); err != nil {
		l.cfg.Log.DebugContext(j.ctx, "load balancer not written whole to see whether Azure takes that", "loadBalancer", l.id.Name, "err", err)
		for _, p := range writes {
			l.alone(p, false)
		}
		return false
	}
	j.trial = tries
	return true
}

func (j *joint) record(tries []wholewrite.Change) error {
	if len(j.trial) > 0 {
		return fmt.Errorf("%s came along after what is on trial was put on record", tries[0])
	}
	for _, c := range tries {
		if reason := j.lane.queue.unrest(time.Now(), c); reason != "" {
			return fmt.Errorf("not now: %s", reason)
		}
	}
	return j.lane.verdicts.Begin(j.within, j.lane.id.SubscriptionID, tries)
}

// due checks the lease and the operations again, because reads and records take time. It returns no
// pools if a change on trial is no longer among them.
func (j *joint) due(writes []parcel) []parcel {
	l := j.lane
	if !j.valid() {
		l.unmade(j.ctx, j.within, writes, poolattempt.ErrLeaseEnds)
		return nil
	}
	var due []parcel
	for _, p := range writes {
		if p.ops = l.cfg.relevant(p.ops); len(p.ops) > 0 {
			due = append(due, p)
		} else {
			l.queue.done(p.taken, nil, p.taken.history, nil, nil)
		}
	}
	if len(due) < wholeFrom && len(j.trial) > 0 || !slices.Equal(j.may.Tries(changesIn(due)), j.may.Tries(changesIn(writes))) {
		for _, p := range due {
			l.alone(p, false)
		}
		return nil
	}
	return due
}

func (l *lane) takeAll(due []lb.PoolKey) []parcel {
	var all []parcel
	for _, key := range due {
		start := time.Now()
		t := l.queue.take(key, start, l.cfg.Interval)
		ops := l.cfg.relevant(t.ops)
		if len(ops) == 0 {
			l.queue.done(t, nil, t.history, nil, nil)
			continue
		}
		if poolschedule.OnlyCarried(ops) {
			l.queue.back(t, ops)
			continue
		}
		all = append(all, parcel{taken: t, ops: ops, start: start, r: l.cfg.attempts().Begin(t.history)})
	}
	return all
}

func (l *lane) index(b lb.LoadBalancer) map[lb.PoolKey]int {
	at := make(map[lb.PoolKey]int, len(b.Pools))
	for i, p := range b.Pools {
		at[l.key(p)] = i
	}
	return at
}

// readied computes and records the writes concurrently, settles pools without one, and leaves
// missing pools and those of network interfaces to separate updates.
func (l *lane) readied(ctx, timeoutCtx context.Context, updates []parcel, b lb.LoadBalancer) []parcel {
	errs := make([]error, len(updates))
	slots := make(chan struct{}, sideBySide)
	var recording sync.WaitGroup
	index := l.index(b)
	for i := range updates {
		at, found := index[updates[i].taken.pool]
		if !found || b.Pools[at].NIC && l.cfg.AdminState {
			continue
		}
		slots <- struct{}{}
		recording.Go(func() {
			p, members := &updates[i], updates[i].r.Members
			p.before, p.read = b.Pools[at], true
			p.write, errs[i] = l.cfg.attempts().Prepare(timeoutCtx, p.ops[0].Ref, p.before, false, &p.r)
			if p.landed && p.r.Outcome == poolwrite.Unchanged { // by the write that seemed rejected
				p.r.Outcome, p.r.Members = poolwrite.Written, members
			}
			<-slots
		})
	}
	recording.Wait()
	var writes []parcel
	for i, p := range updates {
		switch {
		case !p.read, errors.Is(errs[i], poolattempt.ErrByMachine):
			l.alone(p, false)
		case errs[i] == nil && p.write:
			writes = append(writes, p)
		default:
			l.ends(ctx, timeoutCtx, p, errs[i])
		}
	}
	return writes
}

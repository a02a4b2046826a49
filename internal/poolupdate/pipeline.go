// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/calls"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolattempt"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/wholewrite"
)

// sendDeadline leaves time to await earlier writes if one is not answered.
const sendDeadline = poolwrite.AttemptDeadline / 2

var overlapping = []wholewrite.Change{wholewrite.Overlapping}

// errDowned excludes nodes that go Down from trials.
var errDowned = errors.New("a node goes Down")

// pipelined sends each pool's write as soon as Azure has accepted the previous one, awaits
// completion, and settles all pools by one read of the load balancer. next is the pool that has its
// turn. The caller holds the worker's lock and the lease.
func (l *lane) pipelined(ctx context.Context, next lb.PoolKey, due []lb.PoolKey, permission wholewrite.Leave, valid func() bool) {
	all, cancel := context.WithTimeout(ctx, poolwrite.AttemptDeadline)
	timeoutCtx, sent := context.WithTimeout(all, sendDeadline)
	defer sent()
	p := pipeline{
		lane: l, ctx: ctx, all: all, within: timeoutCtx, valid: valid, trial: permission == wholewrite.Try,
		awaits: !l.verdicts.Proven(l.id.SubscriptionID, overlapping),
	}
	defer func() { cancel(); p.ending.Wait() }()
	if p.trial {
		if err := l.verdicts.Begin(timeoutCtx, l.id.SubscriptionID, overlapping); err != nil {
			l.cfg.Log.DebugContext(ctx, "writes not sent one after the other to see whether Azure takes that", "loadBalancer", l.id.Name, "err", err)
			l.pass(ctx, next, valid)
			return
		}
		defer func() { l.verdicts.End(l.id.SubscriptionID, p.met) }()
	}
	p.send(due)
	l.tell(obstacle{cause: CauseBehind}, time.Now()) // those not in the batch
	p.within = all
	p.conclude()
}

// pipeline updates several pools by overlapping writes.
type pipeline struct {
	lane             *lane
	ctx, all, within context.Context //nolint:containedctx // it lives as long as the attempt
	valid            func() bool
	sent             []sentWrite
	// trial is true if support is being tested.
	trial bool
	// met is true once a write was overtaken, or is known to be rejected because another was running.
	met bool
	// awaits is true until this process has seen Azure keep overtaken writes: each completion might
	// roll a write back.
	awaits bool
	ending sync.WaitGroup
}

type sentWrite struct {
	parcel
	begun Begun
	end   func() (lb.Pool, error) // waits for completion
	// overtaken is true if the write was running when Azure accepted the next, which was guarded by
	// an etag that completion changes.
	overtaken bool
}

// send sends writes in turn for up to an interval, which bounds the wait of urgent changes. Newly
// due pools are included.
func (p *pipeline) send(due []lb.PoolKey) {
	l, end, attempted := p.lane, time.Now().Add(p.lane.cfg.Interval), map[lb.PoolKey]bool{}
	for len(due) > 0 {
		now := time.Now()
		if p.trial && l.queue.unrest(now, wholewrite.Overlapping) != "" {
			return
		}
		if len(attempted) > 0 {
			if blocked := l.gate(); now.After(end) || !p.valid() || !blocked.askAt.IsZero() {
				return
			}
		}
		key := due[0]
		attempted[key] = true
		for _, update := range l.takeAll([]lb.PoolKey{key}) {
			if !p.attempt(update) {
				return
			}
		}
		due = p.dueNext(attempted)
	}
}

// dueNext returns the due pools not tried yet, in turn; while a node leaves, only affected ones.
func (p *pipeline) dueNext(attempted map[lb.PoolKey]bool) []lb.PoolKey {
	now, permission := time.Now(), wholewrite.Yes
	if p.trial {
		permission = wholewrite.Try
	}
	urgent := p.lane.those(poolschedule.Urgent, now)
	return slices.DeleteFunc(p.lane.dueInTurn(now, permission), func(key lb.PoolKey) bool {
		return attempted[key] || len(urgent) > 0 && !slices.Contains(urgent, key)
	})
}

// attempt sends one write and reports whether the next may follow. After a 412 it reads again once,
// because the previous write's completion changes the etag.
func (p *pipeline) attempt(update parcel) (next bool) {
	err := p.write(&update)
	if f := fault.From(err); f.Overtaken() && f.RetryAt.IsZero() && update.write {
		wrote := update.r.Outcome == poolwrite.Written
		update = update.again(p.lane.cfg, f.Undecided)
		members := update.r.Members
		switch err = p.write(&update); { // if it landed: by the write that seemed rejected
		case !update.landed:
		case err == nil && !update.write:
			update.r.Outcome, update.r.Members = poolwrite.Written, members
		case notReady(err): // that write may be the one running
			update.taken.history.Owed = update.taken.history.Owed || wrote
		}
	}
	if err == nil && update.write {
		return true
	}
	return p.unsent(update, err)
}

func (p *pipeline) write(update *parcel) error {
	cfg := p.lane.cfg
	observed, err := cfg.Azure.Get(p.within, update.ops[0].Pool)
	if err != nil {
		return err
	}
	update.before, update.read = observed, true
	if observed.NIC {
		return nil
	}
	if update.write, err = cfg.attempts().Prepare(p.within, update.ops[0].Ref, observed, cfg.AdminState, &update.r); err != nil || !update.write {
		return err
	}
	if p.trial && len(update.r.Todo.Downed) > 0 {
		return errDowned
	}
	ops := update.ops
	if err = (poolattempt.Try{Valid: p.valid, Needed: func() bool { return cfg.needed(ops) }}).MayWrite(); err != nil {
		return err
	}
	update.r.Sends()
	accepted, err := cfg.Pipeline.Begin(calls.For(p.within, poolattempt.CauseOf(update.ops[0].Ref)), update.r.Todo.Next)
	if err != nil {
		return err
	}
	// A write without changes overtakes nothing, and ignored etags guard no order.
	if p.ran(observed) && !accepted.Over && cfg.Behaviour.PoolIfMatch != behaviour.Ignored {
		p.sent[len(p.sent)-1].overtaken, p.met = true, true
	}
	p.sent = append(p.sent, sentWrite{parcel: *update, begun: accepted, end: p.follow(accepted)})
	return nil
}

// ran reports whether the last write was running when a pool was read.
func (p *pipeline) ran(observed lb.Pool) bool {
	if len(p.sent) == 0 {
		return false
	}
	last := p.sent[len(p.sent)-1].begun
	return !last.Over && last.Etag != "" && last.Etag == observed.Etag
}

// follow returns a function that waits for completion. If every completion is awaited, waiting
// starts now.
func (p *pipeline) follow(accepted Begun) func() (lb.Pool, error) {
	if !p.awaits {
		return func() (lb.Pool, error) { return accepted.End(p.all, true) }
	}
	var shown lb.Pool
	var err error
	over := make(chan struct{})
	p.ending.Go(func() { shown, err = accepted.End(p.all, false); close(over) })
	return func() (lb.Pool, error) { <-over; return shown, err }
}

// unsent settles a pool without an accepted write, and reports whether the next may be sent. A
// rejection because of Weir's previous write counts as no attempt. Failures that a retry may fix
// are left to a separate write.
func (p *pipeline) unsent(update parcel, err error) (next bool) {
	l, f := p.lane, fault.From(err)
	refusal := poolwrite.RefusesOverlap(f)
	switch {
	case errors.Is(err, errDowned), errors.Is(err, poolattempt.ErrByMachine), update.read && update.before.NIC && err == nil:
		l.alone(update, false)
		return true
	case refusal != "" && update.write && p.ran(update.before): // a rejected read proves nothing
		p.met = l.verdicts.Refused(p.ctx, l.id.SubscriptionID, refusal) || p.met
		l.queue.wait(update.taken, f.RetryAt, time.Time{})
		l.queue.part(update.taken, false, f.Undecided && update.r.Outcome == poolwrite.Written)
		(&carried{lane: l}).back(update, f.Undecided)
		return false
	case f != nil && (f.Code == fault.CodeParentFailed || f.Code == poolattempt.CodeInterfaceMember) && f.RetryAt.IsZero():
		l.alone(update, f.Undecided)
		return false
	}
	l.ends(p.ctx, p.ctx, update, err)
	return err == nil || f.Class == fault.Stale || update.r.Outcome == poolwrite.Refused || notReady(err)
}

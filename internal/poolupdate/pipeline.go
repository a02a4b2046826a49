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

// sendDeadline bounds the sending: one write that nobody answers leaves those before it the time for
// their end.
const sendDeadline = poolwrite.AttemptDeadline / 2

// overlapping is what a trial of writes that overlap is to find out.
var overlapping = []wholewrite.Change{wholewrite.Overlapping}

// errDowned keeps a node that goes Down out of a trial.
var errDowned = errors.New("a node goes Down")

// pipelined attempts pools by writes of their own, each of which is sent as soon as Azure has accepted
// the one before; then their ends are awaited, and one read of the load balancer tells what became
// of all. Each is settled as by an attempt of its own. next is the pool whose turn it is. The caller
// holds the lane and the lease.
func (l *lane) pipelined(ctx context.Context, next lb.PoolKey, due []lb.PoolKey, leave wholewrite.Leave, valid func() bool) {
	all, cancel := context.WithTimeout(ctx, poolwrite.AttemptDeadline)
	within, sent := context.WithTimeout(all, sendDeadline)
	defer sent()
	p := pipeline{
		lane: l, ctx: ctx, all: all, within: within, valid: valid, trial: leave == wholewrite.Try,
		awaits: !l.verdicts.Proven(l.id.SubscriptionID, overlapping),
	}
	defer func() { cancel(); p.ending.Wait() }()
	if p.trial {
		if err := l.verdicts.Begin(within, l.id.SubscriptionID, overlapping); err != nil {
			l.cfg.Log.DebugContext(ctx, "writes not sent one after the other to see whether Azure takes that", "loadBalancer", l.id.Name, "err", err)
			l.pass(ctx, next, valid)
			return
		}
		defer func() { l.verdicts.End(l.id.SubscriptionID, p.met) }()
	}
	p.send(due)
	l.tell(obstacle{cause: CauseBehind}, time.Now()) // the others
	p.within = all
	p.conclude()
}

// pipeline is an attempt of several pools by writes that overlap.
type pipeline struct {
	lane             *lane
	ctx, all, within context.Context //nolint:containedctx // it lives as long as the attempt
	valid            func() bool
	sent             []sentWrite
	// trial is true where it is to be found out whether Azure takes that, and met once a write was
	// overtaken, or is known to be refused because another runs.
	trial, met bool
	// awaits is true until this process has seen Azure leave what was overtaken: it may be taken back
	// when its own operation ends, so each end is awaited, by ending.
	awaits bool
	ending sync.WaitGroup
}

// sentWrite is a write that Azure has accepted.
type sentWrite struct {
	parcel
	begun Begun
	end   func() (lb.Pool, error) // waits for it
	// overtaken is true if it still ran when Azure accepted the next: its end would have changed the
	// etag that guarded that one.
	overtaken bool
}

// send sends the writes, in turn, for as long as an interval: what becomes urgent meanwhile waits for
// no more than that and the end of the last. A pool that becomes due meanwhile is sent as well, when its
// namespace has its turn.
func (p *pipeline) send(due []lb.PoolKey) {
	l, end, tried := p.lane, time.Now().Add(p.lane.cfg.Interval), map[lb.PoolKey]bool{}
	for len(due) > 0 {
		now := time.Now()
		if p.trial && l.queue.unrest(now, wholewrite.Overlapping) != "" {
			return
		}
		if len(tried) > 0 {
			if met := l.gate(); now.After(end) || !p.valid() || !met.askAt.IsZero() {
				return
			}
		}
		key := due[0]
		tried[key] = true
		for _, one := range l.takeAll([]lb.PoolKey{key}) {
			if !p.attempt(one) {
				return
			}
		}
		due = p.dueNext(tried)
	}
}

// dueNext returns the pools that are due now, in turn, without those that were tried; where a node
// leaves, only those that it concerns.
func (p *pipeline) dueNext(tried map[lb.PoolKey]bool) []lb.PoolKey {
	now, leave := time.Now(), wholewrite.Yes
	if p.trial {
		leave = wholewrite.Try
	}
	urgent := p.lane.those(poolschedule.Urgent, now)
	return slices.DeleteFunc(p.lane.dueInTurn(now, leave), func(key lb.PoolKey) bool {
		return tried[key] || len(urgent) > 0 && !slices.Contains(urgent, key)
	})
}

// attempt sends one write, and reports whether the next may follow. A 412 is met once by another
// read: the end of the write before changes the etag.
func (p *pipeline) attempt(one parcel) (next bool) {
	err := p.write(&one)
	if f := fault.From(err); f.Overtaken() && f.RetryAt.IsZero() && one.write {
		wrote := one.r.Outcome == poolwrite.Written
		one = one.again(p.lane.cfg, f.Undecided)
		members := one.r.Members
		switch err = p.write(&one); { // of one that has landed: by the write that was taken for refused
		case !one.landed:
		case err == nil && !one.write:
			one.r.Outcome, one.r.Members = poolwrite.Written, members
		case notReady(err): // it may be that write that runs
			one.taken.history.Owed = one.taken.history.Owed || wrote
		}
	}
	if err == nil && one.write {
		return true
	}
	return p.unsent(one, err)
}

// write reads a pool, and sends what it has to become if that is not what it is.
func (p *pipeline) write(one *parcel) error {
	cfg := p.lane.cfg
	observed, err := cfg.Azure.Get(p.within, one.ops[0].Pool)
	if err != nil {
		return err
	}
	one.before, one.read = observed, true
	if observed.NIC {
		return nil
	}
	if one.write, err = cfg.attempts().Prepare(p.within, one.ops[0].Ref, observed, cfg.AdminState, &one.r); err != nil || !one.write {
		return err
	}
	if p.trial && len(one.r.Todo.Downed) > 0 {
		return errDowned
	}
	ops := one.ops
	if err = (poolattempt.Try{Valid: p.valid, Needed: func() bool { return cfg.needed(ops) }}).MayWrite(); err != nil {
		return err
	}
	one.r.Sends()
	begun, err := cfg.Pipeline.Begin(calls.For(p.within, poolattempt.CauseOf(one.ops[0].Ref)), one.r.Todo.Next)
	if err != nil {
		return err
	}
	// What changes nothing overtakes nothing; and where no etag is heeded it guards no order.
	if p.ran(observed) && !begun.Over && cfg.Behaviour.PoolIfMatch != behaviour.Ignored {
		p.sent[len(p.sent)-1].overtaken, p.met = true, true
	}
	p.sent = append(p.sent, sentWrite{parcel: *one, begun: begun, end: p.follow(begun)})
	return nil
}

// ran reports whether the last write was seen to be under way when a pool was read.
func (p *pipeline) ran(observed lb.Pool) bool {
	if len(p.sent) == 0 {
		return false
	}
	last := p.sent[len(p.sent)-1].begun
	return !last.Over && last.Etag != "" && last.Etag == observed.Etag
}

// follow returns what waits for the end of a write, and has it awaited from now on if it has to be.
func (p *pipeline) follow(begun Begun) func() (lb.Pool, error) {
	if !p.awaits {
		return func() (lb.Pool, error) { return begun.End(p.all, true) }
	}
	var shown lb.Pool
	var err error
	over := make(chan struct{})
	p.ending.Go(func() { shown, err = begun.End(p.all, false); close(over) })
	return func() (lb.Pool, error) { <-over; return shown, err }
}

// unsent settles a pool that is level, or whose write Azure did not accept, and reports whether the
// next may be sent. A refusal because of the write before is nobody's attempt: the lane has taken the
// risk. One because of somebody else's is one as ever. What an attempt of one pool makes good
// otherwise is left to one.
func (p *pipeline) unsent(one parcel, err error) (next bool) {
	l, f := p.lane, fault.From(err)
	refusal := poolwrite.RefusesOverlap(f)
	switch {
	case errors.Is(err, errDowned), errors.Is(err, poolattempt.ErrByMachine), one.read && one.before.NIC && err == nil:
		l.alone(one, false)
		return true
	case refusal != "" && one.write && p.ran(one.before): // of a read it says nothing
		p.met = l.verdicts.Refused(p.ctx, l.id.SubscriptionID, refusal) || p.met
		l.queue.wait(one.taken, f.RetryAt, time.Time{})
		l.queue.part(one.taken, false, f.Undecided && one.r.Outcome == poolwrite.Written)
		(&carried{lane: l}).back(one, f.Undecided)
		return false
	case f != nil && (f.Code == fault.CodeParentFailed || f.Code == poolattempt.CodeInterfaceMember) && f.RetryAt.IsZero():
		l.alone(one, f.Undecided)
		return false
	}
	l.ends(p.ctx, p.ctx, one, err)
	return err == nil || f.Class == fault.Stale || one.r.Outcome == poolwrite.Refused || notReady(err)
}

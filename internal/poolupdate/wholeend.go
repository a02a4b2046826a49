// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolwrite"
)

// wholeRest is the pause after a rejection that no single pool caused.
const wholeRest = 10 * time.Minute

// failed handles a failed write. It returns the pools to retry after the first conflict without
// Retry-After. A failed trial counts as no attempt: each pool is updated separately.
func (j *joint) failed(writes []parcel, err error) []parcel {
	l, f := j.lane, fault.From(err)
	if f.Overtaken() && f.RetryAt.IsZero() && !j.last {
		for i, p := range writes {
			writes[i] = p.again(l.cfg, f.Undecided)
		}
		return writes
	}
	if f.Ended || f.Undecided || j.within.Err() != nil {
		l.queue.lookAtOthers(keys(writes), time.Now())
	}
	if len(j.trial) == 0 || j.ctx.Err() != nil {
		l.unmade(j.ctx, j.within, writes, err)
		return nil
	}
	l.cfg.Log.InfoContext(j.ctx, "load balancer not written whole to see whether Azure takes that: nothing was learned, each pool is written by itself",
		"loadBalancer", l.id.Name, "pools", len(writes), "code", f.Code, "err", f)
	for _, p := range writes {
		l.queue.wait(p.taken, f.RetryAt, time.Time{})
		l.alone(p, f.Undecided || j.within.Err() != nil)
	}
	return nil
}

// again returns the pool for another read. landed is true if the rejected write may have been
// sent twice, and have landed.
func (p parcel) again(cfg *Config, landed bool) parcel {
	return parcel{taken: p.taken, ops: p.ops, start: p.start, landed: landed, r: p.r.Again(cfg.attempts().Begin(p.taken.history), landed)}
}

// ends finishes a pool like an attempt of its own.
func (l *lane) ends(ctx, timeoutCtx context.Context, p parcel, err error) {
	r := p.r.End(err, ctx.Err() != nil, timeoutCtx.Err() != nil)
	if r.Outcome != poolwrite.Shutdown {
		l.conclude(ctx, p.taken, p.ops, r, p.start)
	}
}

// unmade handles a failed read or write. Failures unrelated to the content, after the SDK's
// retries, are a failure of each pool.
func (l *lane) unmade(ctx, timeoutCtx context.Context, updates []parcel, err error) {
	r := poolwrite.Result{}.End(err, ctx.Err() != nil, timeoutCtx.Err() != nil)
	if r.Outcome != poolwrite.Terminal && r.Outcome != poolwrite.Stale || r.Fault.Exhausted() {
		for _, p := range updates {
			l.ends(ctx, timeoutCtx, p, err)
		}
		return
	}
	l.wholeAfter = time.Now().Add(wholeRest)
	l.cfg.Log.WarnContext(ctx, "load balancer not written whole, each pool is written by itself",
		"loadBalancer", l.id.Name, "pools", len(updates), "code", r.Fault.Code, "err", r.Fault.Error())
	for _, p := range updates {
		l.queue.wait(p.taken, r.Fault.RetryAt, time.Time{})
		l.alone(p, r.Fault.Undecided)
	}
}

// made settles what Azure shows. Unproven behavior is read back, because the response may echo the
// request.
func (j *joint) made(writes []parcel, b lb.LoadBalancer) {
	l := j.lane
	if !l.verdicts.Proven(l.id.SubscriptionID, changesIn(writes)) {
		again, err := l.readAll(j.within)
		if err != nil { // trust nothing that was not read
			again = lb.LoadBalancer{}
		}
		b = again
	}
	shown := make(map[lb.PoolKey]lb.Pool, len(b.Pools))
	for _, p := range b.Pools {
		shown[l.key(p)] = p
	}
	var seen []poolwrite.After
	for _, p := range writes {
		if s, found := shown[p.taken.pool]; found {
			seen = append(seen, poolwrite.After{Before: p.before, Todo: p.r.Todo, Shown: s})
		}
	}
	l.verdicts.Learn(j.ctx, l.id.SubscriptionID, poolwrite.Showed(seen))
	for _, p := range writes {
		s, found := shown[p.taken.pool]
		if !found || !p.arrived(s) {
			l.alone(p, true)
			continue
		}
		p.shows(s)
		l.ends(j.ctx, j.within, p, nil)
	}
}

// alone requeues a pool for separate updates until it is in sync.
func (l *lane) alone(p parcel, mayLand bool) {
	l.queue.part(p.taken, true, mayLand && p.r.Outcome == poolwrite.Written)
	(&carried{lane: l}).back(p, mayLand)
}

func keys(updates []parcel) []lb.PoolKey {
	all := make([]lb.PoolKey, len(updates))
	for i, p := range updates {
		all[i] = p.taken.pool
	}
	return all
}

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

// conclude waits for the last write, and for all if overtaken writes may be rolled back. Only the
// read that follows counts: superseded writes are no failure, and earlier successes prove nothing.
func (p *pipeline) conclude() {
	l := p.lane
	if len(p.sent) == 0 {
		return
	}
	n := len(p.sent) - 1
	last := p.sent[n]
	shown, err := last.end()
	if n == 0 { // it was a single attempt
		if err == nil {
			err = last.r.Shown(shown)
		}
		l.ends(p.ctx, p.ctx, last.parcel, err)
		return
	}
	f := fault.From(err)
	if f != nil && !f.Ended { // its result is unknown
		l.ends(p.ctx, p.ctx, last.parcel, err)
		p.sent = p.sent[:n]
	}
	trusted := (f == nil || f.Superseded()) && p.ended()
	if p.ctx.Err() != nil {
		return // stop silently; the next process reads the records
	}
	p.settle(trusted)
}

// ended waits for all completions unless something is urgent, and reports whether each succeeded or
// was superseded.
func (p *pipeline) ended() bool {
	if !p.awaits {
		return true
	}
	all := make(chan struct{})
	go func() { p.ending.Wait(); close(all) }()
	for {
		select {
		case <-all:
			for _, w := range p.sent {
				if _, err := w.end(); err != nil && !fault.From(err).Superseded() {
					return false
				}
			}
			return true
		case <-time.After(time.Second):
			if p.urgent() {
				return false
			}
		}
	}
}

func (p *pipeline) urgent() bool { return len(p.lane.those(poolschedule.Urgent, time.Now())) > 0 }

// settle settles each pool by one read. trusted is false if a write failed without detail or its
// result is unknown: then no write counts, and all pools of the load balancer are checked.
func (p *pipeline) settle(trusted bool) {
	l := p.lane
	b, err := p.read()
	if p.ctx.Err() != nil {
		return
	}
	trusted = trusted && b.Provisioning != lb.Failed
	atRest, index, answer := err == nil && !moves(b), l.index(b), behaviour.Answer("")
	if trusted && atRest {
		answer = p.learn(b, index)
	}
	if !trusted || answer == behaviour.SupersedeDiscard {
		l.queue.lookAtOthers(p.keys(), time.Now())
	}
	for _, w := range p.sent {
		at, found := index[w.taken.pool]
		if trusted && atRest && found && w.arrived(b.Pools[at]) {
			w.shows(b.Pools[at])
			l.ends(p.ctx, p.ctx, w.parcel, nil)
			continue
		}
		if err == nil && !atRest && !p.urgent() {
			l.queue.wait(w.taken, time.Time{}, time.Now().Add(l.cfg.Interval))
		}
		p.back(w, fault.From(err))
	}
}

// back requeues a pool not shown as done, for a separate write unless the read was throttled. Its
// etag proves nothing, so a pool that shows less than the record is rewritten.
func (p *pipeline) back(w sentWrite, readFault *fault.Fault) {
	l := p.lane
	named := readFault != nil && !readFault.RetryAt.IsZero()
	if named {
		l.queue.wait(w.taken, readFault.RetryAt, time.Time{})
	}
	l.queue.part(w.taken, !named, w.r.Outcome == poolwrite.Written)
	(&carried{lane: l}).back(w.parcel, false)
}

func (p *pipeline) keys() []lb.PoolKey {
	all := make([]lb.PoolKey, len(p.sent))
	for i, w := range p.sent {
		all[i] = w.taken.pool
	}
	return all
}

// read repeats the read while another client's write is in progress, for up to an interval or until
// something is urgent.
func (p *pipeline) read() (lb.LoadBalancer, error) {
	end, delays := time.Now().Add(p.lane.cfg.Interval), backoff.Doubling{First: time.Second, Max: 10 * time.Second}
	for n := 1; ; n++ {
		b, err := p.lane.readAll(p.within)
		if wait := delays.After(n); err != nil || !moves(b) || time.Now().Add(wait).After(end) || !p.pause(wait) {
			return b, err
		}
	}
}

// pause waits, and reports whether nothing became urgent.
func (p *pipeline) pause(d time.Duration) bool {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if p.urgent() || sleep.For(p.within, time.Second) != nil {
			return false
		}
	}
	return true
}

func (p *pipeline) learn(b lb.LoadBalancer, index map[lb.PoolKey]int) behaviour.Answer {
	var seen []poolwrite.After
	for _, w := range p.sent {
		if at, found := index[w.taken.pool]; found && w.overtaken {
			seen = append(seen, poolwrite.After{Before: w.before, Todo: w.r.Todo, Shown: b.Pools[at]})
		}
	}
	a := poolwrite.Overtaken(seen)
	p.lane.verdicts.Learn(p.ctx, p.lane.id.SubscriptionID, map[wholewrite.Change]behaviour.Answer{wholewrite.Overlapping: a})
	return a
}

func notReady(err error) bool { return errors.Is(err, poolwrite.ErrNotReady) }

// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"fmt"
	"time"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/publicip"
)

// writeDeadline bounds one write of a load balancer. What it leaves behind is settled by
// the next read.
const writeDeadline = 10 * time.Minute

// round makes the next step of the jobs that a queue has gathered: their public IPs first, then
// one write of the load balancer, then what they have left of public IPs. What fails for one of
// them fails for that one.
func (l *loadBalancer) round(ctx context.Context, jobs []*job) {
	jobs = l.refusals.due(ctx, jobs, l.id.Key(), l.report.fail)
	if len(jobs) == 0 {
		return
	}
	ips, jobs := l.prepare(ctx, jobs)
	write := func(ctx context.Context, jobs []*job) (map[*job]error, error) { return l.write(ctx, jobs, ips) }
	level := newSearch(l.refusals, l.id.Key(), write, l.report.fail).among(ctx, jobs)
	ips.Label(ctx, requests(level))
	ips.Remove(ctx, requests(level))
	for _, j := range level {
		if j.ips.Err != nil {
			l.report.fail(ctx, j, j.ips.Err)
			continue
		}
		l.refusals.forget(j)
		j.stepDone(l.contests)
		l.report.next(j)
	}
}

// write plans for these jobs and carries that out, in one write, while no pool of the load
// balancer is written. The jobs of refused are left out. An error is that of all others.
func (l *loadBalancer) write(ctx context.Context, jobs []*job, ips *publicip.Round) (refused map[*job]error, err error) {
	unlock, err := l.cfg.Lanes.Lock(ctx, l.id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := l.gate(ctx); err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, writeDeadline)
	defer cancel()
	failed := contest.Leased(within, l.cfg.Lease, func(valid func() bool) {
		err = contest.Twice(func() (err error) {
			refused, err = l.try(within, jobs, ips, valid)
			return err
		}, l.report.overtaken(resourceBalancer))
	})
	switch {
	case failed != nil:
		return nil, failed
	case err != nil && within.Err() != nil && ctx.Err() == nil:
		err = &fault.Fault{
			Class: fault.Retriable, Code: fault.CodeOutcomeUnknown, Reason: "outcome_unknown", Undecided: true,
			Err: fmt.Errorf("load balancer %s: no end within %s: %w", l.id.Name, writeDeadline, err),
		}
	}
	return refused, err
}

// try reads, plans, writes if there is anything to write, checks what Azure then shows, and notes
// it: on the jobs, and for the Services that are placed next.
func (l *loadBalancer) try(ctx context.Context, jobs []*job, ips *publicip.Round, valid func() bool) (refused map[*job]error, err error) {
	seen, err := l.read(ctx, jobs, ips)
	if err != nil {
		return nil, err
	}
	p, due := l.plan(jobs, seen)
	refused, served := split(due, p)
	shown := seen.observed
	if !p.Empty() || shown.Provisioning == lb.Failed {
		if !valid() {
			return nil, contest.ErrLeaseLost
		}
		if shown, err = l.carryOut(ctx, seen.observed, p); err != nil {
			return refused, err
		}
		if served, err = l.check(shown, served, seen, p, refused); err != nil {
			return refused, err
		}
	}
	l.log(ctx, p, due)
	l.placements.saw(shown)
	l.noteLeft(jobs, due, shown, ips)
	l.note(served, shown, p, ips)
	return refused, nil
}

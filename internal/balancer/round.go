// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"time"

	"weir.dev/weir/internal/calls"
	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/publicip"
)

// loadBalancer reconciles one load balancer. Not safe for concurrent use.
type loadBalancer struct {
	*Balancers
	id lb.LoadBalancerID
}

func (l *loadBalancer) name() string { return "load balancer " + l.id.Name }

// round processes the next step of the gathered jobs: public IPs, one write of the load balancer, then cleanup
// of public IPs. A failure affects only its job. Jobs that would remove a published frontend unpublish it
// first.
func (l *loadBalancer) round(ctx context.Context, jobs []*job) {
	ctx = calls.For(ctx, causes(jobs)...)
	ips, jobs := l.prepare(ctx, l.rejectExceeding(ctx, jobs))
	inSync := l.among(ctx, jobs, func(ctx context.Context, jobs []*job) error {
		return l.write(ctx, jobs, ips)
	})
	inSync = l.apart(inSync)
	ips.Label(ctx, requests(inSync))
	ips.Remove(ctx, requests(inSync))
	for _, j := range l.sift(ctx, inSync, l.unprovided) {
		j.Unused = ips.Unused(j.ips)
		j.stepDone(&l.contests)
		l.next(j)
	}
}

// prepare updates the jobs' public IPs and returns the jobs that have theirs. A write that met 412 is retried
// once.
func (l *loadBalancer) prepare(ctx context.Context, jobs []*job) (*publicip.Round, []*job) {
	ips := l.publicIPs(ctx, jobs)
	if publicip.Overtaken(requests(jobs)) {
		ips = l.publicIPs(ctx, jobs)
		l.overtaken(resourcePublicIP)(!publicip.Overtaken(requests(jobs)))
	}
	return ips, l.sift(ctx, jobs, l.unprovided)
}

func (l *loadBalancer) publicIPs(ctx context.Context, jobs []*job) *publicip.Round {
	ctx, cancel := context.WithTimeout(ctx, publicip.Deadline)
	defer cancel()
	for _, j := range jobs {
		j.ips.Leaves = j.leaves()
	}
	ips := l.ips.Begin(ctx, l.id, requests(jobs))
	for _, j := range jobs {
		if j.ips.Leaves && !j.leaves() {
			j.steps = append([]step{{on: l.id, leaves: true}}, j.steps...)
		}
		j.ips.Moves = j.moves()
	}
	l.endLosing(ctx, jobs, ips)
	ips.Write(ctx)
	return ips
}

// write reconciles the load balancer for these jobs in one write, with its pools locked. Rejected jobs are left
// out; the error applies to all others.
func (l *loadBalancer) write(ctx context.Context, jobs []*job, ips *publicip.Round) error {
	l.loadPrivateIPs(ctx, jobs)
	unlock, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return contest.Write(ctx, l.cfg.Lease, l.name(), l.overtaken(ResourceLoadBalancer), func(ctx context.Context, valid func() bool) error {
		return l.try(ctx, jobs, ips, valid)
	})
}

// try reads, plans, writes if needed, checks the result, and records it on the jobs and in the placements.
func (l *loadBalancer) try(ctx context.Context, jobs []*job, ips *publicip.Round, valid func() bool) error {
	for _, j := range jobs {
		j.refused, j.clears = nil, nil // by an earlier try
	}
	snap, err := l.read(ctx, jobs, ips)
	if err != nil {
		return err
	}
	p, due, err := l.plan(ctx, jobs, snap)
	if err != nil {
		return err
	}
	observed, writes := snap.observed, !p.Empty() || snap.observed.Provisioning == lb.Failed
	served := split(due, p)
	if writes {
		if remaining := l.reserve(ctx, jobs, served, snap); len(remaining) < len(jobs) {
			if len(remaining) == 0 {
				return nil
			}
			return l.try(ctx, remaining, ips, valid)
		}
		if l.cfg.Interfaces && !l.placements.machines.Claim(snap.observed, p.Next) {
			return l.try(ctx, jobs, ips, valid)
		}
		if !valid() {
			return contest.ErrLeaseLost
		}
		observed, err = l.carryOut(ctx, snap.observed, p)
		if remaining := l.unforeseen(ctx, jobs, p, snap, err); len(remaining) < len(jobs) {
			if len(remaining) == 0 {
				return nil
			}
			return l.try(ctx, remaining, ips, valid)
		}
	}
	if err == nil && writes {
		served, err = l.check(observed, served, snap, p)
	}
	if err == nil {
		served = noteLeft(ctx, l, served, p, observed)
		l.settle(ctx, outcome{p, jobs, due, served, observed, ips})
		l.privateIPs.Note(ctx, l.id.Name, l.usersOf(observed), time.Now())
		if snap.observed.Etag == "" && observed.Etag != "" && l.cfg.Made != nil {
			l.cfg.Made(l.id)
		}
	}
	return err
}

func (l *loadBalancer) carryOut(ctx context.Context, observed lb.LoadBalancer, p plan.Plan) (lb.LoadBalancer, error) {
	if p.Delete {
		return lb.LoadBalancer{ID: l.id}, l.cfg.Azure.DeleteLoadBalancer(ctx, observed)
	}
	next := p.Next
	pools, settled := l.cfg.Lanes.Carry(ctx, l.id, next.Pools)
	next.Pools = pools
	shown, err := l.cfg.Azure.PutLoadBalancer(ctx, next)
	if f := fault.From(err); f != nil { // even a failed operation may have created pools
		settled(nil, f.Undecided || f.Ended || ctx.Err() != nil)
		if !f.Undecided {
			l.placements.machines.Saw(observed) // release the claim
		}
	} else {
		settled(shown.Pools, false)
	}
	return shown, err
}

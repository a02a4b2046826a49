// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/requestlog"
)

// loadBalancer reconciles one load balancer. Not safe for concurrent use.
type loadBalancer struct {
	*LoadBalancers
	id lb.LoadBalancerID
	// hasLoadedZones is set if the present write comes after a read of the zones.
	hasLoadedZones bool
}

func (l *loadBalancer) name() string { return "load balancer " + l.id.Name }

// runRound processes the next step of the gathered jobs: public IPs, one write of the load balancer, then cleanup
// of public IPs. A failure affects only its job. Jobs that would remove a published frontend unpublish it
// first.
func (l *loadBalancer) runRound(ctx context.Context, jobs []*job) {
	ctx = requestlog.WithCauses(ctx, requestCauses(jobs)...)
	ips, jobs := l.preparePublicIPs(ctx, l.rejectOverLimit(ctx, jobs))
	inSync := l.writeBisecting(ctx, jobs, func(ctx context.Context, jobs []*job) error {
		return l.writeServices(ctx, jobs, ips)
	})
	inSync = l.requeueForUnpublish(inSync)
	ips.WriteLabels(ctx, ipRequests(inSync))
	ips.RemoveUnused(ctx, ipRequests(inSync))
	for _, j := range l.failUnready(ctx, inSync, l.checkPublicIPs) {
		j.Unused = ips.UnusedIPs(j.ipRequest)
		j.completeStep(&l.conflicts)
		l.enqueueNext(j)
	}
}

// preparePublicIPs updates the jobs' public IPs and returns the jobs that have theirs. A write that met 412 is retried
// once.
func (l *loadBalancer) preparePublicIPs(ctx context.Context, jobs []*job) (*publicip.Round, []*job) {
	ips := l.updatePublicIPs(ctx, jobs)
	if publicip.IsConflict(ipRequests(jobs)) {
		ips = l.updatePublicIPs(ctx, jobs)
		l.conflictCounter(resourcePublicIP)(!publicip.IsConflict(ipRequests(jobs)))
	}
	return ips, l.failUnready(ctx, jobs, l.checkPublicIPs)
}

func (l *loadBalancer) updatePublicIPs(ctx context.Context, jobs []*job) *publicip.Round {
	ctx, cancel := context.WithTimeout(ctx, publicip.Timeout)
	defer cancel()
	for _, j := range jobs {
		j.ipRequest.IsLeaving = j.isLeaving()
	}
	ips := l.publicIPManager.BeginRound(ctx, l.id, ipRequests(jobs))
	for _, j := range jobs {
		if j.ipRequest.IsLeaving && !j.isLeaving() {
			j.steps = append([]step{{on: l.id, remove: true}}, j.steps...)
		}
		j.ipRequest.IsMoving = j.hasNextLoadBalancer()
	}
	l.rejectAddressLoss(ctx, jobs, ips)
	ips.WriteRequired(ctx)
	return ips
}

// writeServices reconciles the load balancer for these jobs in one write, with its pools locked. Rejected jobs are left
// out; the error applies to all others.
func (l *loadBalancer) writeServices(ctx context.Context, jobs []*job, ips *publicip.Round) error {
	l.loadPrivateIPs(ctx, jobs)
	l.hasLoadedZones = false
	err := l.writeLocked(ctx, jobs, ips)
	if errors.Is(err, errZonesUnread) {
		if err := l.cfg.Zones.Load(ctx); err != nil {
			return err
		}
		l.hasLoadedZones = true
		err = l.writeLocked(ctx, jobs, ips)
	}
	return err
}

func (l *loadBalancer) writeLocked(ctx context.Context, jobs []*job, ips *publicip.Round) error {
	unlock, err := l.lockForWrite(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return conflict.RunWrite(ctx, l.cfg.Lease, l.name(), l.conflictCounter(ResourceLoadBalancer), func(ctx context.Context, valid func() bool) error {
		return l.tryWrite(ctx, jobs, ips, valid)
	})
}

// tryWrite reads, plans, writes if needed, checks the result, and records it on the jobs and in the placements.
func (l *loadBalancer) tryWrite(ctx context.Context, jobs []*job, ips *publicip.Round, valid func() bool) error {
	for _, j := range jobs {
		j.rejection, j.toUnpublish = nil, nil // by an earlier try
	}
	snap, err := l.readSnapshot(ctx, jobs, ips)
	if err != nil {
		return err
	}
	p, due, err := l.buildPlan(ctx, jobs, snap)
	if err != nil {
		return err
	}
	observed, writes := snap.observed, !p.IsEmpty() || snap.observed.Provisioning == lb.Failed
	served := splitRejected(due, p)
	if writes {
		if remaining := l.reserveAddresses(ctx, jobs, served, snap); len(remaining) < len(jobs) {
			if len(remaining) == 0 {
				return nil
			}
			return l.tryWrite(ctx, remaining, ips, valid)
		}
		if snap.interfaces && !l.cache.machines.ClaimRules(snap.observed, p.Next) {
			return l.tryWrite(ctx, jobs, ips, valid)
		}
		if !valid() {
			return conflict.ErrLeaseExpired
		}
		observed, err = l.applyPlan(ctx, snap.observed, p)
		if remaining := l.deferUnrecorded(ctx, jobs, p, snap, err); len(remaining) < len(jobs) {
			if len(remaining) == 0 {
				return nil
			}
			return l.tryWrite(ctx, remaining, ips, valid)
		}
	}
	if err == nil && writes {
		served, err = l.checkResult(observed, served, snap, p)
	}
	if err == nil {
		served = recordLeftPools(ctx, l, served, p, observed)
		l.recordOutcome(ctx, tryResult{p, jobs, due, served, observed, ips})
		l.privateIPs.RecordUsers(ctx, l.id.Name, l.usersOf(observed), time.Now())
		if snap.observed.Etag == "" && observed.Etag != "" && l.cfg.OnRecreated != nil {
			l.cfg.OnRecreated(l.id)
		}
	}
	return err
}

func (l *loadBalancer) applyPlan(ctx context.Context, observed lb.LoadBalancer, p plan.Plan) (lb.LoadBalancer, error) {
	if p.Delete {
		return lb.LoadBalancer{ID: l.id}, l.cfg.Azure.DeleteLoadBalancer(ctx, observed)
	}
	next := p.Next
	pools, settled := l.cfg.Workers.StagePools(l.id, next.Pools)
	next.Pools = pools
	shown, err := l.cfg.Azure.PutLoadBalancer(ctx, next)
	if f := armerror.FromError(err); f != nil { // even a failed operation may have created pools
		settled(nil, f.MayBeApplied || f.OperationFailed || ctx.Err() != nil)
		if !f.MayBeApplied {
			l.cache.machines.RecordState(observed) // release the claim
		}
	} else {
		settled(shown.Pools, false)
	}
	return shown, err
}

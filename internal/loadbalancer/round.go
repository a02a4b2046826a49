// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/requestlog"
)

// maxSearchWrites limits the writes of one search for rejected namespaces: twice the depth of a bisection of 100
// jobs, plus room for a second search.
const maxSearchWrites = 24

// writeFunc writes some jobs. A job that the plan rejects carries its own error; the returned error applies to all
// others.
type writeFunc func(ctx context.Context, jobs []*job) error

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
	inSync := l.bisectJobs(ctx, jobs, new(maxSearchWrites), func(ctx context.Context, jobs []*job) error {
		return l.writeServices(ctx, jobs, ips)
	})
	inSync = slices.DeleteFunc(inSync, func(j *job) bool {
		if len(j.toUnpublish) == 0 {
			return false
		}
		j.steps, j.toUnpublish = append([]step{{on: l.id, unpublish: j.toUnpublish}}, j.steps...), nil
		l.enqueueNext(j)
		return true
	})
	ips.FinishServices(ctx, ipRequests(inSync))
	for _, j := range l.failUnready(ctx, inSync, l.checkPublicIPs) {
		j.Unused = ips.UnusedIPs(j.ipRequest)
		j.completeStep(&l.conflicts)
		l.enqueueNext(j)
	}
}

// bisectJobs writes the jobs, in at most maxWrites writes, and returns those in sync. The others failed or were requeued.
// If Azure rejects the write, it writes each half of the namespaces. It does not bisect within a namespace: those jobs
// are requeued, so that they delay no other namespace.
func (b *LoadBalancers) bisectJobs(ctx context.Context, jobs []*job, maxWrites *int, write writeFunc) (inSync []*job) {
	if len(jobs) == 0 || ctx.Err() != nil {
		return nil
	}
	if *maxWrites == 0 {
		for _, j := range jobs {
			b.enqueueNext(j)
		}
		return nil
	}
	*maxWrites--
	for _, j := range jobs {
		j.rejection = nil
	}
	err := write(requestlog.WithCauses(ctx, requestCauses(jobs)...), jobs)
	jobs = b.failUnready(ctx, jobs, func(j *job) error { return j.rejection })
	if len(jobs) == 0 {
		return nil
	}
	if err == nil {
		b.rejections.CountAcceptedWrite(jobs[0].namespace())
		return jobs
	}
	jobs = slices.SortedStableFunc(slices.Values(jobs), func(a, b *job) int { return strings.Compare(a.namespace(), b.namespace()) })
	half := namespaceBoundary(jobs)
	switch {
	case !isRequestError(err, time.Now()) || ctx.Err() != nil:
		return b.failUnready(ctx, jobs, func(j *job) error { b.recordJobRejection(j, err); return err })
	case half > 0:
		return append(b.bisectJobs(ctx, jobs[:half], maxWrites, write), b.bisectJobs(ctx, jobs[half:], maxWrites, write)...)
	case len(jobs) == 1:
		b.recordJobRejection(jobs[0], err)
		return b.failUnready(ctx, jobs, func(*job) error { return err })
	}
	b.rejections.CountRejectedWrite(jobs[0].namespace(), len(jobs), time.Now())
	for _, j := range jobs {
		b.enqueueNext(j)
	}
	return nil
}

// namespaceBoundary returns the namespace boundary closest to the middle of the sorted jobs; 0 if there is one namespace.
func namespaceBoundary(jobs []*job) int {
	best := 0
	for i := 1; i < len(jobs); i++ {
		if jobs[i].namespace() != jobs[i-1].namespace() && (best == 0 || max(i, len(jobs)-i) < max(best, len(jobs)-best)) {
			best = i
		}
	}
	return best
}

// preparePublicIPs updates the jobs' public IPs and returns the jobs that have theirs. A write that met 412 is retried
// once.
func (l *loadBalancer) preparePublicIPs(ctx context.Context, jobs []*job) (ips *publicip.Round, ready []*job) {
	for retry := range 2 {
		within, cancel := context.WithTimeout(ctx, publicip.Timeout)
		for _, j := range jobs {
			j.ipRequest.IsLeaving = j.isLeaving()
		}
		ips = l.publicIPManager.BeginRound(within, l.id, ipRequests(jobs))
		for _, j := range jobs {
			if j.ipRequest.IsLeaving && !j.isLeaving() {
				j.steps = append([]step{{on: l.id, remove: true}}, j.steps...)
			}
			j.ipRequest.IsMoving = j.KeepFormer || j.hasNextLoadBalancer()
		}
		l.rejectAddressLoss(within, jobs, ips)
		ips.WriteRequired(within)
		cancel()
		met412 := publicip.IsConflict(ipRequests(jobs))
		if retry > 0 {
			l.conflictCounter(resourcePublicIP)(!met412)
		}
		if !met412 {
			break
		}
	}
	return ips, l.failUnready(ctx, jobs, l.checkPublicIPs)
}

// writeServices reconciles the load balancer for these jobs in one write, with its pools locked. Rejected jobs are left
// out; the error applies to all others.
func (l *loadBalancer) writeServices(ctx context.Context, jobs []*job, ips *publicip.Round) error {
	l.loadPrivateIPs(ctx, jobs)
	l.hasLoadedZones = false
	write := func(ctx context.Context, valid func() bool) error { return l.tryWrite(ctx, jobs, ips, valid) }
	err := l.runLocked(ctx, write)
	if errors.Is(err, errZonesUnread) {
		if err := l.cfg.Zones.Load(ctx); err != nil {
			return err
		}
		l.hasLoadedZones = true
		err = l.runLocked(ctx, write)
	}
	return err
}

// runLocked runs a write under the lease, with the pools of the load balancer locked.
func (l *loadBalancer) runLocked(ctx context.Context, write func(ctx context.Context, valid func() bool) error) error {
	unlock, err := l.lockForWrite(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return conflict.RunWrite(ctx, l.cfg.Lease, l.name(), l.conflictCounter(ResourceLoadBalancer), write)
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
		return l.deleteLoadBalancer(ctx, observed)
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

// deleteLoadBalancer deletes the load balancer, and reads it again: Azure may report a deletion as successful and keep
// the resource.
func (l *loadBalancer) deleteLoadBalancer(ctx context.Context, observed lb.LoadBalancer) (lb.LoadBalancer, error) {
	gone := lb.LoadBalancer{ID: l.id}
	if err := l.cfg.Azure.DeleteLoadBalancer(ctx, observed); err != nil {
		return gone, err
	}
	now, err := l.cfg.Azure.GetLoadBalancer(ctx, l.id)
	switch f := armerror.FromError(err); {
	case f != nil && f.Class == armerror.Stale, err == nil && now.Provisioning == lb.Updating: // Updating includes Deleting
		return gone, nil
	case err != nil:
		return gone, err
	}
	return gone, &armerror.Fault{
		Class: armerror.Retriable, Code: armerror.CodeOutcomeUnknown, Reason: "outcome_unknown",
		Err: fmt.Errorf("%s: Azure reported its deletion as successful, and still has it", l.name()),
	}
}

// privateLinks manages the Private Link Services of a load balancer. Not safe for concurrent use.
type privateLinks struct {
	*LoadBalancers
	id lb.LoadBalancerID
}

// runRound processes removals first.
func (p *privateLinks) runRound(ctx context.Context, jobs []*job) {
	ctx = requestlog.WithCauses(ctx, requestCauses(jobs)...)
	clears := slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return len(j.steps[0].unpublish) == 0 })
	synced := slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return len(j.steps[0].unpublish) > 0 })
	p.unpublishFrontends(ctx, clears)
	if len(synced) > 0 {
		p.links.Reconcile(ctx, p.observedState(), linkRequests(synced))
	}
	for _, j := range jobs {
		if j.link.Err != nil {
			p.recordJobRejection(j, j.link.Err)
		}
	}
	for _, j := range p.failUnready(ctx, jobs, (*job).checkUnpublished) {
		if j.link.HasMore && j.link.Err == nil { // behind jobs queued since
			p.enqueueNext(j)
			continue
		}
		j.unpublishDone = len(j.steps[0].unpublish) > 0
		j.steps, j.started = j.steps[1:], true
		if j.link.Err == nil {
			j.addConflicts(p.conflicts.RecordMatch(conflict.PrivateLinks, j.Service))
		}
		p.enqueueNext(j)
	}
}

// securityGroup writes the security group. Its round is the only writer and does not block load balancers. Not safe for
// concurrent use.
type securityGroup struct{ *LoadBalancers }

func (g *securityGroup) runRound(ctx context.Context, jobs []*job) {
	// Sort: priorities must not depend on the order in which load balancers finish.
	slices.SortStableFunc(jobs, func(a, b *job) int { return strings.Compare(a.Service, b.Service) })
	jobs = g.readExisting(ctx, jobs)
	inSync := g.bisectJobs(ctx, jobs, new(maxSearchWrites), func(ctx context.Context, jobs []*job) error {
		demands := g.groupRequests(jobs)
		err := g.group.WriteRules(ctx, demands, logFor(g.cfg.Log, "securityGroup", g.cfg.SecurityGroup.Name, jobs))
		recordGroupResults(jobs, demands)
		return err
	})
	for _, j := range g.failUnready(ctx, inSync, (*job).publicIPError) {
		j.steps, j.started = j.steps[1:], true
		if !j.CloseOnly { // otherwise clients are still admitted at these addresses
			g.formerAddresses.ForgetOwner(j.Owner)
		}
		g.enqueueNext(j)
	}
}

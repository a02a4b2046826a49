// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"sync"
	"time"

	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/ratelimit"
)

// Run processes jobs until ctx is done and returns when no work is in progress. Jobs still waiting are dropped
// without a result.
func (b *LoadBalancers) Run(ctx context.Context) {
	if b.group != nil {
		b.group.RecordInitialNodes()
	}
	var running sync.WaitGroup
	b.mu.Lock()
	b.start = func(run func(context.Context)) { running.Go(func() { run(ctx) }) }
	for _, q := range b.queues {
		b.start(q.run)
	}
	b.mu.Unlock()

	<-ctx.Done()
	b.mu.Lock()
	b.start = nil
	b.mu.Unlock()
	running.Wait()
}

// EnsureLoadBalancer queues a request and returns at once. A Service has one request at a time.
func (b *LoadBalancers) EnsureLoadBalancer(req Request) {
	j := newJob(req, b.group != nil)
	if b.links != nil && !req.CloseOnly {
		j.steps = append(j.steps, j.privateLinkSteps()...)
	}
	b.enqueueNext(j)
}

func (b *LoadBalancers) enqueueNext(j *job) {
	if len(j.steps) == 0 {
		b.reportResult(j, nil)
		return
	}
	if b.cfg.OnPortsReleased != nil {
		if services := b.takeovers.hold(j, func() { b.enqueueHeld(b.takeovers.release(j)) }); len(services) > 0 {
			b.cfg.OnPortsReleased(services)
			return
		}
	}
	b.queueFor(j.steps[0]).addJobs(append(b.takeovers.join(j), j)...)
}

// enqueueHeld queues a job that was held; nil is none.
func (b *LoadBalancers) enqueueHeld(j *job) {
	if j != nil {
		b.queueFor(j.steps[0]).addJobs(j)
	}
}

func (b *LoadBalancers) queueFor(at step) *queue {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[at.queueKey()]
	if q == nil {
		var of resource = &loadBalancer{LoadBalancers: b, id: at.on}
		if at.isPrivateLink() {
			of = &privateLinks{b, at.on}
		}
		q = newQueue(b, of)
		b.queues[at.queueKey()] = q
		if b.start != nil {
			b.start(q.run)
		}
	}
	return q
}

// resource processes steps: a load balancer, its Private Link Services or the security group.
type resource interface {
	runRound(ctx context.Context, jobs []*job)
}

// queue holds the jobs with their next step on one resource.
type queue struct {
	*LoadBalancers
	of    resource
	added chan struct{}
	// spacing is used by the run goroutine only.
	spacing ratelimit.FairLimiter

	mu       sync.Mutex
	waiting  []*job
	cleanups []*cleanupRequest
	// isolateNext is set if the next round serves a namespace that Azure rejected recently.
	isolateNext bool
	// rejectedNamespaces are the namespaces waiting for such a round, in order.
	rejectedNamespaces ratelimit.Rotation
}

func newQueue(b *LoadBalancers, of resource) *queue {
	return &queue{LoadBalancers: b, of: of, added: make(chan struct{}, 1)}
}

func (q *queue) addJobs(jobs ...*job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, jobs...)
	select {
	case q.added <- struct{}{}:
	default:
	}
}

func (q *queue) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-q.added:
			_ = ratelimit.Sleep(ctx, batchWindow)
		case <-ctx.Done():
		}
		for q.waitForTurn(ctx) {
			jobs, release := q.takeBatch(ctx, time.Now())
			wanted := namespaceDemand(jobs) // the round hands the jobs on
			if len(jobs) > 0 {
				q.of.runRound(ctx, jobs)
				q.spacing.RecordChanges(wanted, time.Now())
			}
			release()
			if len(jobs) == 0 {
				break
			}
		}
		q.runCleanups(ctx)
	}
}

// waitForTurn waits until a namespace with waiting jobs may start a round and reports whether there is one.
func (q *queue) waitForTurn(ctx context.Context) bool {
	for ctx.Err() == nil {
		q.mu.Lock()
		waiting := namespaceDemand(q.waiting)
		q.mu.Unlock()
		pending, next := len(waiting) > 0, q.spacing.NextRoundAt(waiting)
		if !pending || !next.After(time.Now()) {
			return pending
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-q.added:
			_ = ratelimit.Sleep(ctx, batchWindow)
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return false
}

func (b *LoadBalancers) reportResult(j *job, err error) {
	if err == nil && j.link.Err == nil {
		b.rejections.ClearRejection(j.rejectionKey())
	}
	if j.Desired == nil && err == nil {
		b.cache.removePlacement(j.Service)
		b.conflicts.RemoveService(j.Service, conflict.LoadBalancer, conflict.PublicIPs, conflict.SecurityGroup, conflict.PrivateLinks)
	}
	b.takeovers.recordResult(j, err)
	b.cfg.OnResult(j.buildResult(err))
}

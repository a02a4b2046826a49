// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/privatelinkround"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/securitygroup"
	"weir.dev/weir/internal/sleep"
	"weir.dev/weir/internal/turns"
)

// Balancers bring load balancers level with requests. Its methods may be called from any
// goroutine, at any time.
type Balancers struct {
	cfg        Config
	placements placements
	ips        *publicip.Keeper
	links      *privatelinkround.Keeper // nil without one
	group      *securitygroup.Group     // nil without one
	contests   contest.Contests
	inProgress contest.InProgress
	// refusals are those of load balancers.
	refusals refusals
	// former are addresses that the security group may still know; nil without one.
	former *former

	mu     sync.Mutex        // guards what follows
	queues map[string]*queue // by the key of a step
	// start runs a queue in the background; nil before Run and after it.
	start func(*queue)
}

// New returns Balancers that take requests at once and work on them during Run.
func New(cfg Config) *Balancers {
	b := &Balancers{cfg: cfg, queues: map[string]*queue{}}
	b.placements.reading = make(chan struct{}, 1)
	b.ips = publicip.New(publicip.Config{
		Azure: cfg.Azure, Lease: cfg.Lease, Contests: &b.contests, InProgress: &b.inProgress, Log: cfg.Log,
		ClusterName: cfg.ClusterName, Group: cfg.PublicIPs, Location: cfg.Location, LoadBalancers: cfg.ids(),
	})
	b.links = b.newLinks()
	if cfg.SecurityGroup.Name != "" {
		b.group = securitygroup.New(securitygroup.Config{
			ID: cfg.SecurityGroup, Azure: cfg.Azure, Cluster: cfg.Cluster, Lease: cfg.Lease, Contests: &b.contests,
			InProgress: &b.inProgress, Overtaken: b.overtaken(resourceSecurityGroup), RequireEffective: cfg.RequireEffectiveRestrictions,
		})
		b.former = &former{}
		b.queues[step{secures: true}.key()] = newQueue(&guard{Balancers: b})
	}
	return b
}

// Run works until the context is done, and returns when nothing is in progress any more.
// What still waits then is dropped without a word.
func (b *Balancers) Run(ctx context.Context) {
	if b.group != nil {
		b.group.Begin()
	}
	var running sync.WaitGroup
	b.mu.Lock()
	b.start = func(q *queue) { running.Go(func() { q.run(ctx) }) }
	for _, q := range b.queues {
		b.start(q)
	}
	b.mu.Unlock()

	<-ctx.Done()
	b.mu.Lock()
	b.start = nil
	b.mu.Unlock()
	running.Wait()
}

// Ensure queues a request. It waits for nothing; Done hears what came of it. A Service
// has one request at a time.
func (b *Balancers) Ensure(req Request) {
	j := newJob(req, b.group != nil)
	if b.links != nil {
		j.steps = append(j.steps, j.publishing()...)
	}
	b.next(j)
}

// next hands a job to the queue of its next step, or ends it.
func (b *Balancers) next(j *job) {
	if len(j.steps) == 0 {
		b.done(j, nil)
	} else {
		b.queue(j.steps[0]).add(j)
	}
}

// queue is that of a step's resource.
func (b *Balancers) queue(at step) *queue {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[at.key()]
	if q == nil {
		var of resource = &loadBalancer{b, at.on}
		if at.links() {
			of = &published{b, at.on}
		}
		q = newQueue(of)
		b.queues[at.key()] = q
		if b.start != nil {
			b.start(q)
		}
	}
	return q
}

// sift ends the jobs that something keeps from their step, and returns the others.
func (b *Balancers) sift(ctx context.Context, jobs []*job, why func(*job) error) []*job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool {
		err := why(j)
		if err != nil && ctx.Err() == nil { // what the end of the process stopped is dropped without a word
			b.done(j, err)
		}
		return err != nil
	})
}

// done tells what came of a job.
func (b *Balancers) done(j *job, err error) {
	if j.Desired == nil && err == nil {
		b.placements.remove(j.Service)
		b.contests.Forget(j.Service, contest.LoadBalancer, contest.PublicIPs, contest.SecurityGroup, contest.PrivateLinks)
	}
	b.cfg.Done(j.result(err))
}

// What a round writes. These are labels of a metric.
const (
	// ResourceLoadBalancer is that of the load balancer itself.
	ResourceLoadBalancer  = "load balancer"
	resourcePublicIP      = "public IP"
	resourceSecurityGroup = "security group"
	resourcePrivateLink   = "private link service"
)

// overtaken counts writes of a resource that were tried twice.
func (b *Balancers) overtaken(resource string) func(settled bool) {
	return func(settled bool) {
		if b.cfg.Overtaken != nil {
			b.cfg.Overtaken(resource, settled)
		}
	}
}

const (
	// gathers is how long a resource waits for more Services after the first one, so
	// that those that appear together are written together.
	gathers = 250 * time.Millisecond
	// mostAtOnce bounds the Services of one round: the first of a thousand need not wait for
	// the public IPs of all.
	mostAtOnce = 100
)

// resource is what the next steps of jobs are on: a load balancer, or the security group.
type resource interface {
	// round makes the next step of some jobs.
	round(ctx context.Context, jobs []*job)
}

// queue holds the jobs whose next step is on one resource.
type queue struct {
	of    resource
	added chan struct{}

	// spacing belongs to the goroutine that runs.
	spacing turns.Spacing

	mu      sync.Mutex
	waiting []*job
}

func newQueue(of resource) *queue {
	return &queue{of: of, added: make(chan struct{}, 1)}
}

func (q *queue) add(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, j)
	select {
	case q.added <- struct{}{}:
	default:
	}
}

// take returns the oldest jobs, of each namespace in turn. Whoever added them has been heard: a
// signal that is left over would have the next Service gather no company.
func (q *queue) take() []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-q.added:
	default:
	}
	var taken []*job
	taken, q.waiting = turns.Deal(q.waiting, (*job).namespace, mostAtOnce)
	return slices.Clone(taken)
}

// run works on what waits until the context is done.
func (q *queue) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-q.added:
			_ = sleep.For(ctx, gathers)
		case <-ctx.Done():
		}
		for q.pause(ctx) {
			jobs := q.take()
			wanted := changes(jobs) // after the round the jobs belong to others
			q.of.round(ctx, jobs)
			q.spacing.Add(wanted, time.Now())
		}
	}
}

// pause waits until a namespace with a waiting job may cause a round, and reports whether there is one.
func (q *queue) pause(ctx context.Context) bool {
	for ctx.Err() == nil {
		q.mu.Lock()
		waiting := changes(q.waiting)
		q.mu.Unlock()
		waits, next := len(waiting) > 0, q.spacing.NextAt(waiting)
		if !waits || !next.After(time.Now()) {
			return waits
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-q.added:
			_ = sleep.For(ctx, gathers)
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return false
}

// changes are what the jobs' namespaces want.
func changes(jobs []*job) []turns.Change {
	all := make([]turns.Change, len(jobs))
	for i, j := range jobs {
		all[i] = turns.Change{Namespace: j.namespace(), Object: j.Service, Wants: j.Desired}
	}
	return all
}

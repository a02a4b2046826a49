// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/leftpool"
	"weir.dev/weir/internal/pace"
	"weir.dev/weir/internal/privateip"
	"weir.dev/weir/internal/privatelinkround"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/securitygroup"
)

// Balancers bring load balancers level with requests. Its methods may be called from any
// goroutine, at any time.
type Balancers struct {
	cfg        Config
	placements placements
	ips        *publicip.Keeper
	privateIPs *privateip.Keeper
	left       *leftpool.Keeper
	links      *privatelinkround.Keeper // nil without one
	group      *securitygroup.Group     // nil without one
	contests   contest.Contests
	inProgress contest.InProgress
	unneeded   unneeded
	// rejections are what Azure rejected of Services, by name, and of which namespaces.
	rejections pace.Rejections
	// former are addresses that the security group may still know; nil without one.
	former *securitygroup.Former

	mu     sync.Mutex        // guards what follows
	queues map[string]*queue // by the key of a step
	// start runs a queue in the background; nil before Run and after it.
	start func(*queue)
}

// New returns Balancers that take requests at once and work on them during Run.
func New(cfg Config) *Balancers {
	b := &Balancers{cfg: cfg, queues: map[string]*queue{}}
	b.placements.reading = make(chan struct{}, 1)
	b.left = leftpool.New(cfg.LeftPools)
	b.ips = publicip.New(publicip.Config{
		Azure: cfg.Azure, Lease: cfg.Lease, Contests: &b.contests, InProgress: &b.inProgress, Log: cfg.Log,
		ClusterName: cfg.ClusterName, Group: cfg.PublicIPs, Location: cfg.Location, LoadBalancers: cfg.ids(),
		Owners: cfg.Owners, Grants: func(namespace string) string { return cfg.Cluster.AllowedPublicIPs(namespace) },
		Services: func() func(string) string { return serviceOf(cfg.Cluster) }, RulesAt: b.placements.rulesAt, Look: b.look,
	})
	b.privateIPs = newPrivateIPs(cfg)
	b.links = b.newLinks()
	if cfg.SecurityGroup.Name != "" {
		b.group = securitygroup.New(securitygroup.Config{
			ID: cfg.SecurityGroup, Azure: cfg.Azure, Cluster: cfg.Cluster, Lease: cfg.Lease, Contests: &b.contests,
			InProgress: &b.inProgress, Overtaken: b.overtaken(resourceSecurityGroup), RequireEffective: cfg.RequireEffectiveRestrictions,
		})
		b.former = &securitygroup.Former{}
		b.queues[step{secures: true}.key()] = newQueue(b, &guard{b})
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
	if b.links != nil && !req.Closes {
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
		q = newQueue(b, of)
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
	if err == nil && j.link.Err == nil {
		b.rejections.Accept(j.wish())
	}
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

// LeftToOthers reports whether Weir made a pool for a Service, and left it to the addresses of others.
func (b *Balancers) LeftToOthers(pool lb.PoolKey) bool { return b.left.Has(pool) }

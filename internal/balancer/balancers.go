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

// Balancers reconciles load balancers with requests. Its methods are safe for concurrent use.
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
	// rejections counts what Azure rejected, per Service and namespace.
	rejections pace.Rejections
	// former holds addresses that the security group may still allow; nil without a group.
	former *securitygroup.Former

	mu     sync.Mutex        // guards the fields below
	queues map[string]*queue // by step key
	// start runs a queue in the background; nil outside Run.
	start func(*queue)
}

// New returns a reconciler that accepts requests at once and processes them during Run.
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

// Run processes jobs until ctx is done and returns when no work is in progress. Jobs still waiting are dropped
// without a result.
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

// Ensure queues a request and returns at once. A Service has one request at a time.
func (b *Balancers) Ensure(req Request) {
	j := newJob(req, b.group != nil)
	if b.links != nil && !req.Closes {
		j.steps = append(j.steps, j.publishing()...)
	}
	b.next(j)
}

func (b *Balancers) next(j *job) {
	if len(j.steps) == 0 {
		b.done(j, nil)
	} else {
		b.queue(j.steps[0]).add(j)
	}
}

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

func (b *Balancers) sift(ctx context.Context, jobs []*job, check func(*job) error) []*job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool {
		err := check(j)
		if err != nil && ctx.Err() == nil { // jobs interrupted by shutdown get no result
			b.done(j, err)
		}
		return err != nil
	})
}

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

// Resources that a round writes; values of a metric label.
const (
	// ResourceLoadBalancer is the load balancer itself.
	ResourceLoadBalancer  = "load balancer"
	resourcePublicIP      = "public IP"
	resourceSecurityGroup = "security group"
	resourcePrivateLink   = "private link service"
)

// overtaken returns a function that counts writes of a resource that needed a second attempt.
func (b *Balancers) overtaken(resource string) func(settled bool) {
	return func(settled bool) {
		if b.cfg.Overtaken != nil {
			b.cfg.Overtaken(resource, settled)
		}
	}
}

const (
	// gathers is how long a queue waits for more Services before a round, so that they share a write.
	gathers = 250 * time.Millisecond
	// mostAtOnce limits the Services per round: the first of a thousand must not wait for the public IPs of
	// all.
	mostAtOnce = 100
)

// resource processes steps: a load balancer, its Private Link Services or the security group.
type resource interface {
	round(ctx context.Context, jobs []*job)
}

// LeftToOthers reports whether Weir made the pool for a Service and left it because it holds foreign addresses.
func (b *Balancers) LeftToOthers(pool lb.PoolKey) bool { return b.left.Has(pool) }

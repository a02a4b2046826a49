// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"slices"
	"sync"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/loadbalancer/securitygroup"
	"weir.dev/weir/internal/ratelimit"
)

// LoadBalancers reconciles load balancers with requests. Its methods are safe for concurrent use.
type LoadBalancers struct {
	cfg             Config
	cache           stateCache
	publicIPManager *publicip.Manager
	privateIPs      *PrivateIPManager
	leftPools       *LeftPoolTracker
	links           *privatelink.Reconciler // nil without one
	group           *securitygroup.Group    // nil without one
	conflicts       conflict.Conflicts
	inProgress      conflict.InProgress
	cleanup         cleanupState
	takeovers       takeovers
	// rejections counts what Azure rejected, per Service and namespace.
	rejections ratelimit.Rejections
	// formerAddresses holds addresses that the security group may still allow; nil without a group.
	formerAddresses *securitygroup.FormerAddresses

	mu     sync.Mutex        // guards the fields below
	queues map[string]*queue // by step key
	// start runs a queue in the background; nil outside Run.
	start func(run func(context.Context))
}

// New returns a reconciler that accepts requests at once and processes them during Run.
func New(cfg Config) *LoadBalancers {
	b := &LoadBalancers{cfg: cfg, queues: map[string]*queue{}}
	b.cache.listLock, b.cache.settings, b.cache.onHealthPorts = make(chan struct{}, 1), cfg.Settings.Settings, cfg.OnHealthPorts
	b.leftPools = NewLeftPoolTracker(cfg.LeftPools)
	b.publicIPManager = publicip.New(publicip.Config{
		Azure: cfg.Azure, Lease: cfg.Lease, Conflicts: &b.conflicts, InProgress: &b.inProgress, Log: cfg.Log,
		ClusterName: cfg.ClusterName, Group: cfg.PublicIPs, Location: cfg.Location, EdgeZoneOf: b.edgeZoneOf, Zones: cfg.Zones, DefaultZones: cfg.DefaultZones, LoadBalancers: cfg.loadBalancerIDs(),
		Owners: cfg.Owners, Groups: cfg.PublicIPGroups, GrantsOf: func(namespace string) string { return cfg.Cluster.AllowedPublicIPs(namespace) },
		Services: func() func(string) string { return serviceOf(cfg.Cluster) }, RulesAt: b.cache.rulesAt, ReadRules: b.ensureState,
	})
	b.privateIPs = newPrivateIPs(cfg)
	b.links = b.newLinks()
	if cfg.SecurityGroup.Name != "" {
		b.group = securitygroup.New(securitygroup.Config{
			ID: cfg.SecurityGroup, Azure: cfg.Azure, Cluster: cfg.Cluster, Lease: cfg.Lease, Conflicts: &b.conflicts,
			InProgress: &b.inProgress, OnConflict: b.conflictCounter(resourceSecurityGroup), RequireEffective: cfg.RequireEffectiveRestrictions,
		})
		b.formerAddresses = &securitygroup.FormerAddresses{}
		b.queues[step{securityGroup: true}.queueKey()] = newQueue(b, &securityGroup{b})
	}
	return b
}

func (b *LoadBalancers) failUnready(ctx context.Context, jobs []*job, check func(*job) error) []*job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool {
		err := check(j)
		if err != nil && ctx.Err() == nil { // jobs interrupted by shutdown get no result
			b.reportResult(j, err)
		}
		return err != nil
	})
}

// Resources that a round writes; values of a metric label.
const (
	// ResourceLoadBalancer is the load balancer itself.
	ResourceLoadBalancer  = "load balancer"
	resourcePublicIP      = "public IP"
	resourceSecurityGroup = "security group"
	resourcePrivateLink   = "private link service"
)

// conflictCounter returns a function that counts writes of a resource that needed a second attempt.
func (b *LoadBalancers) conflictCounter(resource string) func(settled bool) {
	return func(settled bool) {
		if b.cfg.OnConflict != nil {
			b.cfg.OnConflict(resource, settled)
		}
	}
}

// LeftToOthers reports whether Weir made the pool for a Service and left it because it holds foreign addresses.
func (b *LoadBalancers) LeftToOthers(pool lb.PoolKey) bool { return b.leftPools.HasPool(pool) }

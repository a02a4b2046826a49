// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
)

// A frontend is published after its load balancer was written, and unpublished before it is removed. Private
// Link Services take Azure many seconds, so they have their own rounds: other Services do not wait.

// newLinks returns nil if Private Link Services are disabled.
func (b *LoadBalancers) newLinks() *privatelink.Reconciler {
	if b.cfg.PrivateLinks == nil {
		return nil
	}
	return privatelink.New(privatelink.Config{
		Azure: b.cfg.PrivateLinks, Cluster: b.cfg.Cluster, Lease: b.cfg.Lease, Conflicts: &b.conflicts, InProgress: &b.inProgress,
		OnConflict: b.conflictCounter(resourcePrivateLink), Log: b.cfg.Log, Settings: b.cfg.linkSettings(),
	})
}

func (c *Config) linkSettings() desired.Settings {
	return desired.Settings{
		ClusterName: c.ClusterName, Group: c.Settings.PrivateLinks, InterfacePools: c.Interfaces && c.ConvertsPools, VirtualNetwork: c.VirtualNetwork, Tags: c.Tags,
		PodSubnets: c.PodSubnets, MaxPerLoadBalancer: c.MaxPrivateLinks, CanOpenSubnets: c.CanOpenSubnets,
	}
}

func (p *privateLinks) unpublishFrontends(ctx context.Context, jobs []*job) {
	frontends := map[string][]*privatelink.Request{}
	for _, j := range jobs {
		for _, id := range j.steps[0].unpublish {
			frontends[id] = append(frontends[id], j.link)
		}
	}
	if len(frontends) > 0 {
		p.links.RemovePublishers(ctx, frontends, linkRequests(jobs))
	}
}

func (p *privateLinks) observedState() privatelink.LoadBalancer {
	observed, byAddress := p.cache.latestState(p.id.Name)
	observed.ID = p.id
	return privatelink.LoadBalancer{Observed: observed, HasAddressPools: byAddress || !p.usesInterfaces(p.id.Name)}
}

// checkUnpublished returns why a job cannot continue: a frontend that it releases is still published, or its former
// Private Link Service has another owner.
func (j *job) checkUnpublished() error {
	if s := j.steps[0]; len(s.unpublish) > 0 || j.Desired == nil || s.on.Key() != j.On.Key() {
		return j.link.Err
	}
	return nil
}

func (j *job) privateLinkSteps() []step {
	if !j.link.MayHaveLinks() {
		return nil
	}
	var steps []step
	for _, id := range j.RemoveFrom {
		steps = append(steps, step{on: id, publish: true})
	}
	if j.Desired != nil {
		steps = append(steps, step{on: j.On, publish: true})
	}
	return steps
}

// deferPublished defers jobs that would remove a published frontend and returns the others. Only jobs with a
// recorded Private Link Service are checked.
func (l *loadBalancer) deferPublished(ctx context.Context, due []*job, p plan.Plan, snap snapshot) (remaining []*job) {
	for _, j := range due {
		j.toUnpublish = nil
		if l.links == nil || !j.link.MayHaveLinks() {
			remaining = append(remaining, j)
			continue
		}
		removed := j.removedFrontends(l.id, p, snap.observed)
		if len(removed) > 0 {
			if removed, j.rejection = snap.links.FindPublished(ctx, j.link, removed); j.rejection != nil {
				continue
			}
		}
		if len(removed) == 0 {
			remaining = append(remaining, j)
			continue
		}
		j.deferUntilUnpublished(l.id, removed)
	}
	return remaining
}

func (j *job) deferUntilUnpublished(on lb.LoadBalancerID, frontends []string) {
	if j.unpublishDone {
		j.rejection = mismatchFault(on, len(frontends), "frontend "+frontends[0]+" is published, after that was ended")
		return
	}
	j.toUnpublish = frontends
}

// deferUnrecorded defers jobs that would remove a published frontend without a record of it: the frontend is shared,
// or comes from another controller. It is called only after Azure rejected a write for this reason. It returns
// the other jobs.
func (l *loadBalancer) deferUnrecorded(ctx context.Context, jobs []*job, p plan.Plan, snap snapshot, rejected error) (remaining []*job) {
	if rejected == nil || l.links == nil || !isRequestError(rejected, time.Now()) && !strings.Contains(armerror.FromError(rejected).Code, "InUse") {
		return jobs
	}
	for _, j := range jobs {
		if removed := j.removedFrontends(l.id, p, snap.observed); len(removed) > 0 && !j.link.MayHaveLinks() {
			published, err := snap.links.FindPublished(ctx, j.link, removed)
			if err != nil { // the role may lack the permission: return Azure's error
				return jobs
			}
			if len(published) > 0 {
				j.deferUntilUnpublished(l.id, published)
				continue
			}
		}
		remaining = append(remaining, j)
	}
	return remaining
}

func (j *job) removedFrontends(on lb.LoadBalancerID, p plan.Plan, observed lb.LoadBalancer) []string {
	var frontends []string
	for _, name := range p.UnusedFrontends() {
		hasRule := hasPrefixFold(name, j.Owner) || slices.ContainsFunc(observed.Rules, func(r lb.Rule) bool {
			return strings.EqualFold(r.Frontend, name) && hasPrefixFold(r.Name, j.Owner)
		})
		if hasRule {
			frontends = append(frontends, privatelink.FrontendID(on, name))
		}
	}
	return frontends
}

func linkRequests(jobs []*job) []*privatelink.Request {
	requests := make([]*privatelink.Request, len(jobs))
	for i, j := range jobs {
		requests[i] = j.link
	}
	return requests
}

// CheckLinksReadable returns nil if the Private Link Services of a resource group can be read.
func (b *LoadBalancers) CheckLinksReadable(ctx context.Context, group string) error {
	if b.links == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, placementTimeout)
	defer cancel()
	return b.links.CheckReadable(ctx, group)
}

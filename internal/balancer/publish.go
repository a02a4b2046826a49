// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/calls"
	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/privatelink"
	"weir.dev/weir/internal/privatelinkround"
)

// A frontend is published after its load balancer was written, and unpublished before it is removed. Private
// Link Services take Azure many seconds, so they have their own rounds: other Services do not wait.

// published manages the Private Link Services of a load balancer. Not safe for concurrent use.
type published struct {
	*Balancers
	id lb.LoadBalancerID
}

// newLinks returns nil if Private Link Services are disabled.
func (b *Balancers) newLinks() *privatelinkround.Keeper {
	if b.cfg.PrivateLinks == nil {
		return nil
	}
	return privatelinkround.New(privatelinkround.Config{
		Azure: b.cfg.PrivateLinks, Cluster: b.cfg.Cluster, Lease: b.cfg.Lease, Contests: &b.contests, InProgress: &b.inProgress,
		Overtaken: b.overtaken(resourcePrivateLink), Log: b.cfg.Log, Settings: b.cfg.linkSettings(),
	})
}

func (c *Config) linkSettings() privatelink.Settings {
	return privatelink.Settings{
		ClusterName: c.ClusterName, Group: c.Settings.PrivateLinks, Interfaces: c.Interfaces, VirtualNetwork: c.VirtualNetwork, Tags: c.Tags,
		PodSubnets: c.PodSubnets, MostOnBalancer: c.MostPrivateLinks, OpensSubnets: c.OpensSubnets,
	}
}

// round processes removals first.
func (p *published) round(ctx context.Context, jobs []*job) {
	ctx = calls.For(ctx, causes(jobs)...)
	clears := slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return len(j.steps[0].clears) == 0 })
	levels := slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return len(j.steps[0].clears) > 0 })
	p.clear(ctx, clears)
	if len(levels) > 0 {
		p.links.Level(ctx, p.balancer(), linkRequests(levels))
	}
	for _, j := range jobs {
		if j.link.Err != nil {
			p.rejected(j, j.link.Err)
		}
	}
	for _, j := range p.sift(ctx, jobs, (*job).unpublished) {
		if j.link.More && j.link.Err == nil { // behind jobs queued since
			p.next(j)
			continue
		}
		j.cleared = len(j.steps[0].clears) > 0
		j.steps, j.begun = j.steps[1:], true
		if j.link.Err == nil {
			j.contested(p.contests.Shown(contest.PrivateLinks, j.Service))
		}
		p.next(j)
	}
}

func (p *published) clear(ctx context.Context, jobs []*job) {
	frontends := map[string][]*privatelinkround.Request{}
	for _, j := range jobs {
		for _, id := range j.steps[0].clears {
			frontends[id] = append(frontends[id], j.link)
		}
	}
	if len(frontends) > 0 {
		p.links.Clear(ctx, frontends, linkRequests(jobs))
	}
}

func (p *published) balancer() privatelinkround.Balancer {
	observed, byAddress := p.placements.newest(p.id.Name)
	observed.ID = p.id
	return privatelinkround.Balancer{Shown: observed, ByAddress: byAddress || !p.cfg.Interfaces}
}

// unpublished returns why a job cannot continue: a frontend that it releases is still published, or its former
// Private Link Service has another owner.
func (j *job) unpublished() error {
	if s := j.steps[0]; len(s.clears) > 0 || j.Desired == nil || s.on.Key() != j.On.Key() {
		return j.link.Err
	}
	return nil
}

func (j *job) publishing() []step {
	if !j.link.Concerned() {
		return nil
	}
	var all []step
	for _, id := range j.Leave {
		all = append(all, step{on: id, publishes: true})
	}
	if j.Desired != nil {
		all = append(all, step{on: j.On, publishes: true})
	}
	return all
}

// keepPublished defers jobs that would remove a published frontend and returns the others. Only jobs with a
// recorded Private Link Service are checked.
func (l *loadBalancer) keepPublished(ctx context.Context, due []*job, p plan.Plan, snap snapshot) (remaining []*job) {
	for _, j := range due {
		j.clears = nil
		if l.links == nil || !j.link.Concerned() {
			remaining = append(remaining, j)
			continue
		}
		removed := j.losesFrontends(l.id, p, snap.observed)
		if len(removed) > 0 {
			if removed, j.refused = snap.links.Published(ctx, j.link, removed); j.refused != nil {
				continue
			}
		}
		if len(removed) == 0 {
			remaining = append(remaining, j)
			continue
		}
		j.setAside(l.id, removed)
	}
	return remaining
}

func (j *job) setAside(on lb.LoadBalancerID, frontends []string) {
	if j.cleared {
		j.refused = otherwise(on, len(frontends), "frontend "+frontends[0]+" is published, after that was ended")
		return
	}
	j.clears = frontends
}

// unforeseen defers jobs that would remove a published frontend without a record of it: the frontend is shared,
// or comes from another controller. It is called only after Azure rejected a write for this reason. It returns
// the other jobs.
func (l *loadBalancer) unforeseen(ctx context.Context, jobs []*job, p plan.Plan, snap snapshot, rejected error) (remaining []*job) {
	if rejected == nil || l.links == nil || !culpable(rejected, time.Now()) && !strings.Contains(fault.From(rejected).Code, "InUse") {
		return jobs
	}
	for _, j := range jobs {
		if removed := j.losesFrontends(l.id, p, snap.observed); len(removed) > 0 && !j.link.Concerned() {
			published, err := snap.links.Published(ctx, j.link, removed)
			if err != nil { // the role may lack the permission: return Azure's error
				return jobs
			}
			if len(published) > 0 {
				j.setAside(l.id, published)
				continue
			}
		}
		remaining = append(remaining, j)
	}
	return remaining
}

func (j *job) losesFrontends(on lb.LoadBalancerID, p plan.Plan, observed lb.LoadBalancer) []string {
	var all []string
	for _, name := range p.Unused() {
		has := hasPrefixFold(name, j.Owner) || slices.ContainsFunc(observed.Rules, func(r lb.Rule) bool {
			return strings.EqualFold(r.Frontend, name) && hasPrefixFold(r.Name, j.Owner)
		})
		if has {
			all = append(all, privatelinkround.FrontendID(on, name))
		}
	}
	return all
}

func (l *loadBalancer) apart(jobs []*job) []*job {
	return slices.DeleteFunc(jobs, func(j *job) bool {
		if len(j.clears) == 0 {
			return false
		}
		j.steps = append([]step{{on: l.id, clears: j.clears}}, j.steps...)
		j.clears = nil
		l.next(j)
		return true
	})
}

func linkRequests(jobs []*job) []*privatelinkround.Request {
	all := make([]*privatelinkround.Request, len(jobs))
	for i, j := range jobs {
		all[i] = j.link
	}
	return all
}

// ReadsLinks returns nil if the Private Link Services of a resource group can be read.
func (b *Balancers) ReadsLinks(ctx context.Context, group string) error {
	if b.links == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, locateDeadline)
	defer cancel()
	return b.links.Reads(ctx, group)
}
